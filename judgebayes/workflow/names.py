"""Names of the methods for help, which does not import JAX; a test compares them with the methods."""

INFERENCES = ("drps", "ml", "map", "nuts")
PRECISION_METHODS = (
    *("auto", "panel", "impression", "strata", "hierarchical", "flat", "item-level", "veto"),
    *("majority", "logit-shift", "rogan-gladen", "ppi", "labels-only"),
)
PRECISION_INFERENCES = ("map", "laplace", "nuts")
TOP = {f"top-{k}": k for k in (3, 5, 10)}
"""The k most accurate judges, combined by the one-coin model."""
METHODS = (
    *("auto", "davidson", "one-coin", "dawid-skene", "shared-difficulty", "pool", "stacking"),
    *("vote-share", "accuracy-weighted", "log-odds", "hierarchical", "sc", "margin-threshold"),
    *("best-constant", *TOP),
)
CALIBRATORS = ("auto", "none", "beta", "isotonic", "platt", "temperature")
