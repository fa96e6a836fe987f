"""Evaluation of methods: splits, evaluation on one split, sweeps over many.

Methods are passed in; none is defined here.
This package may not import `majority` or any package after it.
"""
