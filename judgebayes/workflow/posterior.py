"""`judgebayes posterior` and `judgebayes compare`: sample, check and compare models."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd

from judgebayes import __version__
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding
from judgebayes.inference import NUTS
from judgebayes.inference import posterior as stored
from judgebayes.inference.nuts import Sampling
from judgebayes.inference.sampled import Described
from judgebayes.io.options import split_names
from judgebayes.posteriors.checks import check, in_words
from judgebayes.posteriors.compare import ComparedScores, one_left_out, targets
from judgebayes.posteriors.compare import compare as compared_on_targets
from judgebayes.posteriors.models import build, sample, variant_of
from judgebayes.posteriors.story import TARGETS
from judgebayes.progress import stepped
from judgebayes.sentence import rounded, with_interval
from judgebayes.show.page import Block, Code, Findings, Paragraph, Plot, Table
from judgebayes.show.tables import ends_of
from judgebayes.show.versions import versions
from judgebayes.votes.array import Data
from judgebayes.workflow.asking import data_of
from judgebayes.workflow.data import labelled_words
from judgebayes.workflow.machine import INTERRUPTED
from judgebayes.workflow.options import Fixed, check_choice
from judgebayes.workflow.posterior_options import CompareRequest, PosteriorRequest, read_priors
from judgebayes.workflow.records import with_options
from judgebayes.workflow.results import Answer, Parts
from judgebayes.workflow.systems import generators_of

FAULTS = "faults_of_sampling"
"""The attribute of a file with the problems of its chains, a sentence a line."""
FIGURES = (".png", ".pdf", ".svg")
ROWS = 24
"""The largest number of rows of the printed summary."""
CHECKS = 12
FIXED = 1e-9
VOTE_MODELS = ("dawid-skene", "one-coin", "irt", "beta-binomial", "generator-validator")
"""Models of votes given labels; labels that are all the same are accepted for them."""
UNLABELLED = ("dawid-skene", "generator-validator")
"""Models that can be fitted to votes without labels."""


@dataclass(frozen=True, repr=False, kw_only=True)
class SampledPosterior(Answer):
    """The posterior of a model on a user's votes, and what checks say of it."""

    schema: ClassVar[str] = "judgebayes.posterior/1"
    story: Described
    """The model with its data."""
    draws: Any
    """The draws, in ArviZ's container."""
    checks: pd.DataFrame
    """Statistics of the data and of replicated data (`judgebayes.posteriors.checks.replications`)."""
    findings: list[Finding]
    """What is wrong with the chains, or that they agree; then how well the model fits the data, and
    predicts each item from the others."""


def _of_file(request: PosteriorRequest, path: Path, drawn: Any, *, reliable: bool) -> list[Block]:
    """Return where the posterior is, and the command to run next."""
    again = f"{drawn.attrs['command']} --overwrite"
    netcdf, usual = path.suffix == stored.NETCDF, NUTS()
    opener = "arviz.from_netcdf" if netcdf else "judgebayes.inference.posterior.load"
    size = path.stat().st_size / 1e6
    where = Paragraph(f"The posterior is in {path} ({size:.1f} MB); open it with {opener}.")
    if not reliable:
        fault = Finding("bad", "Do not use it: the chains failed (see above).")
        draws = max(2 * request.draws, usual.draws)
        warmup = max(2 * request.warmup, usual.warmup)
        more = Code(f"{again} --draws {draws} --warmup {warmup}")  # the last value counts
        return [where, Findings([fault]), Paragraph("Next, more draws into the same file:"), more]
    if netcdf:  # which is not read
        return [where]
    text = "Next, sample a second model of the same data, and compare their predictions:"
    line = f"judgebayes compare {shlex.quote(str(path))} OTHER.npz"
    return [where, Paragraph(text), Code(line)]


def _figure(drawn: Any, story: Described) -> Plot:
    def draw() -> Any:
        names = list(story.shown)
        drawing = stored.arviz().plot_forest(drawn, var_names=names, combined=True)
        return drawing if hasattr(drawing, "savefig") else drawing[0].figure  # ArviZ 1, 0.20

    title = "The posterior's intervals"
    return Plot(draw, "posterior", title, "The table has the numbers.", title)


