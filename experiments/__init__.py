"""The papers' tables and figures, one script each, reproduced and audited.

Import them as ``judgebayes.experiments``, or run them with ``judgebayes reproduce``.
"""
