"""`judgebayes posterior` and `judgebayes posterior-compare`: sample, check and compare models."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgebayes import __version__
from judgebayes.cli.console import MARKS, say, say_commands, say_findings, say_plainly, show_rows
from judgebayes.cli.machine import INTERRUPTED
from judgebayes.cli.priors import read_priors
from judgebayes.cli.requests import PosteriorRequest
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding
from judgebayes.inference import NUTS, posterior
from judgebayes.inference.nuts import Sampling
from judgebayes.inference.sampled import Described
from judgebayes.io.options import split_names
from judgebayes.io.tables import check_writable, write_table
from judgebayes.posteriors.checks import Check, check, in_words
from judgebayes.posteriors.compare import Compared, compare, one_left_out, targets
from judgebayes.posteriors.models import build, sample, variant_of
from judgebayes.posteriors.story import TARGETS
from judgebayes.progress import stepped
from judgebayes.sentence import rounded, sentences, with_interval
from judgebayes.show.tables import ends_of
from judgebayes.show.versions import versions
from judgebayes.votes.array import Data
from judgebayes.workflow.asking import data_of
from judgebayes.workflow.data import labelled_words
from judgebayes.workflow.machine import CommandResult
from judgebayes.workflow.options import check_choice
from judgebayes.workflow.results import rows_of
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


@in_float64
def sample_posterior(request: PosteriorRequest, command: Sequence[str]) -> CommandResult:
    """Read the data, sample, write the file, print summary and checks, and return them.

    Raises
    ------
    JudgeBayesError
        For bad input, a model that does not suit it, or an existing file without `--overwrite`.
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
    say(*words, *story.words)
    say(
        f"Sampling {what}: {nuts.chains} chains of {nuts.warmup} warm-up steps and {nuts.draws} "
        f"draws, seed {request.seed}."
    )
    attributes = _attributes(request, data, variant, command, nuts)
    attributes["prior"] = json.dumps(vars(story.problem.model)["prior"]._asdict())
    posterior.arviz()  # loaded now, so that an interrupted run is saved at once
    drawn = _sampled(story, nuts, request.seed, attributes)
    kept = int(drawn.attrs["draws_kept"])
    values = {
        "posterior_file": request.out,
        "model": request.model,
        "variant": variant,
        "seed": request.seed,
        "chains": nuts.chains,
        "draws": kept,
    }
    if kept < nuts.draws:
        note = (
            f"Interrupted: {kept} of {nuts.draws} draws of each chain are in {request.out}, without "
            "checks and predictions."
        )
        findings = [Finding("bad", note)]
    else:
        findings = posterior.diagnose(drawn, story.watched)
    bad = [each.sentence for each in findings if each.severity == "bad"]
    drawn.attrs[FAULTS] = "\n".join(bad)
    posterior.save(drawn, request.out, overwrite=request.overwrite)
    if kept < nuts.draws:
        _say_all(findings)
        whole_run = shlex.join([*command, "--overwrite"])
        say_commands(("Next, the whole run into the same file:", whole_run))
        values |= {"reliable": False, "sentences": bad, "tables": {}}
        return CommandResult(values, findings, INTERRUPTED)
    summary = posterior.summary(drawn)
    table = summary.rename_axis("parameter").reset_index()
    shown = _rows_of(summary, story.shown)
    _print_summary(shown, story)
    _say_all(findings)
    if bad:
        say("The results below are not reliable until this is fixed.", mark=MARKS["bad"])
    checks = check(drawn)
    _print_checks(checks)
    messages = in_words(checks, story.advice)
    # Draws that are not from the posterior are evidence neither for the model nor against it.
    messages = [replace(m, severity="note") for m in messages] if bad else messages
    _say_all(messages)
    for target in targets(drawn):
        predictions = one_left_out(drawn, target)
        _say_all(predictions)
        messages += predictions
    if request.table is not None:
        write_table(table, request.table)
        say(f"The summary of all {len(table)} parameters is in {request.table}.")
    if request.plot is not None:
        drawing = posterior.arviz().plot_forest(drawn, var_names=list(story.shown), combined=True)
        save = getattr(drawing, "savefig", None) or drawing[0].figure.savefig  # ArviZ 1, 0.20
        save(request.plot, bbox_inches="tight")
        say(f"The posterior's intervals are in {request.plot}.")
    size, netcdf = request.out.stat().st_size / 1e6, request.out.suffix == posterior.NETCDF
    opener = "arviz.from_netcdf" if netcdf else "judgebayes.inference.posterior.load"
    say(f"The posterior is in {request.out} ({size:.1f} MB); open it with {opener}.")
    tables = {
        "parameters": rows_of(table),
        "checks": rows_of(_replications(checks).drop(columns=["low", "high"])),
    }
    said = sentences([*words, *story.words])
    values |= {"reliable": not bad, "sentences": said, "tables": tables}
    result = CommandResult(values, [*findings, *messages])
    if bad:
        say("Do not use it: the chains failed (see above).", mark=MARKS["bad"])
        draws, warmup = max(2 * nuts.draws, NUTS().draws), max(2 * nuts.warmup, NUTS().warmup)
        more = ["--draws", str(draws), "--warmup", str(warmup), "--overwrite"]
        again = shlex.join([*command, *more])  # of an option, the last value counts
        say_commands(("Next, more draws into the same file:", again))
        return result
    if netcdf:  # posterior-compare does not read it
        return result
    comparison = f"judgebayes posterior-compare {shlex.quote(str(request.out))} OTHER.npz"
    say_commands(
        (
            "Next, sample a second model of the same data, and compare their predictions:",
            comparison,
        )
    )
    return result


