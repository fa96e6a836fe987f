"""How programs are run, kept and resumed: 64 bits, cached programs, checkpoints.

Nothing here knows a vote or a model.
"""
