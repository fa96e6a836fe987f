"""Scores, decisions, reliability, tests of differences.

Nothing here fits a model. This package may not import `io` or any package after it.
"""
