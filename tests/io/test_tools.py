"""Exports of other tools: what is a vote, what a label by a person, and what is missing."""

import json
from pathlib import Path
from typing import Any

import pytest
from fuzz.seeds import VALID

import judgebayes as jb
from judgebayes.errors import JudgeBayesError
from judgebayes.io.formats import UNREAD, format_of, import_votes
from judgebayes.io.options import Options

from .test_readers import put, votes_of

Votes = dict[tuple[str, str], object]
Labels = list[tuple[object, ...]]

SEEDS: dict[str, tuple[Votes, Labels]] = {
    "label-studio": (
        {("1", "m"): "bad", ("2", "m"): "bad"},
        [("1", "good", "ann@x"), ("2", "good", "ground truth")],
    ),
    "langfuse": (
        {("t0", "ok"): 0, ("t0", "fine"): 1, ("t1", "ok"): 1, ("t1", "fine"): 0},
        [("t0", 0), ("t1", 1)],
    ),
    "langsmith": ({("r0", "correct"): 0, ("r1", "correct"): 0}, [("r0", 1), ("r1", 0)]),
    "braintrust": (
        {(f"e{n}", "Factuality"): n % 2 for n in range(3)}
        | {("e0", "Length"): 1, ("e1", "Length"): None, ("e2", "Length"): None},
        [("e0", 1), ("e1", 1), ("e2", 1)],
    ),
    "deepeval": (
        {("case 0", "Bias|g"): 0, ("case 1", "Bias|g"): 1}
        | {("case 0", "Tone|g"): 1, ("case 1", "Tone|g"): 1},
        [],
    ),
    "ragas": (
        {(f"q{n}", "faithfulness"): n % 2 for n in range(3)}
        | {(f"q{n}", "mine"): 1 - n % 2 for n in range(3)},
        [("q0", 0), ("q1", 1), ("q2", 0)],
    ),
    "argilla": ({("r0", "m"): "bad", ("r1", "m"): "bad"}, [("r0", "good"), ("r1", "good")]),
    "prodigy": (
        {("0", "ben"): "BAD", ("0", "ann"): "GOOD", ("1", "ben"): "GOOD", ("1", "ann"): None},
        [],
    ),
    "arena": (
        {("0|x|y", "gpt-4"): "A", ("1|y|z", "gpt-4"): "B", ("2|x|y", "gpt-4"): "tie"},
        [("0|x|y", "A"), ("1|y|z", "B"), ("2|x|y", "tie")],
    ),
}
FLAT = [
    {
        "id": f"r{n}",
        "text": "t",
        "q.suggestion": "bad",
        "q.suggestion.agent": "m",
        "q.responses": ["good", "bad"],
        "q.responses.users": ["u", "v"],
        "q.responses.status": ["submitted", "draft"],
    }
    for n in range(2)
]
STATS = [
    {"id": f"r{n}", "feedback_stats": {"ok": {"n": n, "avg": 1.0}, "x": {"n": 1, "avg": n}}}
    for n in (1, 2)
]
LISTS = [
    {
        "id": "r",
        "fields": {},
        "responses": [{"user_id": "u", "status": "submitted", "values": {"q": {"value": 2}}}],
        "suggestions": [{"question_name": "q", "value": 1, "agent": "m"}],
    }
]
ANNOTATED = "text,id,q,annotator,annotation_id,lead_time\n" + "".join(
    f'text {n},{n},good,ann,{n},2\ntext {n},{n},"{{""choices"":[""bad"",""ill""]}}",ben,3,2\n'
    f"text {n},{n},bad,eve,{n},2\n"
    for n in range(14)
)
FORMS: list[tuple[str, str, Any, Votes, Labels]] = [
    (
        "label-studio",
        "a.csv",
        ANNOTATED,
        {(str(n), who): vote for n in range(14) for who, vote in (("ann", "good"), ("eve", "bad"))},
        [],
    ),
    (
        "langfuse",
        "s.csv",
        "Trace ID,Name,Source,Data Type,Value,String Value,Author\n"
        "t,tone,EVAL,CATEGORICAL,1,kind,\nu,tone,EVAL,CATEGORICAL,0,rude,\n"
        "t,user-feedback,API,CATEGORICAL,1,kind,\nu,user-feedback,ANNOTATION,CATEGORICAL,1,kind,eve\n",
        {("t", "tone"): "kind", ("u", "tone"): "rude"},
        [("t", "kind", "annotator"), ("u", "kind", "eve")],
    ),
    (
        "langsmith",
        "e.csv",
        "example_id,status,feedback.ok,feedback.user_score\nx,success,1,0\ny,error,,\nz,success,0,1\n",
        {("x", "feedback.ok"): 1, ("y", "feedback.ok"): None, ("z", "feedback.ok"): 0},
        [("x", 0), ("z", 1)],
    ),
    (
        "langsmith",
        "runs.json",
        STATS,
        {("r1", "ok"): 1, ("r2", "ok"): None, ("r1", "x"): 1, ("r2", "x"): 2},
        [],
    ),
    (
        "braintrust",
        "rows.csv",
        "id,input,output,scores.F,scores.human\na,i,o,0.25,1\nb,i,o,,0\n",
        {("a", "scores.F"): 0.25, ("b", "scores.F"): None},
        [("a", 1), ("b", 0)],
    ),
    (
        "argilla",
        "r.jsonl",
        FLAT,
        {("r0", "m"): "bad", ("r1", "m"): "bad"},
        [("r0", "good"), ("r1", "good")],
    ),
    ("argilla", "r.json", LISTS, {("r", "m"): 1}, [("r", 2)]),
    (
        "prodigy",
        "p.jsonl",
        [
            {"_task_hash": n, "label": "SPAM", "answer": answer, "_session_id": "d-ann"}
            for n, answer in enumerate(("accept", "reject", "ignore"))
        ],
        {("0", "d-ann"): "accept", ("1", "d-ann"): "reject", ("2", "d-ann"): None},
        [],
    ),
    (
        "arena",
        "kaggle.csv",
        "id,model_a,model_b,winner_model_a,winner_model_b,winner_tie\n"
        "007,y,x,1,0,0\n8,x,y,0,0,1\n9,x,y,0,0,0\n",
        {("007|x|y", "human"): "B", ("8|x|y", "human"): "tie", ("9|x|y", "human"): None},
        [],
    ),
]


