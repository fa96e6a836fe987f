"""Aggregators: class probabilities of every item from its votes.

This package may not import `item_response` or any package after it.
"""
