"""Names of methods and settings, without what they name: for help and shell completion."""

__all__ = ["BASELINES", "CALIBRATORS", "INFERENCES", "METHODS", "OWN_MAP", "TOP"]

INFERENCES = ("drps", "ml", "map", "nuts")
CALIBRATORS = ("auto", "none", "temperature", "platt", "isotonic", "beta")
OWN_MAP = ("one-coin", "dawid-skene", "vote-share", "accuracy-weighted", "log-odds")
"""Methods whose answers are too sure of themselves: `--calibrator auto` puts a beta map behind."""
TOP = {f"top-{k}": k for k in (3, 5, 10)}
BASELINES = ("sc", "margin-threshold", "best-constant")
METHODS = ("auto", "davidson", "hierarchical", *OWN_MAP, "stacking", *TOP, *BASELINES)