def compare_posteriors(paths: Sequence[Path], site: str | None) -> CommandResult:
    """Read posteriors of the same data, print which predicts it best (PSIS-LOO), and return the scores.

    Raises
    ------
    JudgeBayesError
        If a file cannot be read, or the files are of different data or share no site.
    """
    if len(paths) < 2:
        raise JudgeBayesError("Name two or more files to compare.")
    if len(set(paths)) < len(paths):
        raise JudgeBayesError("A file is named twice; name different files.")
    if site is not None:
        check_choice("--site", site, TARGETS)
    files = {str(path): posterior.load(path) for path in paths}
    compared = compare(files, site)
    say(f"All of {next(iter(files.values())).attrs['data']}.")
    findings = [
        Finding("bad", f"{name}: {sentence}")
        for name, data in files.items()
        for sentence in str(data.attrs.get(FAULTS, "")).splitlines()
    ]
    _say_all(findings)
    tables = {each.target: _comparison_rows(each) for each in compared}
    for comparison in compared:
        _print_comparison(comparison, tables[comparison.target], files)
        _say_all(comparison.words())
        findings += comparison.words()
    return CommandResult({"tables": tables}, findings)


def _say_all(findings: Sequence[Finding]) -> None:
    """Print findings behind their marks; notes have none."""
    say_findings(findings, MARKS | {"note": ""})


def _comparison_rows(comparison: Compared) -> list[dict[str, Any]]:
    rows = []
    for name, loo in comparison.scores.items():
        gap, error = comparison.behind(name)
        rows.append(
            {
                "posterior": name,
                "log_score": float(loo["elpd"].sum()),
                "items": comparison.n_items,
                "behind": gap,
                "standard_error": error,
                "unreliable": len(posterior.unreliable(loo)),
            }
        )
    return rows


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
    check_writable(request.out, table=False)
    posterior.check_format(request.out)
    check_writable(request.table)
    check_writable(request.plot, table=False)
    if request.plot is not None and request.plot.suffix not in FIGURES:
        raise JudgeBayesError(f"--plot {str(request.plot)!r} must end in {', '.join(FIGURES)}.")
    for path in (request.out, request.table, request.plot):
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
    request: PosteriorRequest, data: Data, variant: str, command: Sequence[str], nuts: NUTS
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
        "command": shlex.join(command),
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
    """Return the text of the progress bar: the speed, and how well the chains agree."""
    rate = f"{so_far.per_second:,.0f} a second"
    if so_far.steps <= nuts.warmup:
        return f"warming up, {rate}"
    agreement = f"; R-hat {so_far.rhat:.3f}, ESS {so_far.ess:.0f}"
    known = agreement if np.isfinite(so_far.rhat) else ""
    return f"draws, {rate}{known}; {so_far.diverging} diverged"


