"""The speed of the library compared with others: see README.md."""
