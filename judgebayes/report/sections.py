"""The sections of a report on one calibration: results in, `page.Section`s out."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from judgebayes.calibrators.conformal import coverage_law
from judgebayes.finding import Finding
from judgebayes.measures.selective import reliability
from judgebayes.measures.significance import Interval, share_interval
from judgebayes.plots import curves, intervals, judge_map, reliability_diagrams
from judgebayes.report.figures import inline_svg, names_as_they_are
from judgebayes.report.page import (
    Block,
    Code,
    Drawing,
    Facts,
    Findings,
    Folded,
    Paragraph,
    Row,
    Section,
    Table,
)
from judgebayes.report.shares import SHARES, percent_with_interval
from judgebayes.report.text import presentable

__all__ = [
    "Bin",
    "Curve",
    "HeldOut",
    "confidence_bins",
    "data_section",
    "decisions_section",
    "diagnostics_section",
    "judges_section",
    "labels_section",
    "method_section",
    "probabilities_section",
    "rerun_section",
    "with_interval",
]

BINS = 10
MOST_DIAGRAMS = 5
MOST_JUDGES = 16
"""Judges of a short table: the most and the least accurate."""
ALL_JUDGES = 500
LONGEST_DRAWN = 28
"""Letters of a name in a figure."""
FIRST_ITEMS = 10
UNCERTAIN = 0.01
"""An item is uncertain where its decision's expected loss is above this."""
COVERAGE_ITEMS = 10_000
"""So many new items that their own chance hardly matters to the coverage."""
THRESHOLD_SHARE = 1 / 3
"""Share of the labels that a conformal threshold is learnt from."""
MORE = (1, 2, 4)
"""How many times as many labels are spoken of."""


class HeldOut(NamedTuple):
    """A method's answers on held-out items, flat over splits: an item comes once per split it is in."""

    items: Int[np.ndarray, " answer"]
    labels: Int[np.ndarray, " answer"]
    log_probs: Float[np.ndarray, "answer class"]
    groups: Int[np.ndarray, " all_items"] | None
    splits: int


class Curve(NamedTuple):
    """Held-out scores of a method against the number of labels."""

    labels: Sequence[int]
    nll: Sequence[Interval]
    loss: Sequence[Interval]
    gain: Interval
    """What the last doubling took off the NLL; not finite where one of the two is not."""
    loss_gain: Interval
    """What it took off the loss of the decisions."""
    constant: tuple[float, float] | None
    """NLL and loss of always giving the same answer, fitted on all of them."""


def with_interval(found: Interval, *, percent: bool = False) -> str:
    """Return an estimate and its interval as text; a hyphen where it is not a number."""
    if not np.isfinite(found.mean):
        return "-"
    form = "{:.1%}" if percent else "{:z.3f}"
    mean, low, high = (form.format(value) for value in found)
    return f"{mean} [{low}, {high}]" if np.isfinite([found.low, found.high]).all() else mean