def _rows_of(table: pd.DataFrame, shown: Sequence[str]) -> pd.DataFrame:
    """Return the rows of these variables, in their order, with a column `variable`."""
    variable = table.index.str.replace(r"\[.*", "", regex=True)
    table = table.assign(variable=variable)
    parts = [table[table["variable"] == name] for name in shown]
    return pd.concat([part for part in parts if len(part)])


def _ranked(part: pd.DataFrame) -> pd.DataFrame:
    return part.sort_values("mean", ascending=False, kind="stable")


def _print_summary(shown: pd.DataFrame, story: Described) -> None:
    parts = [part for _, part in shown.groupby("variable", sort=False)]
    each = max(ROWS // len(parts), 4) if len(shown) > ROWS else len(shown)
    printed = pd.concat(
        [part if len(part) <= each else ends_of(_ranked(part), each) for part in parts]
    )
    rows = []
    for name, row in printed.iterrows():
        fixed = row["sd"] < FIXED  # constant, up to rounding
        sd = 0.0 if fixed else row["sd"]
        cells = [f"{x:.3g}" for x in (row["mean"], sd, row["low"], row["high"])]
        ess = np.nan if fixed else min(row["ess_bulk"], row["ess_tail"])
        rows.append([str(name), *cells, rounded(ess, ".0f"), rounded(row["r_hat"], ".3f")])
    title = "Posterior: mean, 90 % interval, effective sample size (ESS) and R-hat"
    show_rows(title, ("", "mean", "sd", "5 %", "95 %", "ESS", "R-hat"), rows)
    if len(printed) < len(shown):
        say(
            f"{len(shown) - len(printed)} of {len(shown)} rows, between the highest and the lowest, "
            "are not shown; --table FILE writes all."
        )
    names = dict.fromkeys(shown["variable"])
    say(*(f"{n}: {story.meanings[n]}." for n in names if n in story.meanings))
    say_plainly("")


def _replications(checks: Sequence[Check]) -> pd.DataFrame:
    """Return a row per check: what was observed, and what the fitted model replicates (90 %)."""
    rows = [
        (c.name, c.observed, c.replicated.mean(), *np.quantile(c.replicated, (0.05, 0.95)), c.p)
        for c in checks
    ]
    return pd.DataFrame(rows, columns=["statistic", "observed", "replicated", "low", "high", "p"])


def _print_checks(checks: Sequence[Check]) -> None:
    printed = _replications(_most_extreme(checks, CHECKS))
    rows = [
        (name, f"{observed:.3f}", with_interval(ends), f"{p:.3f}")
        for name, observed, *ends, p in printed.itertuples(index=False)
    ]
    title = "Posterior predictive checks: replicated data from the fitted model, and observed"
    show_rows(title, ("share or rate", "observed", "replicated [90 %]", "p"), rows)
    say(
        "p: the share of replications above the observed value; near 0 or 1, the model does not fit it."
    )
    if len(printed) < len(checks):
        rest = len(checks) - len(printed)
        say(f"{rest} more checks, closer to the model, are not shown.")


def _most_extreme(checks: Sequence[Check], most: int) -> list[Check]:
    """Return the first four checks and those farthest from the model, in their order."""
    if len(checks) <= most:
        return list(checks)
    rest = sorted(range(4, len(checks)), key=lambda i: -checks[i].distance)
    return [checks[i] for i in sorted([*range(4), *rest[: most - 4]])]


def _print_comparison(
    comparison: Compared, rows: list[dict[str, Any]], files: dict[str, Any]
) -> None:
    cells: list[tuple[str, ...]] = []
    for row in rows:
        attributes = files[row["posterior"]].attrs
        model = [attributes[key] for key in ("model", "variant") if key in attributes]
        scores = (f"{row['log_score']:.1f}", f"{row['log_score'] / row['items']:.3f}")
        behind = f"{row['behind']:.1f} ± {row['standard_error']:.1f}" if cells else ""
        cells.append((row["posterior"], ", ".join(model), *scores, behind, str(row["unreliable"])))
    title = (
        f"Predicting {TARGETS[comparison.target]}, from all other items (PSIS-LOO, "
        f"{comparison.n_items} items)"
    )
    head = ("posterior", "model", "log score", "per item", "behind", "k > 0.7")
    show_rows(title, head, cells, range(2))
    if comparison.only_common:
        say("Items that only some of the models predict are left out.")
