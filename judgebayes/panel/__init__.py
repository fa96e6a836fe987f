"""Diagnostics of a panel and its labels, and selection of judges.

Aggregators are passed in; none is defined here.
This package may not import `evaluate` or any package after it.
"""
