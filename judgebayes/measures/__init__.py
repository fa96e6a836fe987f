"""Scores, decisions, accuracy at a coverage, tests of differences.

Nothing here fits. This package may not import `io` or any package after it.
"""
