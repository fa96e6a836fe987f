"""What a command does, as functions that return values.

Nothing here prints.
"""
