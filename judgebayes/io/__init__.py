"""Read and write files of votes, labels and tables.

This package may not import `inference` or any package after it.
"""
