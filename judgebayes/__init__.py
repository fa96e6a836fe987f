"""Aggregating and calibrating LLM judges.

Votes in, probabilities one can bet on out::

    votes, coding = judgebayes.encode(frame, item="item", judge="judge", vote="vote")
    labels = coding.labels(frame, label="label")
    fit = judgebayes.Davidson().fit(votes, labels)
    table = coding.decode(fit(votes))

Importing this package imports nothing else, changes no setting and reads no file: names are looked
up when they are used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judgebayes.aggregate import (
        EM,
        AccuracyWeighted,
        BaseRate,
        ConfidenceVote,
        Davidson,
        DawidSkene,
        HierarchicalDavidson,
        LogOddsWeighted,
        MajorityVote,
        MarginThreshold,
        OneCoin,
        PerTask,
        RoundedMedian,
        SoftVote,
        Stacking,
        Verdict,
        VoteShare,
    )
    from judgebayes.calibrate import (
        BayesianMap,
        Beta,
        Calibrated,
        Chain,
        Identity,
        Isotonic,
        Platt,
        Temperature,
    )
    from judgebayes.conformal import SplitConformal
    from judgebayes.curate import Curated, top_k
    from judgebayes.decide import absolute_loss, bayes_action, risk, zero_one_loss
    from judgebayes.diagnostics import diagnose, judge_table
    from judgebayes.errors import JudgeBayesError
    from judgebayes.inference import DRPS, MAP, NUTS, Laplace, MinimumLoss, MinimumScore, Status
    from judgebayes.irt import ItemResponse
    from judgebayes.report.versions import show_versions
    from judgebayes.sklearn import SklearnCalibrator
    from judgebayes.splits import Splits, random_splits
    from judgebayes.sweeps import evaluate_splits, sweep
    from judgebayes.votes import (
        Classes,
        Coding,
        SparseVotes,
        Votes,
        encode,
        encode_counts,
        encode_sparse,
        encode_wide,
        from_counts,
    )

__version__ = "0.1.0"

_HOME = {
    "judgebayes.aggregate": (
        "AccuracyWeighted",
        "BaseRate",
        "ConfidenceVote",
        "Davidson",
        "DawidSkene",
        "EM",
        "HierarchicalDavidson",
        "LogOddsWeighted",
        "MajorityVote",
        "MarginThreshold",
        "OneCoin",
        "PerTask",
        "RoundedMedian",
        "SoftVote",
        "Stacking",
        "Verdict",
        "VoteShare",
    ),
    "judgebayes.calibrate": (
        "BayesianMap",
        "Beta",
        "Calibrated",
        "Chain",
        "Identity",
        "Isotonic",
        "Platt",
        "Temperature",
    ),
    "judgebayes.conformal": ("SplitConformal",),
    "judgebayes.curate": ("Curated", "top_k"),
    "judgebayes.diagnostics": ("diagnose", "judge_table"),
    "judgebayes.irt": ("ItemResponse",),
    "judgebayes.decide": ("absolute_loss", "bayes_action", "risk", "zero_one_loss"),
    "judgebayes.errors": ("JudgeBayesError",),
    "judgebayes.sweeps": ("evaluate_splits", "sweep"),
    "judgebayes.inference": (
        "DRPS",
        "MAP",
        "NUTS",
        "Laplace",
        "MinimumLoss",
        "MinimumScore",
        "Status",
    ),
    "judgebayes.report.versions": ("show_versions",),
    "judgebayes.sklearn": ("SklearnCalibrator",),
    "judgebayes.splits": ("Splits", "random_splits"),
    "judgebayes.votes": (
        "Classes",
        "Coding",
        "SparseVotes",
        "Votes",
        "encode",
        "encode_counts",
        "encode_sparse",
        "encode_wide",
        "from_counts",
    ),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [  # noqa: RUF022  (in the order of the pipeline)
    "encode",
    "encode_counts",
    "encode_sparse",
    "encode_wide",
    "from_counts",
    "Classes",
    "Coding",
    "SparseVotes",
    "Votes",
    "AccuracyWeighted",
    "BaseRate",
    "ConfidenceVote",
    "Davidson",
    "DawidSkene",
    "EM",
    "HierarchicalDavidson",
    "LogOddsWeighted",
    "MajorityVote",
    "MarginThreshold",
    "OneCoin",
    "PerTask",
    "RoundedMedian",
    "SoftVote",
    "Stacking",
    "Verdict",
    "VoteShare",
    "Identity",
    "Temperature",
    "Platt",
    "Isotonic",
    "BayesianMap",
    "Beta",
    "Chain",
    "Calibrated",
    "SplitConformal",
    "Curated",
    "top_k",
    "ItemResponse",
    "diagnose",
    "judge_table",
    "DRPS",
    "MAP",
    "NUTS",
    "Laplace",
    "MinimumLoss",
    "MinimumScore",
    "Status",
    "absolute_loss",
    "bayes_action",
    "risk",
    "zero_one_loss",
    "Splits",
    "random_splits",
    "evaluate_splits",
    "sweep",
    "SklearnCalibrator",
    "show_versions",
    "JudgeBayesError",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(importlib.import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
