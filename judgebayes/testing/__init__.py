"""Checks of a user's own methods against laws: `check_aggregator`, `check_calibrator`.

This package may not import `report` or any package after it.
"""

from judgebayes.testing.laws import check_aggregator, check_calibrator

__all__ = ["check_aggregator", "check_calibrator"]
