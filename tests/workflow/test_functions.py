"""Functions of `judgebayes` return what their commands write, and print nothing."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from few_draws import with_few_draws
from runner import CliRunner

import judgebayes as jb
from judgebayes.cli import app
from judgebayes.show.page import Findings


class Case(NamedTuple):
    """A command with its options, and the table of its function's result that it writes."""

    name: str
    votes: str
    labels: str | None
    options: dict[str, Any]
    table: str
    reading: tuple[str, ...] = ()
    """Those of the options that `jb.read` takes."""

    @property
    def function(self) -> Callable[..., Any]:
        return getattr(jb, self.name)

    def files(self, folder: Path) -> list[Path]:
        return [folder / name for name in (self.votes, self.labels) if name is not None]


CASES = {
    "calibrate": Case(
        "calibrate",
        "votes.csv",
        "labels.csv",
        {"method": "sc", "calibrator": "none", "splits": 3, "seed": 2, "conformal": 0.8},
        "answers",
    ),
    "ensemble": Case(
        "ensemble", "generators.csv", "valid.csv", {"k": "1:9", "target": "these"}, "errors"
    ),
    "diagnose": Case("diagnose", "votes.csv", "labels.csv", {"seed": 3}, "judges"),
    "groups": Case(
        "diagnose", "generators.csv", "valid.csv", {"group": "topic"}, "judges", ("group",)
    ),
    "precision": Case("precision", "generators.csv", "valid.csv", {"seed": 1}, "generators"),
    "in part": Case("precision", "generators.csv", "some.csv", {"next_labels": 7}, "generators"),
}
each_case = pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))


