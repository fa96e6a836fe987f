"""A calibration: the method, its fit, its answers and its comparison, with their words and tables."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from judgebayes.aggregators import Aggregator, FittedAggregator
from judgebayes.aggregators.wrapped import DecidedBy
from judgebayes.arrays import LogProbs
from judgebayes.finding import Finding
from judgebayes.measures.significance import Interval
from judgebayes.panel.judges import judge_table
from judgebayes.workflow.abstaining import Abstention
from judgebayes.workflow.answers import Decisions, answer_table, decided_counts, decided_words
from judgebayes.workflow.calibration_words import read_words
from judgebayes.workflow.comparing import (
    Compared,
    comparison_table,
    comparison_words,
    held_out_numbers,
)
from judgebayes.workflow.conformal_sets import ConformalSets, set_numbers
from judgebayes.workflow.data import Data
from judgebayes.workflow.losses import Losses
from judgebayes.workflow.methods import Choice
from judgebayes.workflow.more_labels import MoreLabels
from judgebayes.workflow.next_steps import calibration_steps
from judgebayes.workflow.options import CalibrateRequest
from judgebayes.workflow.results import Result, count_findings, ends
from judgebayes.workflow.win_rates import WinRate


@dataclass(frozen=True, repr=False)
class Calibration(Result):
    """The chosen method, its fit to all labels, its answers, and the comparison of methods."""

    schema: ClassVar[str] = "judgebayes.calibration/1"
    given: Data
    request: CalibrateRequest
    losses: Losses
    """The loss of each decision."""
    choice: Choice
    method: Aggregator
    fitted: FittedAggregator
    log_probs: LogProbs
    decisions: Decisions
    chosen: list[str]
    """The reason for this method and its parameters, in sentences."""
    compared: Compared | None
    """None if there are too few labels to hold some out."""
    leads: dict[str, Interval]
    findings: list[Finding]
    """The findings of `judgebayes diagnose` for the table."""
    warnings: list[str]
    sets: ConformalSets | None
    abstention: Abstention | None
    """Held-out results of sending items to a person; None without a price or held-out labels."""
    wins: WinRate | None
    """Who wins; None if the votes do not compare two responses."""
    more: MoreLabels | None
    """What more labels would gain; None without `forecast`, or if NLL is not finite."""

    @property
    def sentences(self) -> list[str]:
        """Who wins, what was read, the method and the reason for it, problems, and the decisions."""
        lines = [] if self.wins is None else self.wins.lead
        lines = [*lines, *read_words(self.given), *self.chosen]
        if self.compared is not None:
            lines += comparison_words(
                self.compared, self.leads, self.losses, hide_nll=self.hide_nll
            )
        lines += [*(f.sentence for f in self.unsound), *self.warnings]
        lines += [] if self.sets is None else self.sets.sentences
        return [*lines, *self.decided, *([] if self.more is None else [self.more.sentence])]

    @property
    def numbers(self) -> dict[str, Any]:
        """What was read, the method, its held-out results with 95 % intervals, and the decisions."""
        given, classes = self.given, self.given.read.coding.classes
        numbers = given.numbers | ({} if self.wins is None else self.wins.own_numbers)
        numbers |= {"method": self.choice.name, "map": self.choice.map_name}
        numbers["decisions"] = decided_counts(classes.names, self.decisions)
        if self.compared is not None:
            numbers["held_out"] = held_out_numbers(
                self.compared, self.choice.name, self.losses.matrix, hide_nll=self.hide_nll
            )
        if self.sets is not None and self.sets.strata is not None:
            numbers["conformal"] = set_numbers(self.sets.strata)
        if self.abstention is not None:
            numbers["sent_to_a_person"] = ends(*self.abstention.share)
            numbers["loss_of_the_others"] = ends(*self.abstention.risk)
        if self.more is not None:
            numbers["more_labels"] = self.more.numbers
        return numbers | count_findings(self.findings)

    @property
    def decided(self) -> list[str]:
        """How often each class was decided, and the results of sending items to a person."""
        coding = self.given.read.coding
        rule = self.fitted.name if isinstance(self.fitted, DecidedBy) else None
        words = decided_words(coding, self.log_probs, self.losses, self.decisions, rule)
        return [words] if self.abstention is None else [words, self.abstention.sentence]

    @property
    def answers(self) -> pd.DataFrame:
        """A row per item: probabilities, decision, expected loss, votes, and its conformal set."""
        read, sets = self.given.read, None if self.sets is None else self.sets.inside
        return answer_table(
            read.coding, read.votes, self.log_probs, self.losses, self.decisions, sets
        )

    @property
    def judges(self) -> pd.DataFrame:
        """A row per judge, as `judgebayes.judge_table` gives it."""
        read = self.given.read
        return judge_table(read.votes, self.given.labels, read.coding, groups=read.groups)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The answers, the held-out comparison, and the judges."""
        tables = {"answers": self.answers}
        if self.compared is not None:
            tables["held out"] = comparison_table(self.compared, self.leads, hide_nll=self.hide_nll)
        if self.sets is not None and self.sets.strata is not None:
            tables["conformal"] = self.sets.strata
        tables |= {"judges": self.judges}
        return tables if self.wins is None else tables | self.wins.tables

    @property
    def next_steps(self) -> list[str]:
        """What to mend, which labels to add, and whether another method decides better."""
        return calibration_steps(
            problems=count_findings(self.unsound)["problems"],
            labelled=int((self.given.labels >= 0).sum()),
            items=self.given.read.votes.n_items,
            method=self.choice.name,
            by_user=self.request.method != "auto",
            leads=self.leads,
            more=self.more,
        )

    @property
    def hide_nll(self) -> bool:
        """Whether nearly constant labels make every NLL look good."""
        bad = any(f.topic == "labels" and f.severity == "bad" for f in self.findings)
        return bad and not self.request.allow_degenerate

    @property
    def unsound(self) -> list[Finding]:
        """The bad findings, if there are labels."""
        bad = [f for f in self.findings if f.severity == "bad"]
        return bad if (self.given.labels >= 0).any() else []

    @property
    def counted(self) -> str:
        """The numbers of bad findings and of notes."""
        return "{problems} problem(s), {notes} note(s)".format(**count_findings(self.findings))
