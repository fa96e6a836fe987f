"""The public names and their modules: `__init__.py` loads names from here, and type checkers read it."""

import collections.abc
import pathlib
import typing

from . import priors as priors
from . import testing as testing
from .aggregators.davidson import Davidson as Davidson
from .aggregators.davidson import HierarchicalDavidson as HierarchicalDavidson
from .aggregators.dawid_skene import DawidSkene as DawidSkene
from .aggregators.one_coin import OneCoin as OneCoin
from .aggregators.pool import Pool as Pool
from .aggregators.shared_difficulty import SharedDifficulty as SharedDifficulty
from .aggregators.stacking import Stacking as Stacking
from .aggregators.vote_rules import BaseRate as BaseRate
from .aggregators.vote_rules import MajorityVote as MajorityVote
from .aggregators.vote_rules import MarginThreshold as MarginThreshold
from .aggregators.vote_rules import VoteShare as VoteShare
from .aggregators.wrapped import Calibrated as Calibrated
from .aggregators.wrapped import WithUndecided as WithUndecided
from .calibrators.conformal import SplitConformal as SplitConformal
from .calibrators.isotonic import Isotonic as Isotonic
from .calibrators.maps import BayesianMap as BayesianMap
from .calibrators.maps import Beta as Beta
from .calibrators.maps import Identity as Identity
from .calibrators.maps import Platt as Platt
from .calibrators.maps import Temperature as Temperature
from .errors import AmbiguousStudy as AmbiguousStudy
from .errors import JudgeBayesError as JudgeBayesError
from .evaluate.sklearn import SklearnCalibrator as SklearnCalibrator
from .evaluate.splits import Splits as Splits
from .evaluate.splits import random_splits as random_splits
from .evaluate.sweeps import evaluate_splits as evaluate_splits
from .evaluate.sweeps import sweep as sweep
from .inference import DRPS as DRPS
from .inference import EM as EM
from .inference import MAP as MAP
from .inference import NUTS as NUTS
from .inference import Laplace as Laplace
from .inference import MinimumScore as MinimumScore
from .inference import Status as Status
from .inference import aggregator as aggregator
from .inference import calibrator as calibrator
from .inference import in_files as in_files
from .item_response import ItemResponse as ItemResponse
from .measures.scores import absolute_loss as absolute_loss
from .measures.scores import bayes_action as bayes_action
from .measures.scores import risk as risk
from .measures.scores import zero_one_loss as zero_one_loss
from .panel.judges import Curated as Curated
from .panel.judges import judge_table as judge_table
from .panel.judges import top_k as top_k
from .show.versions import show_versions as show_versions
from .votes import Classes as Classes
from .votes import Coding as Coding
from .votes import SparseVotes as SparseVotes
from .votes import Votes as Votes
from .votes import encode as encode
from .votes import encode_sparse as encode_sparse
from .votes import encode_wide as encode_wide
from .votes import from_counts as from_counts
from .workflow.applying import Applied as Applied
from .workflow.calibration import Calibration as Calibration
from .workflow.calibration import save as save
from .workflow.checking import Check as Check
from .workflow.data import Study as Study
from .workflow.diagnosing import Diagnosis as Diagnosis
from .workflow.ensembling import MajorityError as MajorityError
from .workflow.posterior import ComparedPosteriors as ComparedPosteriors
from .workflow.posterior import SampledPosterior as SampledPosterior
from .workflow.precision import Precision as Precision
from .workflow.win_rates import WinRate as WinRate

if not typing.TYPE_CHECKING:  # their signatures are below
    from .workflow.applying import apply as apply
    from .workflow.asking import read as read
    from .workflow.calibrating import calibrate as calibrate
    from .workflow.checking import check as check
    from .workflow.diagnosing import diagnose as diagnose
    from .workflow.ensembling import ensemble as ensemble
    from .workflow.posterior import compare as compare
    from .workflow.posterior import posterior as posterior
    from .workflow.precision import precision as precision
    from .workflow.win_rates import win_rate as win_rate

__version__: str