@with_options
@in_float64
def posterior(
    request: Annotated[
        PosteriorRequest,
        Fixed(dict.fromkeys(("out", "summary", "plot", "html")) | {"overwrite": False}),
    ],
    command: str = "judgebayes posterior",
) -> SampledPosterior:
    """Sample a model's posterior, check its fit to the data, and save it for ArviZ.

    The function behind `judgebayes posterior`, with the same options; `votes` and `labels` are paths or
    tables, or `votes` is what `read` returned. `draws` of the result are ArviZ's container. An
    interrupted run has the draws so far: a shorter run.

    Raises
    ------
    JudgeBayesError
        For bad input, a model that does not suit it, or an existing file without `overwrite`.
    """
    variant = variant_of(request.model, request.variant)
    prior = read_priors(request.model, request.prior or ())
    _check(request)
    data, words = read_data(request)
    story = build(data, request.model, variant, prior)
    nuts = NUTS(
        draws=request.draws,
        warmup=request.warmup,
        chains=request.chains,
        target_accept=request.target_accept,
    )
    what = ", ".join([request.model, variant, *(request.prior or ())])
    settings = (
        f"Sampling {what}: {nuts.chains} chains of {nuts.warmup} warm-up steps and {nuts.draws} "
        f"draws, seed {request.seed}."
    )
    attributes = _attributes(request, data, variant, command, nuts)
    attributes["prior"] = json.dumps(vars(story.problem.model)["prior"]._asdict())
    drawn = _sampled(story, nuts, request.seed, attributes)
    of_chains, kept = stored.diagnose(drawn, story.watched), int(drawn["posterior"].sizes["draw"])
    if kept < nuts.draws:
        note = f"Interrupted: all below is of {kept} of {nuts.draws} draws of each chain."
        of_chains = [Finding("note", note), *of_chains]
    bad = [each.sentence for each in of_chains if each.severity == "bad"]
    drawn.attrs[FAULTS] = "\n".join(bad)
    if request.out is not None:
        stored.save(drawn, request.out, overwrite=request.overwrite)
    summary = stored.summary(drawn).rename_axis("parameter").reset_index()
    figure, checks = _figure(drawn, story), check(drawn)
    of_model = in_words(checks, story.advice)
    if bad:  # such draws are evidence neither for the model nor against it
        of_model = [replace(each, severity="note") for each in of_model]
    for target in targets(drawn):
        of_model += one_left_out(drawn, target)
    blocks: list[Block] = [*map(Paragraph, [*words, *story.words, settings])]
    blocks += [*_summary_blocks(summary, story), *_said(of_chains), figure]
    if bad:
        text = "The results below are not reliable until this is fixed."
        blocks.append(Findings([Finding("bad", text)]))
    blocks += [*_check_blocks(checks), *_said(of_model)]
    if request.out is not None:
        blocks += _of_file(request, request.out, drawn, reliable=not bad)

    def draw(path: Path) -> None:
        figure.draw().savefig(path, bbox_inches="tight")

    own = {name: drawn.attrs[name] for name in ("model", "variant", "seed")}
    own |= {"chains": request.chains, "draws": kept, "reliable": not bad}
    parts = Parts(
        blocks=blocks,
        tables={
            "parameters": summary,
            "checks": checks[["statistic", "observed", "replicated", "p"]],
        },
        numbers={"posterior_file": request.out} | own,
        files={
            "summary": ("the summary of all parameters", summary),
            "plot": ("the posterior's intervals", draw),
        },
        exit_code=INTERRUPTED if kept < nuts.draws else 0,
    )
    return SampledPosterior(
        parts=parts, story=story, draws=drawn, checks=checks, findings=[*of_chains, *of_model]
    )


@dataclass(frozen=True, repr=False, kw_only=True)
class ComparedPosteriors(Answer):
    """Which of several posteriors of the same data predicts it best."""

    schema: ClassVar[str] = "judgebayes.compared/1"
    draws: dict[str, Any]
    """The posteriors by file, in ArviZ's containers."""
    compared: list[ComparedScores]
    """A comparison for each target."""
    findings: list[Finding]
    """What was wrong with the chains when they were sampled, and which posterior is better."""


