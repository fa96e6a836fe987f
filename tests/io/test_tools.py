"""Exports of other tools: what is a vote, what a label by a person, and what is missing."""

import json
from pathlib import Path

import pytest
from fuzz.seeds import TOOLS, VALID

import judgebayes as jb
from judgebayes.errors import JudgeBayesError
from judgebayes.io.formats import UNREAD, format_of, import_votes
from judgebayes.io.options import Options

from .test_readers import put, votes_of

Votes = dict[tuple[str, str], object]
Labels = list[tuple[object, ...]]

ARGILLA: tuple[Votes, Labels] = (
    {("r0", "m"): "bad", ("r1", "m"): "bad"},
    [("r0", "good"), ("r1", "good")],
)
READ: dict[str, tuple[Votes, Labels]] = {
    "label-studio.json": (
        {("1", "m"): "bad", ("2", "m"): "bad"},
        [("1", "good", "ann@x"), ("2", "good", "ground truth")],
    ),
    "label-studio.csv": (
        {(str(n), who): vote for n in range(14) for who, vote in (("ann", "good"), ("eve", "bad"))},
        [],
    ),
    "langfuse.jsonl": (
        {("t0", "ok"): 0, ("t0", "fine"): 1, ("t1", "ok"): 1, ("t1", "fine"): 0},
        [("t0", 0), ("t1", 1)],
    ),
    "langfuse.csv": (
        {("t", "tone"): "kind", ("u", "tone"): "rude"},
        [("t", "kind", "annotator"), ("u", "kind", "eve")],
    ),
    "langsmith.json": ({("r0", "correct"): 0, ("r1", "correct"): 0}, [("r0", 1), ("r1", 0)]),
    "langsmith.csv": (
        {("x", "feedback.ok"): 1, ("y", "feedback.ok"): None, ("z", "feedback.ok"): 0},
        [("x", 0), ("z", 1)],
    ),
    "langsmith.runs.json": (
        {("r1", "ok"): 1, ("r2", "ok"): None, ("r1", "x"): 1, ("r2", "x"): 2},
        [],
    ),
    "braintrust.json": (
        {(f"e{n}", "Factuality"): n % 2 for n in range(3)}
        | {("e0", "Length"): 1, ("e1", "Length"): None, ("e2", "Length"): None},
        [("e0", 1), ("e1", 1), ("e2", 1)],
    ),
    "braintrust.csv": (
        {("a", "scores.F"): 0.25, ("b", "scores.F"): None},
        [("a", 1), ("b", 0)],
    ),
    "deepeval.json": (
        {("case 0", "Bias|g"): 0, ("case 1", "Bias|g"): 1}
        | {("case 0", "Tone|g"): 1, ("case 1", "Tone|g"): 1},
        [],
    ),
    "ragas.jsonl": (
        {(f"q{n}", "faithfulness"): n % 2 for n in range(3)}
        | {(f"q{n}", "mine"): 1 - n % 2 for n in range(3)},
        [("q0", 0), ("q1", 1), ("q2", 0)],
    ),
    "argilla.json": ARGILLA,
    "argilla.flat.jsonl": ARGILLA,
    "prodigy.jsonl": (
        {("0", "ben"): "BAD", ("0", "ann"): "GOOD", ("1", "ben"): "GOOD", ("1", "ann"): None},
        [],
    ),
    "prodigy.binary.jsonl": (
        {("0", "d-ann"): "accept", ("1", "d-ann"): "reject", ("2", "d-ann"): None},
        [],
    ),
    "arena.json": (
        {("0", "gpt-4"): "A", ("1", "gpt-4"): "A", ("2", "gpt-4"): "tie"},
        [("0", "A"), ("1", "A"), ("2", "tie")],
    ),
    "arena.csv": (
        {("007", "human"): "A", ("8", "human"): "tie", ("9", "human"): None},
        [],
    ),
}
"""By file, the votes and the labels, with who labelled where several people did."""


@pytest.mark.parametrize("name", sorted(path.name for path in TOOLS.iterdir()))
def test_the_export_of_a_tool(name: str) -> None:
    form = name.split(".")[0]
    assert format_of(TOOLS / name) == form
    imported = import_votes(form, TOOLS / name)
    votes, labels = READ[name]
    assert votes_of(imported) == votes
    rows = [] if imported.labels is None else [*imported.labels.itertuples(index=False, name=None)]
    assert rows == labels
    assert any("What people said" in note for note in imported.notes) == bool(labels)


@pytest.mark.parametrize("form", sorted(VALID))
def test_a_file_is_recognised_by_its_keys(form: str, tmp_path: Path) -> None:
    assert format_of(put(tmp_path / VALID[form][0], VALID[form][1])) == form


def test_people_who_answered_several_questions_are_asked_about(tmp_path: Path) -> None:
    name, content = VALID["ragas"]
    path = put(tmp_path / name, [record | {"human_tone": 1} for record in content])
    with pytest.raises(JudgeBayesError, match="human_ok 3, human_tone 3, and more than one can be"):
        import_votes("ragas", path)
    with pytest.raises(JudgeBayesError, match="nobody answered 'x'"):
        import_votes("ragas", path, Options(label="x"))
    assert jb.read(path, label="human_tone").numbers["labels"] == 3
    assert jb.read(path, label="none").numbers["labels"] == 0
    both = import_votes("ragas", path, Options(label="human_ok,human_tone")).labels
    assert both is not None
    assert set(both["annotator"]) == {"human_ok", "human_tone"}
    mine = jb.read(TOOLS / name, label="mine")  # no name says who gave it
    assert (list(mine.coding.judges), mine.numbers["labels"]) == (["faithfulness"], 3)


def test_one_of_several_questions_is_read(tmp_path: Path) -> None:
    name, content = VALID["label-studio"]
    text = json.dumps(content).replace(
        '"textarea", "value": {"text": ["x"]}', '"rating", "value": {"rating": 4}'
    )
    path = put(tmp_path / name, text)
    with pytest.raises(JudgeBayesError, match="answers to the questions 'q', 'why': name the one"):
        import_votes("label-studio", path)
    for options in (Options(vote="q"), Options(label="q")):
        imported = import_votes("label-studio", path, options)
        assert votes_of(imported) == READ["label-studio.json"][0]
        assert imported.dropped["an answer to another question, why"] == 6
    assert jb.read(path, vote="q", labels_merge="majority").numbers["labels"] == 2


def test_labels_of_several_people_are_merged_on_demand(tmp_path: Path) -> None:
    name, content = VALID["argilla"]
    records = json.loads(json.dumps(content).replace('["bad", "good"]', '"bad"'))
    path = put(tmp_path / name, [*records, records[0] | {"id": "r2"}])
    assert any("--set labels_merge" in each.text for each in jb.check(path).findings)
    merged = jb.read(path, labels_merge="adjudicated", adjudicator="u")
    assert merged.numbers["labels"] == merged.numbers["items"] == 3


@pytest.mark.parametrize("keys", UNREAD)
def test_a_tool_that_is_not_read_is_named(keys: str, tmp_path: Path) -> None:
    path = put(tmp_path / "a.jsonl", [dict.fromkeys(keys.split(), 1)])
    with pytest.raises(JudgeBayesError, match=r"is not read\. It looks like (an?|the) "):
        jb.read(path)
    check = jb.check(path)
    assert check.command is None
    assert any("It looks like" in each.text for each in check.findings)
