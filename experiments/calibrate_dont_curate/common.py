"""What the tables of P2 share: panels, methods, answers once per run, and how two are compared."""

__all__ = ["PAPER"]

PAPER = "calibrate-dont-curate"
