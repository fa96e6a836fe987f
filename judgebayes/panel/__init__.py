"""What is wrong with a panel or with its labels, and which judges to keep.

Methods of aggregation are given, none stands here.
This package may not import `evaluate` or any package after it.
"""
