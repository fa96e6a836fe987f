"""Figures from tidy tables and arrays; functions return figures and do not show them.

Nothing is computed here.
This package may not import `show` or any package after it.
"""