@pytest.fixture(scope="module", autouse=True)
def _few_draws() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        with_few_draws(patch)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of `judgebayes example`, and votes on outputs of generators."""
    folder = tmp_path_factory.mktemp("files")
    made = CliRunner().invoke(app, ["example", str(folder)])
    assert made.exit_code == 0, made.output
    rng = np.random.default_rng(0)
    rows, gold = [], []
    for name, share in (("alpha", 0.9), ("beta", 0.7), ("gamma", 0.5)):
        for i in range(60):
            item, label = f"{name} {i}", int(rng.random() < share)
            gold.append((item, label))
            right = rng.random(3) < 0.85
            judged = zip(("one", "two", "three"), right, strict=True)
            rows += [(item, name, i // 4, j, label if ok else 1 - label) for j, ok in judged]
    columns = ["item", "generator", "topic", "judge", "vote"]
    pd.DataFrame(rows, columns=columns).to_csv(folder / "generators.csv", index=False)
    labels = pd.DataFrame(gold, columns=["item", "label"])
    known = labels[~labels["item"].str.startswith("gamma")]
    known.to_csv(folder / "valid.csv", index=False)
    known[::3].to_csv(folder / "some.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def result_of(folder: Path) -> Callable[[Case], Any]:
    """Return the result of each function on the files, computed once."""
    results: dict[int, Any] = {}

    def of(case: Case) -> Any:
        key = list(CASES.values()).index(case)
        if key not in results:
            results[key] = case.function(*case.files(folder), **case.options)
        return results[key]

    return of


def different(a: dict[str, pd.DataFrame], b: dict[str, pd.DataFrame]) -> list[str]:
    """Return the tables that are not in both results, or are not the same to the last bit."""
    lone = [*(a.keys() ^ b.keys())]
    return lone + [name for name in a.keys() & b.keys() if not a[name].equals(b[name])]


@each_case
def test_the_command_writes_the_functions_table_to_the_last_bit(
    case: Case, folder: Path, result_of: Callable[[Case], Any], tmp_path: Path
) -> None:
    args: list[object] = [case.name, folder / case.votes, "--out", tmp_path / "out.parquet"]
    args += [] if case.labels is None else ["--labels", folder / case.labels]
    for name, value in case.options.items():
        option = {"next_labels": "--next"}.get(name, f"--{name.replace('_', '-')}")
        args += [option] if value is True else [option, value]
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == 0, (done.output, done.exception)
    table = result_of(case).tables[case.table]
    written = pd.read_parquet(tmp_path / "out.parquet")
    pd.testing.assert_frame_equal(written, table, check_exact=True, check_index_type=False)
    result = result_of(case)
    texts = [
        each.text
        for block in result.blocks
        if isinstance(block, Findings)
        for each in block.findings
    ]
    assert {*texts} <= {*result.sentences}
    for each in result.sentences:
        assert each in done.output


class Stream:
    """A table that has nothing but the Arrow interface."""

    def __init__(self, table: pd.DataFrame) -> None:
        self._table = pa.Table.from_pandas(table)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def as_polars(table: pd.DataFrame) -> object:
    return pytest.importorskip("polars").from_pandas(table)


FORMS = {
    "pandas": lambda table: table,
    "pyarrow": pa.Table.from_pandas,
    "stream": Stream,
    "polars": as_polars,
}


# Every command reads tables by the same function, so the slowest is run on one form only.
@pytest.mark.parametrize(
    ("case", "form"),
    [
        pytest.param(case, form, id=f"{name}-{form}")
        for name, case in CASES.items()
        for form in FORMS
        if name != "ensemble" or form == "pandas"
    ],
)
def test_tables_give_what_files_give(
    case: Case, form: str, folder: Path, result_of: Callable[[Case], Any]
) -> None:
    tables = [FORMS[form](pd.read_csv(path)) for path in case.files(folder)]
    assert different(case.function(*tables, **case.options).tables, result_of(case).tables) == []


MARKUP = "<i>x</i> & [red]"


@pytest.mark.parametrize("name", ["calibrate", "ensemble", "diagnose", "precision", "read"])
def test_a_notebook_shows_names_and_not_their_markup(name: str, folder: Path) -> None:
    votes = pd.read_csv(folder / "generators.csv")
    votes = votes.replace({"judge": {"one": MARKUP}, "generator": {"beta": MARKUP}})
    votes = votes.rename(columns={"vote": f"vote {MARKUP}"})  # which sentences quote
    more = {"calibrate": {"method": "vote-share", "splits": 2}, "ensemble": {"k": "1"}}
    result = getattr(jb, name)(
        votes, folder / "valid.csv", vote=f"vote {MARKUP}", **more.get(name, {})
    )
    shown = result._repr_html_()
    assert "<i>" not in shown
    assert "<p>" in shown
    assert "&lt;i&gt;x&lt;/i&gt; &amp; [red]" in shown


def test_the_sentences_say_what_was_read(folder: Path) -> None:
    data = jb.read(folder / "generators.csv", folder / "valid.csv")
    assert data.sentences[-1].startswith("120 of 180 items are labelled (0: ")
    assert list(data.judges["votes"]) == [180, 180, 180]
    items = data.items.set_index("item")
    assert (items["votes"] == 3).all()
    gold = pd.read_csv(folder / "valid.csv").set_index("item")["label"]
    assert (items.loc[gold.index, "label"] == gold).all()
    assert items["label"].isna().sum() == 60


def test_data_without_what_a_command_needs_is_refused(folder: Path) -> None:
    bare = jb.read(folder / "votes.csv")
    with pytest.raises(jb.JudgeBayesError, match="Calibration needs labels"):
        jb.calibrate(bare)
    with pytest.raises(jb.JudgeBayesError, match="is estimated from labels"):
        jb.ensemble(bare)
    with pytest.raises(jb.JudgeBayesError, match="have 3 classes; precision needs two"):
        jb.precision(bare)
    assert not bare.labelled
    same_label = pd.read_csv(folder / "labels.csv").assign(label=1)
    constant = jb.read(folder / "votes.csv", same_label)
    with pytest.raises(jb.JudgeBayesError, match="Every label in column 'label' is 1"):
        jb.calibrate(constant)
    assert any(f.topic == "labels" for f in jb.diagnose(constant).findings)
    arrays = jb.Votes(jnp.zeros((3, 1, 1), jnp.int8), None, None, None, 2)
    with pytest.raises(jb.JudgeBayesError, match="votes are of type Votes"):
        jb.diagnose(arrays)


def test_a_fit_to_data_read_before_is_kept_with_how_they_were_read(
    folder: Path, tmp_path: Path
) -> None:
    votes = pd.read_csv(folder / "generators.csv").rename(columns={"item": "which"})
    labels = pd.read_csv(folder / "valid.csv").rename(columns={"item": "which"})
    data = jb.read(votes, labels, item="which", only_judge="two", missing="unsure")
    result = jb.calibrate(data, method="vote-share", splits=2)
    jb.save(result, tmp_path / "fit.json")
    kept = json.loads((tmp_path / "fit.json").read_text(encoding="utf-8"))
    assert '"missing": "unsure"' in json.dumps(kept)
    applied = jb.apply(tmp_path / "fit.json", votes[votes["judge"] == "two"])
    assert applied.answers["p(1)"].equals(result.answers["p(1)"])


def test_votes_whose_table_is_too_large_are_refused_in_a_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judgebayes.votes.encoding.LARGEST", 100)
    with pytest.raises(jb.JudgeBayesError, match=r"need a table of .* GB; the limit is 1e-07"):
        jb.calibrate(folder / "generators.csv")


def test_the_item_may_be_named_beside_a_file_of_labels_and_the_vote_may_be_called_label() -> None:
    votes = pd.DataFrame({"which": list("aabb"), "worker": list("xyxy"), "label": [1, 0, 1, 1]})
    labels = pd.DataFrame({"which": list("ab"), "gold": [1, 0]})
    data = jb.read(votes, labels, item="which")
    assert data.opened.columns["vote"] == "label"
    assert data.labels.tolist() == [1, 0]