# The questions, as tests/house/test_signatures.py writes them.
def read(
    votes: typing.Any,
    labels: typing.Any = None,
    *,
    item: str | collections.abc.Sequence[str] | None = None,
    judge: str | collections.abc.Sequence[str] | None = None,
    vote: str | collections.abc.Sequence[str] | None = None,
    sample: str | collections.abc.Sequence[str] | None = None,
    repeats: bool = False,
    order: str | collections.abc.Sequence[str] | None = None,
    votes_as: typing.Literal["shown", "original"] | None = None,
    label: str | collections.abc.Sequence[str] | None = None,
    task: str | collections.abc.Sequence[str] | None = None,
    group: str | collections.abc.Sequence[str] | None = None,
    only_judge: str | collections.abc.Sequence[str] | None = None,
    wide: bool = False,
    ignore: str | collections.abc.Sequence[str] | None = None,
    votes_from: typing.Literal["score", "answer"] | None = None,
    missing: str | collections.abc.Sequence[str] | None = None,
    undecided: str | collections.abc.Sequence[str] | None = None,
    encoding: str | collections.abc.Sequence[str] | None = None,
    skip_rows: int | None = None,
    bins: str | collections.abc.Sequence[str] | None = None,
    verdicts: typing.Literal["pair", "score", "valid"] | None = None,
    match_ids: typing.Literal["exactly", "loosely"] = "exactly",
    labels_merge: typing.Literal["majority", "adjudicated", "noisy"] | None = None,
    annotator: str | collections.abc.Sequence[str] | None = None,
    adjudicator: str | collections.abc.Sequence[str] | None = None,
    classes: str | collections.abc.Sequence[str] | None = None,
    pairwise: bool | None = None,
    drop_unknown_labels: bool = False,
) -> Study: ...
def check(
    votes: typing.Any,
    labels: typing.Any = None,
    *,
    item: str | collections.abc.Sequence[str] | None = None,
    judge: str | collections.abc.Sequence[str] | None = None,
    vote: str | collections.abc.Sequence[str] | None = None,
    sample: str | collections.abc.Sequence[str] | None = None,
    repeats: bool = False,
    order: str | collections.abc.Sequence[str] | None = None,
    votes_as: typing.Literal["shown", "original"] | None = None,
    label: str | collections.abc.Sequence[str] | None = None,
    task: str | collections.abc.Sequence[str] | None = None,
    group: str | collections.abc.Sequence[str] | None = None,
    only_judge: str | collections.abc.Sequence[str] | None = None,
    wide: bool = False,
    ignore: str | collections.abc.Sequence[str] | None = None,
    votes_from: typing.Literal["score", "answer"] | None = None,
    missing: str | collections.abc.Sequence[str] | None = None,
    undecided: str | collections.abc.Sequence[str] | None = None,
    encoding: str | collections.abc.Sequence[str] | None = None,
    skip_rows: int | None = None,
    bins: str | collections.abc.Sequence[str] | None = None,
    verdicts: typing.Literal["pair", "score", "valid"] | None = None,
    match_ids: typing.Literal["exactly", "loosely"] = "exactly",
    labels_merge: typing.Literal["majority", "adjudicated", "noisy"] | None = None,
    annotator: str | collections.abc.Sequence[str] | None = None,
    adjudicator: str | collections.abc.Sequence[str] | None = None,
    classes: str | collections.abc.Sequence[str] | None = None,
    drop_unknown_labels: bool = False,
    items: typing.Any = None,
    save: pathlib.Path | str | None = None,
) -> Check: ...
def calibrate(
    votes: typing.Any,
    labels: typing.Any = None,
    *,
    target: typing.Literal["these", "more"] = "more",
    ties: typing.Literal["half", "excluded", "separate"] = "half",
    systems: str | collections.abc.Sequence[str] | None = None,
    seed: int = 0,
    item: str | collections.abc.Sequence[str] | None = None,
    judge: str | collections.abc.Sequence[str] | None = None,
    vote: str | collections.abc.Sequence[str] | None = None,
    sample: str | collections.abc.Sequence[str] | None = None,
    repeats: bool = False,
    order: str | collections.abc.Sequence[str] | None = None,
    votes_as: typing.Literal["shown", "original"] | None = None,
    label: str | collections.abc.Sequence[str] | None = None,
    task: str | collections.abc.Sequence[str] | None = None,
    group: str | collections.abc.Sequence[str] | None = None,
    only_judge: str | collections.abc.Sequence[str] | None = None,
    wide: bool = False,
    ignore: str | collections.abc.Sequence[str] | None = None,
    votes_from: typing.Literal["score", "answer"] | None = None,
    missing: str | collections.abc.Sequence[str] | None = None,
    undecided: str | collections.abc.Sequence[str] | None = None,
    encoding: str | collections.abc.Sequence[str] | None = None,
    skip_rows: int | None = None,
    bins: str | collections.abc.Sequence[str] | None = None,
    verdicts: typing.Literal["pair", "score", "valid"] | None = None,
    match_ids: typing.Literal["exactly", "loosely"] = "exactly",
    labels_merge: typing.Literal["majority", "adjudicated", "noisy"] | None = None,
    annotator: str | collections.abc.Sequence[str] | None = None,
    adjudicator: str | collections.abc.Sequence[str] | None = None,
    classes: str | collections.abc.Sequence[str] | None = None,
    pairwise: bool | None = None,
    drop_unknown_labels: bool = False,
    method: str | collections.abc.Sequence[str] = "auto",
    calibrator: str | collections.abc.Sequence[str] = "auto",
    loss: typing.Any = None,
    conformal: float | None = None,
    conformal_by: str | collections.abc.Sequence[str] | None = None,
    empty_sets: bool = False,
    label_noise: float = 0.0,
    splits: int | None = None,
    allow_degenerate: bool = False,
    progress: typing.Any = None,
) -> Calibration: ...
def win_rate(
    votes: typing.Any,
    labels: typing.Any = None,
    *,
    target: typing.Literal["these", "more"] = "more",
    ties: typing.Literal["half", "excluded", "separate"] = "half",
    systems: str | collections.abc.Sequence[str] | None = None,
    seed: int = 0,
    item: str | collections.abc.Sequence[str] | None = None,
    judge: str | collections.abc.Sequence[str] | None = None,
    vote: str | collections.abc.Sequence[str] | None = None,
    sample: str | collections.abc.Sequence[str] | None = None,
    repeats: bool = False,
    order: str | collections.abc.Sequence[str] | None = None,
    votes_as: typing.Literal["shown", "original"] | None = None,
    label: str | collections.abc.Sequence[str] | None = None,
    task: str | collections.abc.Sequence[str] | None = None,
    group: str | collections.abc.Sequence[str] | None = None,
    only_judge: str | collections.abc.Sequence[str] | None = None,
    wide: bool = False,
    ignore: str | collections.abc.Sequence[str] | None = None,
    votes_from: typing.Literal["score", "answer"] | None = None,
    missing: str | collections.abc.Sequence[str] | None = None,
    undecided: str | collections.abc.Sequence[str] | None = None,
    encoding: str | collections.abc.Sequence[str] | None = None,
    skip_rows: int | None = None,
    bins: str | collections.abc.Sequence[str] | None = None,
    verdicts: typing.Literal["pair", "score", "valid"] | None = None,
    match_ids: typing.Literal["exactly", "loosely"] = "exactly",
    labels_merge: typing.Literal["majority", "adjudicated", "noisy"] | None = None,
    annotator: str | collections.abc.Sequence[str] | None = None,
    adjudicator: str | collections.abc.Sequence[str] | None = None,
    classes: str | collections.abc.Sequence[str] | None = None,
    pairwise: bool | None = None,
    drop_unknown_labels: bool = False,
) -> WinRate: ...
def diagnose(
    votes: typing.Any,
    labels: typing.Any = None,
    *,
    item: str | collections.abc.Sequence[str] | None = None,
    judge: str | collections.abc.Sequence[str] | None = None,
    vote: str | collections.abc.Sequence[str] | None = None,
    sample: str | collections.abc.Sequence[str] | None = None,
    repeats: bool = False,
    order: str | collections.abc.Sequence[str] | None = None,
    votes_as: typing.Literal["shown", "original"] | None = None,
    label: str | collections.abc.Sequence[str] | None = None,
    group: str | collections.abc.Sequence[str] | None = None,
    wide: bool = False,
    ignore: str | collections.abc.Sequence[str] | None = None,
    votes_from: typing.Literal["score", "answer"] | None = None,
    missing: str | collections.abc.Sequence[str] | None = None,
    undecided: str | collections.abc.Sequence[str] | None = None,
    encoding: str | collections.abc.Sequence[str] | None = None,
    skip_rows: int | None = None,
    bins: str | collections.abc.Sequence[str] | None = None,
    verdicts: typing.Literal["pair", "score", "valid"] | None = None,
    match_ids: typing.Literal["exactly", "loosely"] = "exactly",
    labels_merge: typing.Literal["majority", "adjudicated", "noisy"] | None = None,
    annotator: str | collections.abc.Sequence[str] | None = None,
    adjudicator: str | collections.abc.Sequence[str] | None = None,
    classes: str | collections.abc.Sequence[str] | None = None,
    pairwise: bool | None = None,
    drop_unknown_labels: bool = False,
    by: str | collections.abc.Sequence[str] | None = None,
    seed: int = 0,
) -> Diagnosis: ...
def ensemble(
    votes: typing.Any,
    labels: typing.Any = None,
    *,
    item: str | collections.abc.Sequence[str] | None = None,
    judge: str | collections.abc.Sequence[str] | None = None,
    vote: str | collections.abc.Sequence[str] | None = None,
    sample: str | collections.abc.Sequence[str] | None = None,
    repeats: bool = False,
    order: str | collections.abc.Sequence[str] | None = None,
    votes_as: typing.Literal["shown", "original"] | None = None,
    label: str | collections.abc.Sequence[str] | None = None,
    group: str | collections.abc.Sequence[str] | None = None,
    only_judge: str | collections.abc.Sequence[str] | None = None,
    wide: bool = False,
    ignore: str | collections.abc.Sequence[str] | None = None,
    votes_from: typing.Literal["score", "answer"] | None = None,
    missing: str | collections.abc.Sequence[str] | None = None,
    undecided: str | collections.abc.Sequence[str] | None = None,
    encoding: str | collections.abc.Sequence[str] | None = None,
    skip_rows: int | None = None,
    bins: str | collections.abc.Sequence[str] | None = None,
    verdicts: typing.Literal["pair", "score", "valid"] | None = None,
    match_ids: typing.Literal["exactly", "loosely"] = "exactly",
    labels_merge: typing.Literal["majority", "adjudicated", "noisy"] | None = None,
    annotator: str | collections.abc.Sequence[str] | None = None,
    adjudicator: str | collections.abc.Sequence[str] | None = None,
    classes: str | collections.abc.Sequence[str] | None = None,
    drop_unknown_labels: bool = False,
    k: str | collections.abc.Sequence[str] | None = None,
    ties: typing.Literal["random", "abstain"] | None = None,
    decision: typing.Literal["plurality", "median"] = "plurality",
    judges: str | collections.abc.Sequence[str] | None = None,
    target_width: float | None = None,
    next_labels: int | None = None,
    level: float = 0.9,
    target: typing.Literal["these", "more"] = "more",
    seed: int = 0,
    progress: typing.Any = None,
) -> MajorityError: ...
def precision(
    votes: typing.Any,
    labels: typing.Any = None,
    *,
    item: str | collections.abc.Sequence[str] | None = None,
    judge: str | collections.abc.Sequence[str] | None = None,
    vote: str | collections.abc.Sequence[str] | None = None,
    sample: str | collections.abc.Sequence[str] | None = None,
    repeats: bool = False,
    order: str | collections.abc.Sequence[str] | None = None,
    votes_as: typing.Literal["shown", "original"] | None = None,
    label: str | collections.abc.Sequence[str] | None = None,
    group: str | collections.abc.Sequence[str] | None = None,
    wide: bool = False,
    ignore: str | collections.abc.Sequence[str] | None = None,
    votes_from: typing.Literal["score", "answer"] | None = None,
    missing: str | collections.abc.Sequence[str] | None = None,
    encoding: str | collections.abc.Sequence[str] | None = None,
    skip_rows: int | None = None,
    bins: str | collections.abc.Sequence[str] | None = None,
    verdicts: typing.Literal["pair", "score", "valid"] | None = None,
    match_ids: typing.Literal["exactly", "loosely"] = "exactly",
    labels_merge: typing.Literal["majority", "adjudicated", "noisy"] | None = None,
    annotator: str | collections.abc.Sequence[str] | None = None,
    adjudicator: str | collections.abc.Sequence[str] | None = None,
    classes: str | collections.abc.Sequence[str] | None = None,
    generator: str | collections.abc.Sequence[str] | None = None,
    method: typing.Literal[
        "auto", "panel", "strata", "rogan-gladen", "ppi", "labels-only"
    ] = "auto",
    target: typing.Literal["these", "more"] = "more",
    next_labels: int | None = None,
    between: str | collections.abc.Sequence[str] | None = None,
    seed: int = 0,
) -> Precision: ...
def posterior(
    votes: typing.Any,
    labels: typing.Any = None,
    *,
    item: str | collections.abc.Sequence[str] | None = None,
    judge: str | collections.abc.Sequence[str] | None = None,
    vote: str | collections.abc.Sequence[str] | None = None,
    sample: str | collections.abc.Sequence[str] | None = None,
    repeats: bool = False,
    order: str | collections.abc.Sequence[str] | None = None,
    votes_as: typing.Literal["shown", "original"] | None = None,
    label: str | collections.abc.Sequence[str] | None = None,
    only_judge: str | collections.abc.Sequence[str] | None = None,
    wide: bool = False,
    ignore: str | collections.abc.Sequence[str] | None = None,
    votes_from: typing.Literal["score", "answer"] | None = None,
    missing: str | collections.abc.Sequence[str] | None = None,
    undecided: str | collections.abc.Sequence[str] | None = None,
    encoding: str | collections.abc.Sequence[str] | None = None,
    skip_rows: int | None = None,
    bins: str | collections.abc.Sequence[str] | None = None,
    verdicts: typing.Literal["pair", "score", "valid"] | None = None,
    match_ids: typing.Literal["exactly", "loosely"] = "exactly",
    labels_merge: typing.Literal["majority", "adjudicated", "noisy"] | None = None,
    annotator: str | collections.abc.Sequence[str] | None = None,
    adjudicator: str | collections.abc.Sequence[str] | None = None,
    classes: str | collections.abc.Sequence[str] | None = None,
    pairwise: bool | None = None,
    drop_unknown_labels: bool = False,
    model: str | collections.abc.Sequence[str] = "davidson",
    variant: str | collections.abc.Sequence[str] | None = None,
    prior: list[str] | None = None,
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    target_accept: float = 0.9,
    generator: str | collections.abc.Sequence[str] | None = None,
    seed: int = 0,
    allow_degenerate: bool = False,
    command: typing.Any = "judgebayes posterior",
) -> SampledPosterior: ...
def compare(
    files: collections.abc.Sequence[pathlib.Path | str],
    *,
    site: str | collections.abc.Sequence[str] | None = None,
) -> ComparedPosteriors: ...
def apply(
    fit: Calibration | pathlib.Path | str,
    votes: typing.Any,
    *,
    item: str | collections.abc.Sequence[str] | None = None,
    judge: str | collections.abc.Sequence[str] | None = None,
    vote: str | collections.abc.Sequence[str] | None = None,
    sample: str | collections.abc.Sequence[str] | None = None,
    repeats: bool = False,
    order: str | collections.abc.Sequence[str] | None = None,
    votes_as: typing.Literal["shown", "original"] | None = None,
    task: str | collections.abc.Sequence[str] | None = None,
    only_judge: str | collections.abc.Sequence[str] | None = None,
    wide: bool = False,
    ignore: str | collections.abc.Sequence[str] | None = None,
    votes_from: typing.Literal["score", "answer"] | None = None,
    missing: str | collections.abc.Sequence[str] | None = None,
    encoding: str | collections.abc.Sequence[str] | None = None,
    skip_rows: int | None = None,
    verdicts: typing.Literal["pair", "score", "valid"] | None = None,
    method: str | collections.abc.Sequence[str] | None = None,
    loss: typing.Any = None,
) -> Applied: ...