@with_options
def compare(
    request: Annotated[CompareRequest, Fixed({"html": None})],
) -> ComparedPosteriors:
    """Compare how well posteriors of the same data predict each item from all the others (PSIS-LOO).

    The function behind `judgebayes compare`.

    Raises
    ------
    JudgeBayesError
        If a file cannot be read, or the files are of different data or share no site.
    """
    paths = request.files
    if len(paths) < 2:
        raise JudgeBayesError("Name two or more files to compare.")
    if len(set(paths)) < len(paths):
        raise JudgeBayesError("A file is named twice; name different files.")
    if request.site is not None:
        check_choice("--site", request.site, TARGETS)
    files = {str(path): stored.load(Path(path)) for path in paths}
    compared = compared_on_targets(files, request.site)
    of_chains = [
        Finding("bad", f"{name}: {sentence}")
        for name, data in files.items()
        for sentence in str(data.attrs.get(FAULTS, "")).splitlines()
    ]
    first = next(iter(files.values()))
    blocks: list[Block] = [Paragraph(f"All of {first.attrs['data']}."), Findings(of_chains)]
    tables = {each.target: _comparison_table(each) for each in compared}
    for each in compared:
        blocks += _comparison_blocks(each, tables[each.target], files)
    findings = [*of_chains, *chain.from_iterable(each.words() for each in compared)]
    parts = Parts(blocks=blocks, tables=tables)
    return ComparedPosteriors(parts=parts, draws=files, compared=compared, findings=findings)


def _check(request: PosteriorRequest) -> None:
    """Check options and output files before sampling, which takes minutes."""
    if request.generator is not None and request.model != "generator-validator":
        raise JudgeBayesError(
            f"generator is for --model generator-validator; {request.model} has no generators."
        )
    if not 0.5 <= request.target_accept < 1:
        raise JudgeBayesError(
            f"--target-accept is {request.target_accept:g}; it must be between 0.5 and 1, such as 0.9."
        )
    if request.out is not None:
        stored.check_format(request.out)
    if request.plot is not None and request.plot.suffix not in FIGURES:
        raise JudgeBayesError(f"--plot {str(request.plot)!r} must end in {', '.join(FIGURES)}.")
    for path in (request.out, request.summary, request.plot):
        if path is not None and path.exists() and not request.overwrite:
            raise JudgeBayesError(
                f"{str(path)!r} exists already; choose another file, or use --overwrite."
            )


def read_data(request: PosteriorRequest) -> tuple[Data, list[str]]:
    """Return the data with its names, and sentences about what was read.

    Raises
    ------
    JudgeBayesError
        For bad input, or if the model needs labels or generators and there are none.
    """
    named = tuple(split_names(request.generator or ""))
    given = data_of(request, named=named)
    labels = given.labels
    if not request.allow_degenerate and request.model not in VOTE_MODELS:
        given.coding.refuse_constant(labels, given.opened.label or "label")
    if not given.labelled and request.model not in UNLABELLED:
        raise JudgeBayesError(
            f"--model {request.model} needs labels, and there are none; add them with --labels FILE or "
            "--label COLUMN."
        )
    generators: list[str] = []
    of_item = None
    if request.model == "generator-validator":
        generators, of_item = generators_of(given, request.generator)
    coding, classes = given.coding, given.coding.classes
    items, judges = (tuple(map(str, names)) for names in (coding.items, coding.judges))
    names = tuple(classes.names)
    data = Data(
        given.votes, labels, items, judges, names, classes.pairwise, of_item, tuple(generators)
    )
    words = [*given.words(), labelled_words(labels, classes)]
    if generators:
        words.append(f"{len(generators)} generators; a vote for {classes.names[-1]!r} means valid.")
    return data, words


def _attributes(
    request: PosteriorRequest, data: Data, variant: str, command: str, nuts: NUTS
) -> dict[str, str | int]:
    """Return the attributes of the file: model, data, settings, command and versions."""
    settings = {k: v for k, v in asdict(nuts).items() if k != "score"}
    return {
        "model": request.model,
        "variant": variant,
        "data": data.sizes(),
        "data_checksum": data.checksum(),
        "classes": json.dumps(data.classes),
        "seed": request.seed,
        "settings": json.dumps(settings),
        "command": command,
        "versions": json.dumps({**dict(versions()), "arviz": version("arviz")}),
        "judgebayes_version": __version__,
    }


def _sampled(story: Described, nuts: NUTS, seed: int, attributes: dict[str, str | int]) -> Any:
    with stepped(nuts.warmup + nuts.draws) as update:

        def on_progress(so_far: Sampling) -> None:
            if update is not None:
                update(so_far.steps, _in_words(so_far, nuts))

        return sample(
            story,
            nuts,
            seed,
            on_progress=None if update is None else on_progress,
            attributes=attributes,
        )


def _in_words(so_far: Sampling, nuts: NUTS) -> str:
    """Return the text of the progress bar: the speed, and how many draws diverged."""
    rate = f"{so_far.per_second:,.0f} a second"
    if so_far.steps <= nuts.warmup:
        return f"warming up, {rate}"
    return f"draws, {rate}; {so_far.diverging} diverged"


def _said(findings: Sequence[Finding]) -> list[Block]:
    """Return findings as blocks; notes are plain sentences."""
    return [Paragraph(f.text) if f.severity == "note" else Findings([f]) for f in findings]


