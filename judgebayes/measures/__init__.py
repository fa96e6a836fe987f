"""Scores, decisions, accuracy at a coverage, tests of differences.

Nothing here fits.
"""
