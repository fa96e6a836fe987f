"""Execution of compiled programs: 64-bit arithmetic, cached programs, checkpoints.

Nothing here depends on votes or models. This package may not import `models` or any package after it.
"""
