"""Fast routes to what a program says: counts, conjugate updates and linear designs, written out.

Each module is about the program of its name in `judgebayes.models`, which knows nothing of it.
`tests/laws/test_routes.py` holds every route to its program.
"""
