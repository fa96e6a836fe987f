"""Damaged tables, small valid inputs of every format, and regressions of what damage revealed."""
