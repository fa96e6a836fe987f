"""Execution of compiled programs: 64-bit arithmetic, files that are whole or absent.

Nothing here depends on votes or models. This package may not import `models` or any package after it.
"""
