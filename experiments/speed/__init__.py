"""How fast the library is beside others: see README.md."""