def assert_read(form: str, path: Path, votes: Votes, labels: Labels) -> None:
    assert format_of(path) == form
    imported = import_votes(form, path)
    assert votes_of(imported) == votes
    rows = [] if imported.labels is None else [*imported.labels.itertuples(index=False, name=None)]
    assert rows == labels
    assert any("What people said" in note for note in imported.notes) == bool(labels)


@pytest.mark.parametrize("form", sorted(VALID.keys() - {"llmbar"}))
def test_a_file_is_recognised_by_its_keys(form: str, tmp_path: Path) -> None:
    assert format_of(put(tmp_path / VALID[form][0], VALID[form][1])) == form


@pytest.mark.parametrize("form", SEEDS)
def test_the_export_of_a_tool(form: str, tmp_path: Path) -> None:
    name, content = VALID[form]
    assert_read(form, put(tmp_path / name, content), *SEEDS[form])


@pytest.mark.parametrize(("form", "name", "content", "votes", "labels"), FORMS)
def test_other_forms_of_an_export(
    form: str, name: str, content: Any, votes: Votes, labels: Labels, tmp_path: Path
) -> None:
    assert_read(form, put(tmp_path / name, content), votes, labels)


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
        assert votes_of(imported) == SEEDS["label-studio"][0]
        assert imported.dropped["an answer to another question, why"] == 6
    assert jb.read(path, vote="q", labels_merge="majority").numbers["labels"] == 2


def test_a_judges_score_can_be_the_label(tmp_path: Path) -> None:
    """A table does not say who gave a score whose name does not say it."""
    path = put(tmp_path / VALID["ragas"][0], VALID["ragas"][1])
    data = jb.read(path, label="mine")
    assert list(data.coding.judges) == ["faithfulness"]
    assert data.numbers["labels"] == 3


def test_labels_of_several_people_are_merged_on_demand(tmp_path: Path) -> None:
    name, content = VALID["argilla"]
    records = json.loads(json.dumps(content).replace('["bad", "good"]', '"bad"'))
    path = put(tmp_path / name, [*records, records[0] | {"id": "r2"}])
    assert any("--labels-merge" in each.text for each in jb.check(path).findings)
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
