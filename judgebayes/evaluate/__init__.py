"""How methods fare: splits, one split, sweeps over many.

Methods are given, none stands here.
"""
