"""The commands as functions that return values.

Nothing here prints. This package may not import `testing` or any package after it.
"""
