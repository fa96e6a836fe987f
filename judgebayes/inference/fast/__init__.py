"""Fast implementations for the programs: sufficient counts, conjugate updates and linear designs.

A module with the name of a program in `judgebayes.models` belongs to it, and the program does
not depend on the module. The others are parts that these share (`accelerated_em`, `log_softmax`).
`tests/laws/test_routes.py` checks every fast route against its program.
"""
