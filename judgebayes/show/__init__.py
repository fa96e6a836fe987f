"""Self-contained HTML pages from plain values.

Nothing is fitted here.
This package may not import `workflow` or any package after it.
"""
