"""The papers' tables and figures, one script each, reproduced and audited.

Import them as ``judgebayes.experiments``, or run them with ``judgebayes reproduce``.
This package may not import `cli` or any package after it; only `coverage` here imports `cli`.
"""