def _summary_blocks(table: pd.DataFrame, story: Described) -> list[Block]:
    """Return the parameters that matter, of many the highest and the lowest, and what they mean."""
    table = table.assign(variable=table["parameter"].str.replace(r"\[.*", "", regex=True))
    of = [table[table["variable"] == name] for name in story.shown]
    shown = pd.concat(part for part in of if len(part)).set_index("parameter")
    parts = [part for _, part in shown.groupby("variable", sort=False)]
    each = max(ROWS // len(parts), 4) if len(shown) > ROWS else len(shown)
    how: dict[str, Any] = {"by": "mean", "ascending": False, "kind": "stable"}
    ends = (ends_of(p.sort_values(**how), each) if len(p) > each else p for p in parts)
    printed = pd.concat(ends)
    rows = []
    for name, row in printed.iterrows():
        fixed = row["sd"] < FIXED  # constant, up to rounding
        sd = 0.0 if fixed else row["sd"]
        cells = [f"{x:.3g}" for x in (row["mean"], sd, row["low"], row["high"])]
        ess = np.nan if fixed else min(row["ess_bulk"], row["ess_tail"])
        rows.append([str(name), *cells, rounded(ess, ".0f"), rounded(row["r_hat"], ".3f")])
    title = "Posterior: mean, 90 % interval, effective sample size (ESS) and R-hat"
    if len(printed) < len(shown):
        title += (
            f"; {len(shown) - len(printed)} of {len(shown)} rows, between the highest and the lowest, "
            "are not shown (--summary FILE writes all)"
        )
    names = dict.fromkeys(shown["variable"])
    meanings = [f"{name}: {story.meanings[name]}." for name in names if name in story.meanings]
    head = ("", "mean", "sd", "5 %", "95 %", "ESS", "R-hat")
    return [Table(title, head, rows), *map(Paragraph, meanings)]


def _check_blocks(checks: pd.DataFrame) -> list[Block]:
    """Return the first four checks and those farthest from the model, and what p is."""
    farthest = checks.iloc[4:].nlargest(CHECKS - 4, "distance")
    printed = pd.concat([checks.iloc[:4], farthest]).sort_index()
    rows = [
        (
            row.statistic,
            f"{row.observed:.3f}",
            with_interval((row.replicated, row.low, row.high)),
            f"{row.p:.3f}",
        )
        for row in printed.itertuples()
    ]
    title = "Posterior predictive checks: replicated data from the fitted model, and observed"
    text = (
        "p: the share of replications above the observed value; near 0 or 1, the model does not fit "
        "it."
    )
    if len(printed) < len(checks):
        text += f" {len(checks) - len(printed)} more checks, closer to the model, are not shown."
    head = ("share or rate", "observed", "replicated [90 %]", "p")
    return [Table(title, head, rows), Paragraph(text)]


def _comparison_table(comparison: ComparedScores) -> pd.DataFrame:
    """Return a row per posterior: its log score, and how far it is behind the best."""
    rows = [
        (
            name,
            float(loo["elpd"].sum()),
            comparison.n_items,
            *comparison.behind(name),
            len(stored.unreliable(loo)),
        )
        for name, loo in comparison.scores.items()
    ]
    head = ["posterior", "log_score", "items", "behind", "standard_error", "unreliable"]
    return pd.DataFrame(rows, columns=head)


def _comparison_blocks(
    comparison: ComparedScores, table: pd.DataFrame, draws: Mapping[str, Any]
) -> list[Block]:
    rows: list[tuple[str, ...]] = []
    for row in table.to_dict("records"):
        attributes = draws[row["posterior"]].attrs
        model = [attributes[key] for key in ("model", "variant") if key in attributes]
        scores = (f"{row['log_score']:.1f}", f"{row['log_score'] / row['items']:.3f}")
        behind = f"{row['behind']:.1f} ± {row['standard_error']:.1f}" if rows else ""
        rows.append((row["posterior"], ", ".join(model), *scores, behind, str(row["unreliable"])))
    title = (
        f"Predicting {TARGETS[comparison.target]}, from all other items (PSIS-LOO, "
        f"{comparison.n_items} items)"
    )
    head = ("posterior", "model", "log score", "per item", "behind", "k > 0.7")
    blocks: list[Block] = [Table(title, head, rows, words=[1])]
    if comparison.only_common:
        blocks.append(Paragraph("Items that only some of the models predict are left out."))
    return [*blocks, *_said(comparison.words())]
