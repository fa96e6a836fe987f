"""Shared code of P2's tables: panels, methods, cached answers, and comparisons of two methods."""

__all__ = ["PAPER"]

PAPER = "calibrate-dont-curate"
