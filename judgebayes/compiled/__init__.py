"""How programs are run, kept and resumed: 64 bits, cached programs, checkpoints.

Nothing here knows a vote or a model. This package may not import `models` or any package after it.
"""
