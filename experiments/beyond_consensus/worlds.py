"""Simulated worlds for `audit-worlds`: generators, judges and shifts of known law.

A world has six generators with 400 items each and eight judges. A judge's rates are those of its kind,
moved on the logit scale by shifts of the generator:

- *strong*: Youden's index from 0.3 to 0.8, 10 to 45 % of the items invalid;
- *weak*, like the paper's validators: a judge knows with probability 0.05 to 0.35 whether an item is
  valid, and otherwise accepts it with a probability that follows the generator's quality;
- *uninformative*: as strong, but all judges have the same given Youden's index.

Shifts have standard deviation 0.25: by cell (each pair of generator and judge on its own) or common to
all judges of a generator (for weak judges also those of knowledge, 0.4). All votes on an item share its
difficulty. A saturated judge says the same to almost every item. A copied panel has three judges of one
voice. Votes go missing at random.
"""

from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import expit, logit

GENERATORS, JUDGES, ITEMS = 6, 8, 400
SHIFT, KNOWLEDGE_SHIFT = 0.25, 0.4
DIFFICULTY = 1.0
FLATTER = float(np.sqrt(1 + 0.346 * DIFFICULTY**2))
"""Makes a rate's mean over difficulties about the rate itself."""
SATURATED = 6.0
"""Logit of the rate at which a saturated judge says what it says."""
CAST = 2 / 3
"""The share of votes that are cast in a panel with missing votes."""

Kind = Literal["weak", "strong", "uninformative"]
Shift = Literal["none", "cell", "common"]


@dataclass(frozen=True)
class Setting:
    """What the worlds of one cell of the experiment have in common."""

    kind: Kind
    saturated: int = 0
    missing: bool = False
    copied: bool = False
    shift: Shift = "none"
    youden: float | None = None
    """Every judge's Youden index in an uninformative panel."""

    @property
    def panel(self) -> str:
        """The cell's name without its shifts."""
        head = self.kind if self.youden is None else f"{self.kind}, Youden {self.youden:g}"
        votes = "a third missing" if self.missing else "dense"
        voices = "copied" if self.copied else "independent"
        return f"{head}, {self.saturated} saturated, {votes}, {voices}"

    @property
    def name(self) -> str:
        """The cell's name."""
        return f"{self.panel}, shift {self.shift}"

    @property
    def cell_spread(self) -> float:
        """The standard deviation of shifts by cell."""
        return SHIFT if self.shift == "cell" else 0.0

    @property
    def common_spread(self) -> tuple[float, float]:
        """The standard deviations of the two shifts common to all judges of a generator."""
        second = KNOWLEDGE_SHIFT if self.kind == "weak" else SHIFT
        return (SHIFT, second) if self.shift == "common" else (0.0, 0.0)


def grid() -> list[Setting]:
    """Return every combination of kind, saturated judges, missing votes, copies and shift."""
    kinds: tuple[Kind, ...] = ("weak", "strong")
    shifts: tuple[Shift, ...] = ("none", "cell", "common")
    both = (False, True)
    return [Setting(*cell) for cell in product(kinds, range(4), both, both, shifts)]


@dataclass(frozen=True)
class Judges:
    """The judges of one world: two parameters each, on the logit scale.

    Of weak judges they are knowledge and the leaning of impressions; of others the true and the false
    positive rate.
    """

    setting: Setting
    first: Float[np.ndarray, " judge"]
    second: Float[np.ndarray, " judge"]

    @property
    def voices(self) -> np.ndarray:
        """The judge whose votes each judge repeats: itself, unless the panel is copied."""
        voice = np.arange(JUDGES)
        if self.setting.copied:
            voice[-3:] = JUDGES - 2
        return voice

    def logits(
        self, quality: Float[np.ndarray, "*any"], common: Float[np.ndarray, "2 *any"]
    ) -> Float[np.ndarray, "2 *any judge"]:
        """Return the logits of accepting valid and invalid items, before shifts by cell.

        They are those of a generator with this share of valid items and these common shifts.
        """
        if self.setting.kind == "weak":
            know = expit(self.first + common[1][..., None])
            accept = expit(self.second + (logit(quality) + common[0])[..., None])
            at = np.stack([logit(know + (1 - know) * accept), logit((1 - know) * accept)])
        else:
            rates = np.stack([self.first, self.second])
            middle = (slice(None), *(None,) * common[0].ndim)
            at = rates[middle] + common[..., None]
        for place in range(self.setting.saturated):
            at[..., place] = SATURATED if place % 2 == 0 else -SATURATED
        return at


def judges(setting: Setting, rng: np.random.Generator) -> Judges:
    """Return random judges of a setting."""
    if setting.kind == "weak":
        return Judges(setting, logit(rng.uniform(0.05, 0.35, JUDGES)), rng.normal(0.4, 0.4, JUDGES))
    low, high = (0.3, 0.8) if setting.youden is None else (setting.youden, setting.youden)
    youden = rng.uniform(low, high, JUDGES)
    false = np.minimum(rng.uniform(0.05, 0.35, JUDGES), 0.97 - youden)
    return Judges(setting, logit(youden + false), logit(false))


class Counts(NamedTuple):
    """Votes of a world by label: those for valid and all, and the labels themselves."""

    true_accepted: Float[np.ndarray, "generator judge"]
    valid_judged: Float[np.ndarray, "generator judge"]
    false_accepted: Float[np.ndarray, "generator judge"]
    invalid_judged: Float[np.ndarray, "generator judge"]
    valid: Float[np.ndarray, " generator"]
    invalid: Float[np.ndarray, " generator"]


def draw(
    panel: Judges, rng: np.random.Generator, generators: int = GENERATORS, items: int = ITEMS
) -> Counts:
    """Return the counted votes of one world of these judges."""
    setting = panel.setting
    if setting.kind == "weak":
        quality = expit(rng.normal(2.6, 0.35, generators))
    else:
        quality = rng.uniform(0.55, 0.9, generators)
    common = rng.normal(size=(2, generators)) * np.array(setting.common_spread)[:, None]
    cell = rng.normal(size=(2, generators, JUDGES)) * setting.cell_spread
    at = panel.logits(quality, common) + cell
    label = rng.random((generators, items)) < quality[:, None]
    by_item = np.where(label[..., None], at[0][:, None], at[1][:, None])
    difficulty = DIFFICULTY * rng.normal(size=(generators, items, 1))
    vote = rng.random(by_item.shape) < expit(FLATTER * by_item + difficulty)
    vote = vote[..., panel.voices]
    cast = rng.random(vote.shape) < (CAST if setting.missing else 1.0)
    valid, invalid = label[..., None] & cast, ~label[..., None] & cast
    parts = (vote & valid, valid, vote & invalid, invalid, label, ~label)
    return Counts(*(part.sum(1).astype(float) for part in parts))
