"""How methods fare: splits, one split, sweeps over many.

Methods are given, none stands here. This package may not import `majority` or any package after it.
"""
