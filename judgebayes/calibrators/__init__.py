"""Calibration maps, one file each, and conformal prediction sets.

This package may not import `aggregators` or any package after it.
"""
