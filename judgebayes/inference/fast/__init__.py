"""Fast implementations for the programs: sufficient counts, conjugate updates and linear designs.

Each module belongs to the program of its name in `judgebayes.models`, which does not depend on it.
`tests/laws/test_routes.py` checks every fast route against its program.
"""