def data_section(
    words: Sequence[str],
    files: Sequence[tuple[str, str]],
    classes: Sequence[str],
    votes: Int[np.ndarray, " class"],
    labels: Int[np.ndarray, " class"],
) -> Section:
    """Return what was read: sentences, files with their checksums, votes and labels by class."""
    rows = [
        (
            name,
            f"{n:,}",
            _share(int(n), int(votes.sum())),
            f"{k:,}",
            _share(int(k), int(labels.sum())),
        )
        for name, n, k in zip(classes, votes, labels, strict=True)
    ]
    head = ("class", "votes", "share", "labels", "share")
    return Section(
        "The data",
        [
            *map(Paragraph, words),
            Table("Votes and labels by class, from the lowest to the highest", head, rows),
            Facts(files),
        ],
        name="data",
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def diagnostics_section(findings: Sequence[Finding]) -> Section:
    """Return what the diagnostics say, the gravest first."""
    counts = {kind: sum(f.severity == kind for f in findings) for kind in ("bad", "note")}
    problems = "No problem" if not counts["bad"] else _counted(counts["bad"], "problem")
    return Section(
        "Diagnostics",
        [
            Paragraph(
                f"{problems} and {_counted(counts['note'], 'note')}, from the votes and the labels "
                "alone, before any method was fitted."
            ),
            Findings(findings),
        ],
        name="diagnostics",
    )


def _counted(n: int, what: str) -> str:
    return f"{n or 'no'} {what}{'' if n == 1 else 's'}"


def judges_section(judges: pd.DataFrame) -> Section:
    """Return how often each judge is right: a figure, the ends of the ranking, and all judges.

    `judges` is what `judgebayes.panel.diagnostics.judge_table` returned.
    """
    known = bool(np.isfinite(judges["accuracy"]).any())
    ranked = judges.sort_values("accuracy", ascending=False, kind="stable")
    shown = ranked
    if len(ranked) > MOST_JUDGES:
        shown = pd.concat([ranked.head(MOST_JUDGES // 2), ranked.tail(MOST_JUDGES // 2)])
    blocks: list[Block] = []
    if known:
        blocks.append(
            Paragraph(
                "Accuracy is agreement with the labels; repeated votes of a judge on an item count "
                "as one. TPR is accuracy on items of the higher label, TNR on those of the lower. "
                "The weight is what one vote of the judge adds to the log-odds of its class, by its "
                "accuracy: negative means that it is right less often than it is wrong."
            )
        )
    else:
        blocks.append(Paragraph("Without labels nothing is known of how often a judge is right."))
    if known and len(judges) > 1:
        blocks.append(_judges_drawing(ranked, shown))
    few = len(shown) == len(ranked)
    caption = "Judges, the most accurate first; shares in per cent with 90 % intervals"
    if not known:
        caption = "Judges and their votes"
    if not few:
        half = MOST_JUDGES // 2
        caption = (
            f"The {half} most and the {half} least accurate of {len(ranked)} judges, in per cent "
            "with 90 % intervals"
        )
    blocks.append(_judges_table(shown, caption, known))
    if not few:
        most = ranked.head(ALL_JUDGES)
        title = (
            f"All {len(ranked)} judges" if len(most) == len(ranked) else f"The first {len(most)}"
        )
        every = _judges_table(most, f"{title}, in per cent with 90 % intervals", known)
        blocks.append(Folded(title, [every]))
    return Section("The judges", blocks, name="judges")


def _judges_drawing(ranked: pd.DataFrame, shown: pd.DataFrame) -> Drawing:
    ranked, shown = (
        each.assign(judge=presentable(each["judge"], LONGEST_DRAWN)) for each in (ranked, shown)
    )
    by_label = "tpr" in ranked and np.isfinite(ranked[["tnr", "tpr"]]).to_numpy().all(1).any()
    with names_as_they_are():
        if by_label:
            figure = judge_map(ranked, title="", named=6, size=(5.0, 4.8))
            title = "Accuracy of every judge on items of the lower and of the higher label"
            caption = (
                f"Each of {len(ranked)} judges, with 90 % intervals: how often it is right on items "
                "of the lower label (to the right is better) and of the higher (up is better). On "
                'the solid line, "one coin", it is equally good on both, as the one-coin model takes '
                "every judge to be; on the dashed one it knows nothing."
            )
            written = {text.get_text() for text in figure.axes[0].texts}
            if not written.issuperset(ranked["judge"]):
                caption += " Where there was no room for a name, the table below tells it."
        else:
            table = shown.rename(
                columns={"accuracy": "value", "accuracy_low": "low", "accuracy_high": "high"}
            ).assign(series="accuracy")
            figure = intervals(table, label="judge", series="series", xlabel="accuracy", title="")
            figure.set_size_inches(5.0, 0.28 * len(table) + 1.0)
            title = "Accuracy of judges"
            caption = "How often judges are right, with 90 % intervals."
        best, worst = ranked.iloc[0], ranked[np.isfinite(ranked["accuracy"])].iloc[-1]
        spoken = (
            f"The most accurate is {best['judge']} with {best['accuracy']:.0%}, the least "
            f"{worst['judge']} with {worst['accuracy']:.0%}. The table below holds the numbers."
        )
        return Drawing(inline_svg(figure, "judges-figure", title, spoken), caption)


def _judges_table(judges: pd.DataFrame, caption: str, known: bool) -> Table:
    shares = [name for name in SHARES if name in judges and np.isfinite(judges[name]).any()]
    head = ["judge", *(SHARES[name] for name in shares), *(["weight"] if known else [])]
    partly = "not_asked" in judges and bool((judges["not_asked"] > 0).any())
    rows = [
        [
            str(row["judge"]),
            *(percent_with_interval(row, name) for name in shares),
            *([f"{row['weight']:+.2f}"] if known else []),
            f"{int(row['votes']):,}",
            f"{row['missing']:.0%}",
            *([f"{row['not_asked']:.0%}"] if partly else []),
        ]
        for _, row in judges.iterrows()
    ]
    return Table(caption, [*head, "votes", "missing", *(["not asked"] if partly else [])], rows)


def probabilities_section(
    held_out: HeldOut | None, classes: Sequence[str], method: str, *, degenerate: bool
) -> Section:
    """Return whether the probabilities are borne out on held-out labels, drawn and as a table."""
    title, name = "Calibrated probabilities", "probabilities"
    if held_out is None:
        return Section(
            title,
            [Paragraph("No labels were held out: nothing says whether the probabilities hold.")],
            name=name,
        )
    if degenerate:
        return Section(
            title,
            [
                Paragraph(
                    "The labels are all, or nearly all, the same: every map of the votes looks "
                    "perfectly calibrated on them, and a diagram would say nothing."
                )
            ],
            name=name,
        )
    which: list[int | None] = [1] if len(classes) == 2 else list(range(len(classes)))
    if len(which) > MOST_DIAGRAMS:
        which = [None]
    drawings = [_diagram(held_out, of, classes, method) for of in which]
    return Section(
        title,
        [
            Paragraph(
                f"Of the items that were given a probability of 70 %, about 70 % should turn out so. "
                f"Below is what became of held-out labels, over {held_out.splits} splits: "
                f"{method} was fitted without them. The table pools the answers by the probability "
                "of the most probable class; an item counts in every split that held it out, and "
                "once in the intervals."
            ),
            Row(drawings),
            _confidence_table(held_out),
        ],
        name=name,
    )


def _diagram(held_out: HeldOut, of: int | None, classes: Sequence[str], method: str) -> Drawing:
    found = reliability(held_out.log_probs, held_out.labels, bins=BINS, of=of)
    mass, predicted, observed = (np.asarray(part) for part in found)
    what = "the most probable class" if of is None else f"class {classes[of]}"
    off = float((mass * np.abs(predicted - observed)).sum() / mass.sum())
    used = np.flatnonzero(mass > 0)
    spoken = "; ".join(f"predicted {predicted[b]:.2f}, observed {observed[b]:.2f}" for b in used)
    with names_as_they_are():
        figure = reliability_diagrams({"": {method: found}}, title="")
        for legend in list(figure.legends):
            legend.remove()
        figure.set_size_inches(3.1, 3.05)
        svg = inline_svg(
            figure,
            f"reliability-{'top' if of is None else of}",
            f"Observed frequency against predicted probability of {what}",
            f"By bin of the predicted probability: {spoken}.",
        )
    return Drawing(
        svg,
        f"Probability of {what}: mean distance from the diagonal {off:.3f}. The area of a point is "
        "its share of the answers.",
    )


class Bin(NamedTuple):
    """The held-out answers whose most probable class has a probability in one of ten bins."""

    place: int
    """The bin: from `place` to `place + 1` tenths."""
    items: int
    share: float
    """Of all answers."""
    promised: float
    right: Interval


def confidence_bins(held_out: HeldOut, *, level: float = 0.95) -> list[Bin]:
    """Return how often the most probable class was right, by its probability, the lowest first.

    An item, or a group of items, counts once in the interval however often it was held out.
    """
    confidence = np.exp(held_out.log_probs).max(1)
    right = (held_out.log_probs.argmax(1) == held_out.labels).astype(float)
    bins = np.clip(np.ceil(confidence * BINS - 1e-12).astype(int) - 1, 0, BINS - 1)
    items = held_out.items if held_out.groups is None else held_out.groups[held_out.items]
    found = []
    for b in np.unique(bins):
        here = bins == b
        share, independent = right[here].mean(), np.asarray(float(len(np.unique(items[here]))))
        low, high = share_interval(np.asarray(share * independent), independent, level=level)
        found.append(
            Bin(
                int(b),
                len(np.unique(held_out.items[here])),
                float(here.mean()),
                float(confidence[here].mean()),
                Interval(float(share), float(low), float(high)),
            )
        )
    return found


def _confidence_table(held_out: HeldOut) -> Table:
    """Return how often the most probable class was right, by its probability."""
    rows = [
        (
            f"{b.place / BINS:.0%} to {(b.place + 1) / BINS:.0%}",
            f"{b.items:,}",
            f"{b.share:.0%}",
            f"{b.promised:.1%}",
            with_interval(b.right, percent=True),
        )
        for b in confidence_bins(held_out)
    ]
    return Table(
        "How often the most probable class was the label, by its probability [95 %]",
        ("probability", "items", "of all answers", "promised", "right"),
        rows[::-1],
    )


def decisions_section(
    answers: pd.DataFrame,
    classes: Sequence[str],
    decisions: Int[np.ndarray, " item"],
    expected_loss: Float[np.ndarray, " item"] | None,
    sets: Bool[np.ndarray, "item class"] | None,
    set_words: Sequence[str],
    loss: str,
    labelled: Bool[np.ndarray, " item"],
) -> Section:
    """Return the decisions by class, the conformal sets, and the items to look at first.

    `answers` is what `Coding.decode` returned: the item, then a column of probabilities per class.
    `expected_loss` is None for a rule, which says nothing of how often it is wrong.
    """
    made = np.bincount(decisions, minlength=len(classes))
    rows = []
    for k, name in enumerate(classes):
        here = decisions == k
        mean = answers.iloc[:, 1 + k][here].mean() if here.any() else np.nan
        own = [f"{mean:.1%}" if np.isfinite(mean) else "-"]
        if expected_loss is not None:
            own.append(f"{expected_loss[here].mean():z.3f}" if here.any() else "-")
        rows.append((name, f"{made[k]:,}", _share(int(made[k]), len(decisions)), *own))
    head = ["decision", "items", "share", "mean probability"]
    if expected_loss is not None:
        head.append("mean expected loss")
    blocks: list[Block] = [
        Paragraph(
            f"Each item gets the decision of least expected loss ({loss})."
            + (
                f" Over all {len(decisions):,} items the mean expected loss is "
                f"{expected_loss.mean():z.3f}."
                if expected_loss is not None
                else " This method is a rule: it says nothing of how often it is wrong."
            )
        ),
        Table("Decisions", head, rows),
    ]
    if sets is not None:
        blocks += [*map(Paragraph, set_words), _sets_table(sets, classes)]
    elif set_words:
        blocks += map(Paragraph, set_words)
    if expected_loss is not None:
        blocks.append(_first_items(answers, classes, decisions, expected_loss, sets, labelled))
    return Section("Decisions", blocks, name="decisions")


def _sets_table(sets: Bool[np.ndarray, "item class"], classes: Sequence[str]) -> Table:
    kinds, counts = np.unique(sets, axis=0, return_counts=True)
    order = np.lexsort((-counts, kinds.sum(1)))
    rows = [
        (_set_name(kinds[k], classes), f"{counts[k]:,}", _share(int(counts[k]), len(sets)))
        for k in order
    ]
    return Table("Conformal sets, the smallest first", ("set", "items", "share"), rows)


def _set_name(inside: Bool[np.ndarray, " class"], classes: Sequence[str]) -> str:
    return " | ".join(np.array(classes)[inside]) if inside.any() else "(empty)"


def _first_items(
    answers: pd.DataFrame,
    classes: Sequence[str],
    decisions: Int[np.ndarray, " item"],
    expected_loss: Float[np.ndarray, " item"],
    sets: Bool[np.ndarray, "item class"] | None,
    labelled: Bool[np.ndarray, " item"],
) -> Table | Paragraph:
    """Return the items of the largest expected loss; how certain an answer is, its set does not say."""
    doubt = np.where(labelled & ~labelled.all(), -np.inf, expected_loss)
    uncertain = int((doubt > UNCERTAIN).sum())
    which = "" if labelled.all() else " without a label"
    if not uncertain:
        return Paragraph(
            f"No item{which} has an expected loss above {UNCERTAIN:g}: by the probabilities, none "
            "needs a second look."
        )
    first = np.argsort(-doubt, kind="stable")[: min(FIRST_ITEMS, uncertain)]
    names = presentable(answers.iloc[first, 0])
    rows = [
        (
            name,
            *(f"{p:.2f}" for p in answers.iloc[i, 1 : 1 + len(classes)]),
            classes[decisions[i]],
            f"{expected_loss[i]:z.3f}",
            *([_set_name(sets[i], classes)] if sets is not None else []),
        )
        for name, i in zip(names, first.tolist(), strict=True)
    ]
    head = ["item", *(f"p({name})" for name in classes), "decision", "expected loss"]
    return Table(
        f"Items{which} with an expected loss above {UNCERTAIN:g}: "
        + (f"the {len(rows)} least certain of {uncertain:,}" if uncertain > len(rows) else "all")
        + ", look at these first",
        [*head, *(["set"] if sets is not None else [])],
        rows,
        words=(len(classes) + 1, *([len(classes) + 3] if sets is not None else [])),
    )


def labels_section(
    curve: Curve | None,
    n_labels: int,
    n_items: int,
    accuracy: float | None,
    level: float | None,
    method: str,
) -> Section:
    """Return what more labels would buy: measured on fewer labels, and by law on more.

    `accuracy` is that of a judge in the middle of the panel, `level` that of the conformal sets. No
    more labels are spoken of than there are items.
    """
    blocks: list[Block] = []
    if curve is not None and len(curve.labels) > 1:
        blocks += [
            *map(Paragraph, _gain_words(curve, method, more=n_items > n_labels)),
            *_curve_blocks(curve, method),
        ]
    else:
        blocks.append(
            Paragraph(
                f"With {n_labels} labels there are too few to see how the answers improve with "
                "their number: about 25 are needed, 50 to 100 are usually enough to calibrate on."
            )
        )
    if n_labels:
        blocks += _law_blocks(n_labels, n_items, accuracy, level)
    return Section("What more labels would buy", blocks, name="labels")


def _gain_words(curve: Curve, method: str, *, more: bool) -> list[str]:
    """Return what the last doubling of the labels did to the probabilities, and to the decisions.

    `more` is whether there are items left to label.
    """
    half, full = curve.labels[-2:]
    parts = [
        (name, what, gain)
        for name, what, gain in (
            ("held-out NLL", "probabilities", curve.gain),
            ("mean loss of the decisions", "decisions", curve.loss_gain),
        )
        if np.isfinite(gain.mean)
    ]
    said = [
        f"{method} was fitted again on half, a quarter, ... of the labels of every split, and judged "
        f"on the same held-out labels."
    ]
    said += [
        f"From {half} to {full} labels the {name} {_change(gain, what)}"
        for name, what, gain in parts
    ]
    if more and not any(gain.low > 0 for _, _, gain in parts):
        said.append("More labels would narrow the intervals, as the last table says.")
    return said


def _change(gain: Interval, what: str) -> str:
    mean, low, high = gain
    if low > 0:
        return (
            f"fell by {mean:z.3f} [{low:z.3f}, {high:z.3f}]: more labels still make the "
            f"{what} better."
        )
    if high < 0:
        return (
            f"rose by {-mean:z.3f} [{-high:z.3f}, {-low:z.3f}]: more labels of this kind do not make "
            f"the {what} better."
        )
    if low == high == 0:
        return f"did not change: there is no sign that more labels would make the {what} better."
    return (
        f"changed by {-mean:+z.3f} [{-high:+z.3f}, {-low:+z.3f}], which may be chance: there is no "
        f"clear sign that more labels would make the {what} better."
    )


def _curve_blocks(curve: Curve, method: str) -> list[Block]:
    rows = [
        (f"{n}", with_interval(nll), with_interval(loss))
        for n, nll, loss in zip(curve.labels, curve.nll, curve.loss, strict=True)
    ]
    if curve.constant is not None:
        nll, loss = (f"{value:z.3f}" if np.isfinite(value) else "-" for value in curve.constant)
        rows.append((f"the best constant answer, {curve.labels[-1]}", nll, loss))
    table = Table(
        "Held-out scores by the number of labels [95 %]", ("labels", "NLL", "mean loss"), rows
    )
    parts = {"held-out NLL": curve.nll, "mean loss of the decisions": curve.loss}
    drawings = []
    for number, (name, found) in enumerate(parts.items()):
        points = [
            (n, each) for n, each in zip(curve.labels, found, strict=True) if np.isfinite(each.mean)
        ]
        if len(points) < 2:
            continue
        frame = pd.DataFrame([each for _, each in points]).rename(columns={"mean": "value"})
        frame = frame.assign(labels=[n for n, _ in points], method=method, metric="score", panel="")
        with names_as_they_are():
            figure = curves(
                frame,
                "labels",
                panel="panel",
                metric="score",
                xlabel="labels",
                ylabel=name,
                title="",
            )
            for legend in list(figure.legends):
                legend.remove()
            figure.set_size_inches(3.4, 2.7)
            spoken = "; ".join(f"{n} labels: {with_interval(each)}" for n, each in points)
            svg = inline_svg(figure, f"growth-{number}", f"{name} by the number of labels", spoken)
        drawings.append(
            Drawing(svg, f"{name.capitalize()}, with 95 % intervals.".replace("nll", "NLL"))
        )
    return [Row(drawings), table]


def _law_blocks(
    n_labels: int, n_items: int, accuracy: float | None, level: float | None
) -> list[Block]:
    head, columns = ["labels"], []
    sizes = sorted({min(times * n_labels, n_items) for times in MORE})
    if accuracy is not None:
        head.append(f"accuracy of a judge who is right {accuracy:.0%} of the time")
        columns.append([_accuracy_range(accuracy, n) for n in sizes])
    if level is not None:
        head.append(f"coverage of conformal sets at {level:.0%}")
        columns.append([_coverage_range(round(n * THRESHOLD_SHARE), level) for n in sizes])
    if not columns:
        return []
    rows = [
        (f"{n}{', as now' * (n == n_labels)}{', all items' * (n == n_items)}", *cells)
        for n, *cells in zip(sizes, *columns, strict=True)
    ]
    said = (
        "This much is known without trying: what is counted on labels has an interval that narrows "
        "with the square root of their number."
    )
    if n_items == n_labels:
        said += f" All {n_items} items are labelled: more labels need more items with votes."
    elif sizes[-1] == n_items:
        said += f" There are {n_items} items: more labels than that need more items with votes."
    if level is not None:
        said += (
            " The coverages are those of probabilities that differ from item to item: where many "
            "are alike, as few votes make them, sets cover more."
        )
    return [Paragraph(said), Table("Ranges that follow from the number of labels", head, rows)]


def _accuracy_range(accuracy: float, n: int) -> str:
    low, high = share_interval(np.asarray(n * accuracy), np.asarray(float(n)), level=0.9)
    return f"{low:.0%} to {high:.0%} (90 %)"


def _coverage_range(n: int, level: float) -> str:
    law = coverage_law(n, level, COVERAGE_ITEMS)
    if law.low == 1.0:
        return "every set holds every class"
    return f"{law.low:.0%} to {law.high:.0%} (95 %)"


def method_section(
    chosen: Sequence[str],
    compared: Table | None,
    compared_words: Sequence[str],
    settings: Sequence[tuple[str, str]],
) -> Section:
    """Return how the answers came about: the method, what it was compared with, the settings."""
    blocks: list[Block] = [*map(Paragraph, chosen)]
    if compared is not None:
        blocks += [compared, *map(Paragraph, compared_words)]
    return Section(
        "Method and settings",
        blocks,
        [Section("Settings", [Facts(settings)], name="settings")],
        name="method",
    )


def rerun_section(
    command: str, answers_command: str, versions: Sequence[tuple[str, str]]
) -> Section:
    """Return the commands that make this page, and the table of all answers, again."""
    return Section(
        "To run it again",
        [
            Paragraph("This page, from the same files:"),
            Code(command),
            Paragraph("All answers as a table, from the same fit:"),
            Code(answers_command),
            Paragraph(
                "The same files, command and versions give the same numbers. The page holds no date "
                "and nothing that is fetched: it can be kept and mailed as it is."
            ),
            Facts(versions),
        ],
        name="rerun",
    )
