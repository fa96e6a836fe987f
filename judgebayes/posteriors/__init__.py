"""The generative models with a user's data: sampling, predictive checks and comparison.

This package may not import `collect` or any package after it.
"""
