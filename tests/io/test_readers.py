"""Readers of other tools' formats, on excerpts of their documented forms with known traps."""

import gzip
import json
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rows import opened, rows_of, votes_of_table

import judgebayes as jb
from judgebayes.errors import JudgeBayesError
from judgebayes.io import inspect, records
from judgebayes.io.benchmarks import position_of_chosen
from judgebayes.io.formats import FORMATS, import_votes, reader_of
from judgebayes.io.gathering import Imported
from judgebayes.io.options import Options

Votes = dict[tuple[str, ...], object]


def put(path: Path, content: Any) -> Path:
    """Write JSON, JSONL (a list, to .jsonl) or text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(record) for record in content) + "\n")
    else:
        path.write_text(json.dumps(content))
    return path


def votes_of(imported: Imported, *keys: str) -> Votes:
    """Return the votes by item, judge and other columns; None where missing."""
    table = imported.votes
    names = ["item", "judge", *keys]
    cells = table["vote"].astype(object).where(table["vote"].notna(), None)
    index = [tuple(str(x) for x in row) for row in table[names].itertuples(index=False)]
    assert len(set(index)) == len(index)
    return dict(zip(index, cells, strict=True))


def labels_of(imported: Imported) -> dict[str, object]:
    assert imported.labels is not None
    return dict(zip(imported.labels["item"], imported.labels["label"], strict=True))


# --- tables -------------------------------------------------------------------------------------


def test_tidy_columns_are_recognised_by_their_names(tmp_path: Path) -> None:
    path = put(
        tmp_path / "v.csv",
        " Pair ID ,Judge,Verdict,gold\np1,gpt,A,A\np1,claude,,A\np2,gpt,tie,B\np2,claude,B,B\n",
    )
    assert votes_of_table(path) == {
        ("p1", "gpt"): "A",
        ("p1", "claude"): None,
        ("p2", "gpt"): "tie",
        ("p2", "claude"): "B",
    }
    data = jb.read(path)
    assert data.coding.values(data.labels) == ["A", "B"]
    assert data.coding.missing["claude"] == 1


def test_a_column_without_orders_is_left_out_with_a_note(tmp_path: Path) -> None:
    path = put(tmp_path / "v.csv", "item,judge,vote,order\nx,j,1,early\ny,j,0,late\n")
    data = jb.read(path)
    assert data.votes.order is None
    assert any(
        "Column 'order' is left out: 'early', 'late' are not presentation orders" in line
        for line in data.sentences
    )
    ordered = put(tmp_path / "o.csv", "item,vote,order\nx,A,AB\nx,B,BA\n")
    assert jb.read(ordered, votes_as="shown").votes.order is not None


def test_tables_of_crowd_sourcing_tools_call_the_vote_a_label(tmp_path: Path) -> None:
    path = put(tmp_path / "v.csv", "task,worker,label\nt1,w1,1\nt1,w2,0\nt2,w1,1\n")
    assert votes_of_table(path) == {("t1", "w1"): 1, ("t1", "w2"): 0, ("t2", "w1"): 1}
    assert not jb.read(path).labelled


def test_a_folder_is_a_file_per_judge(tmp_path: Path) -> None:
    put(tmp_path / "gpt.jsonl", [{"id": "x", "vote": 1}, {"id": "y", "vote": 0}])
    put(tmp_path / "sub" / "claude.csv", "id,vote\nx,1\n")
    votes = {("x", "gpt"): 1, ("y", "gpt"): 0, ("x", "claude"): 1}
    assert votes_of_table(tmp_path) == votes


def test_a_skipped_score_is_a_missing_vote(tmp_path: Path) -> None:
    """Autoevals writes a score of None where a scorer was skipped."""
    records = [{"id": "x", "name": "Factuality", "score": s} for s in (1, None, 0)]
    path = put(tmp_path / "s.jsonl", records)
    data = jb.read(path, judge="name", vote="score", repeats=True)
    assert data.votes.index.tolist() == [[[1, -1, 0]]]


def test_a_number_can_mean_no_vote(tmp_path: Path) -> None:
    path = put(tmp_path / "v.csv", "item,judge,vote\nx,j,-1\nx,k,1\ny,j,0\ny,k,1\n")
    assert votes_of_table(path, missing="-1")["x", "j"] is None
    assert any("'-1' 1" in line or "-1 1" in line for line in jb.read(path, missing="-1").sentences)


def test_wide_tables_have_a_column_per_judge_and_empty_cells(tmp_path: Path) -> None:
    """Ragas writes a column per metric, NaN where it failed."""
    path = put(tmp_path / "w.csv", "item;judge one;human;gold\nx;1;0;1\ny;;1;0\n")
    data = jb.read(path, wide=True)
    assert votes_of_table(path, wide=True) == {
        ("x", "judge one"): 1,
        ("x", "human"): 0,
        ("y", "judge one"): None,
        ("y", "human"): 1,
    }
    assert data.labels.tolist() == [1, 0]
    assert "Columns: item = 'item', label = 'gold'." in data.sentences
    assert "Judges: 'judge one', 'human'." in data.sentences
    relabelled = jb.read(path, wide=True, label="human")
    assert list(relabelled.coding.judges) == ["judge one", "gold"]


def test_raw_answers_become_verdicts_with_their_levels(tmp_path: Path) -> None:
    records = [
        {"item": "p1", "judge": "g", "order": "AB", "response": "<think>[[B]]</think>[[A]]"},
        {"item": "p1", "judge": "g", "order": "BA", "response": "Therefore, Output (b) is better."},
        {"item": "p2", "judge": "g", "order": "AB", "response": "I cannot say."},
        {"item": "p2", "judge": "g", "order": "BA", "response": None},
        {"item": "p3", "judge": "g", "order": "AB", "response": "[[A]] or rather [[B]]"},
    ]
    path = put(tmp_path / "raw.jsonl", records)
    read = opened(path, vote="response", verdicts="pair", classes="B,A")
    assert rows_of(read)["vote"].tolist() == ["A", "B", None, None, None]
    assert any("2 of 4 (brackets 1, phrase 1)" in note for note in read.notes)
    assert read.request.votes_as == "shown"
    path = put(tmp_path / "s.csv", 'item,text\nx,"Rating: [[7]]"\ny,Score: 3\n')
    scores = opened(path, vote="text", verdicts="score", classes="3,7")
    assert rows_of(scores)["vote"].tolist() == [7, 3]


# --- benchmarks of judges -----------------------------------------------------------------------


def judged(pair: str, first: Any, second: Any, label: str = "A>B") -> dict[str, Any]:
    judgments = [j if j is None else {"judgment": {}, "decision": j} for j in (first, second)]
    for index, decision in enumerate((first, second)):
        if decision == "null":
            judgments[index] = {"judgment": {}, "decision": None}
    return {"pair_id": pair, "label": label, "judge_name": "arena_hard", "judgments": judgments}


def test_judgebench_swaps_the_second_order_back_and_keeps_ties(tmp_path: Path) -> None:
    name = (
        "dataset=judgebench,response_model=gpt-4o,judge_name=arena_hard,judge_model=claude-3.jsonl"
    )
    records = [
        judged("p1", "A>B", "B>A"),
        judged("p2", "A=B", "A>B", "B>A"),
        judged("p3", "null", None),
        judged("p4", "B>>A", "A = B"),
        judged("p5", "unsure", "A>B"),
    ]
    put(tmp_path / name, records)
    single = judged("p1", "A>B", None) | {"judgments": [{"decision": "B>A"}]}
    put(tmp_path / "judge_name=reward_model,judge_model=Org_RM.jsonl", [single])
    imported = import_votes("judgebench", tmp_path)
    judge = "arena_hard/claude-3"
    assert votes_of(imported, "order") == {
        ("p1", judge, "AB"): "A",
        ("p1", judge, "BA"): "A",
        ("p2", judge, "AB"): "tie",
        ("p2", judge, "BA"): "B",
        ("p3", judge, "AB"): None,
        ("p3", judge, "BA"): None,
        ("p4", judge, "AB"): "B",
        ("p4", judge, "BA"): "tie",
        ("p5", judge, "AB"): None,
        ("p5", judge, "BA"): "B",
        ("p1", "reward_model/Org_RM", "AB"): "B",
    }
    assert imported.missing == {"no decision": 1, "judgment failed": 1, "decision 'unsure'": 1}
    assert labels_of(imported) == {"p1": "A", "p2": "B", "p3": "A", "p4": "A", "p5": "A"}
    assert imported.votes_as == "original"


def test_rewardbench_assigns_the_chosen_response_a_position(tmp_path: Path) -> None:
    ids = list(range(40))
    put(
        tmp_path / "scores" / "org" / "one.json",
        {"model": "org/one", "id": ids, "subset": ["s"] * 40, "results": [1] * 39 + [0.5]},
    )
    scored = [
        {"id": i, "subset": "s", "scores_chosen": [[1.0]], "scores_rejected": [[2.0]]} for i in ids
    ]
    scored[0]["scores_chosen"] = [[2.0]]
    scored[1]["scores_rejected"] = None
    put(tmp_path / "scores" / "org" / "two.jsonl", scored)
    imported = import_votes("rewardbench", tmp_path)
    votes, labels = votes_of(imported), labels_of(imported)
    assert 8 < sum(label == "A" for label in labels.values()) < 32
    assert labels == {f"s/{i}": position_of_chosen(f"s/{i}") for i in ids}
    assert all(votes[f"s/{i}", "org/one"] == labels[f"s/{i}"] for i in ids[:-1])
    assert votes["s/39", "org/one"] == "tie"
    assert votes["s/0", "org/two"] == "tie"
    assert votes["s/1", "org/two"] is None
    assert all(votes[f"s/{i}", "org/two"] != labels[f"s/{i}"] for i in ids[2:])


def test_rewardbench_2_is_refused(tmp_path: Path) -> None:
    path = put(
        tmp_path / "m.json",
        {"id": [0], "subset": ["Math"], "results": [1], "scores": [[1, 2, 3, 4]]},
    )
    with pytest.raises(JudgeBayesError, match="scores of 4 responses"):
        import_votes("rewardbench", path)


def test_alpaca_eval_preferences_are_ties_at_the_middle_and_missing_where_null(
    tmp_path: Path,
) -> None:
    def annotation(instruction: str, preference: Any, annotator: Any = "gpt4") -> dict[str, Any]:
        return {
            "instruction": instruction,
            "output_1": "one",
            "output_2": "two",
            "generator_1": "base",
            "generator_2": "new",
            "annotator": annotator,
            "preference": preference,
        }

    preferences = {
        "a": 1,
        "b": 2.0,
        "c": 1.5,
        "d": 0,
        "e": None,
        "f": 1.93,
        "g": float("nan"),
        "h": 3,
    }
    preferences["i"] = 1.2
    path = put(
        tmp_path / "new" / "gpt4" / "annotations.json",
        [annotation(name, preference) for name, preference in preferences.items()]
        + [annotation("a", 2, annotator=3)],
    )
    imported = import_votes("alpaca-eval", path)
    assert imported.votes["vote"].tolist() == [
        "A",
        "B",
        "tie",
        "tie",
        None,
        "B",
        None,
        None,
        "A",
        "B",
    ]
    assert imported.missing == {"preference is null": 2, "preference 3 is not from 1 to 2": 1}
    assert imported.votes["score"].dropna().tolist() == pytest.approx(
        [0, 1, 0.5, 0.5, 0.93, 0.2, 1]
    )
    assert imported.votes["item"].iloc[0] == imported.votes["item"].iloc[-1]
    assert imported.votes["item"].nunique() == 9
    assert set(imported.votes["judge"]) == {"gpt4", "annotator 3"}


def test_mt_bench_pairs_have_two_orders_and_one_name(tmp_path: Path) -> None:
    def pair(question: int, first: str, second: str, g1: str, g2: str) -> dict[str, Any]:
        return {
            "question_id": question,
            "model_1": first,
            "model_2": second,
            "g1_winner": g1,
            "g2_winner": g2,
            "judge": ["gpt-4", "pair-v2"],
            "turn": 1,
        }

    path = put(
        tmp_path / "gpt-4_pair.jsonl",
        [
            pair(81, "alpaca", "vicuna", "model_1", "tie"),
            pair(82, "vicuna", "alpaca", "model_1", "error"),
        ],
    )
    imported = import_votes("mt-bench", path)
    judge = "gpt-4/pair-v2"
    assert votes_of(imported, "order") == {
        ("81|t1|alpaca|vicuna", judge, "AB"): "A",
        ("81|t1|alpaca|vicuna", judge, "BA"): "tie",
        ("82|t1|alpaca|vicuna", judge, "BA"): "B",
        ("82|t1|alpaca|vicuna", judge, "AB"): None,
    }
    assert imported.votes_as == "original"


def vote(question: int, judge: str, winner: str, a: str = "x", b: str = "y") -> dict[str, Any]:
    names = {"judge": judge, "model_a": a, "model_b": b}
    return names | {"question_id": question, "turn": 1, "winner": winner}


def test_mt_bench_people_label_what_models_judged(tmp_path: Path) -> None:
    people = [
        vote(1, "expert_0", "model_a"),
        vote(1, "expert_1", "model_b", "y", "x"),
        vote(1, "author_2", "tie (bothbad)"),
        vote(2, "expert_0", "model_a"),
        vote(2, "expert_1", "tie"),
        vote(3, "expert_0", "model_b"),
    ]
    put(tmp_path / "human.jsonl", people)
    put(
        tmp_path / "gpt4.jsonl",
        [vote(1, "gpt4_pair", "model_b"), vote(2, "gpt4_pair", "tie (inconsistent)")],
    )
    imported = import_votes("mt-bench", tmp_path)
    assert votes_of(imported) == {("1|t1|x|y", "gpt4_pair"): "B", ("2|t1|x|y", "gpt4_pair"): "tie"}
    assert imported.labels is not None
    assert imported.labels.to_numpy().tolist() == [
        ["1|t1|x|y", "A", "expert_0"],
        ["1|t1|x|y", "A", "expert_1"],
        ["1|t1|x|y", "tie", "author_2"],
        ["2|t1|x|y", "A", "expert_0"],
        ["2|t1|x|y", "tie", "expert_1"],
        ["3|t1|x|y", "B", "expert_0"],
    ]
    assert imported.dropped == {"by a person: a label, not a vote": 6}
    human_votes = import_votes("mt-bench", tmp_path / "human.jsonl")
    assert len(human_votes.votes) == 6
    assert human_votes.labels is None


def test_mt_bench_single_scores_of_minus_one_are_missing(tmp_path: Path) -> None:
    records = [
        {"question_id": 81, "model": m, "judge": ["gpt-4", "single-v1"], "score": s, "turn": 2}
        for m, s in (("x", 9), ("y", -1), ("z", 7.5))
    ]
    path = put(tmp_path / "gpt-4_single.jsonl", records)
    imported = import_votes("mt-bench", path)
    assert votes_of(imported) == {
        ("81|t2|x", "gpt-4/single-v1"): 9,
        ("81|t2|y", "gpt-4/single-v1"): None,
        ("81|t2|z", "gpt-4/single-v1"): 7.5,
    }
    put(tmp_path / "pair.jsonl", [vote(1, "gpt4", "tie")])
    with pytest.raises(JudgeBayesError, match="pairs and single scores"):
        import_votes("mt-bench", tmp_path)


# --- logs ---------------------------------------------------------------------------------------


def log(samples: list[dict[str, Any]], **run: Any) -> dict[str, Any]:
    named = {"eval_id": "e1", "task": "qa", "model": "openai/gpt"} | run
    return {"version": 2, "status": "success", "eval": named, "samples": samples}


def sample(name: Any, scores: dict[str, Any] | None, epoch: int = 1, **more: Any) -> dict[str, Any]:
    values = None if scores is None else {s: {"value": v} for s, v in scores.items()}
    return {"id": name, "epoch": epoch, "target": "yes", "scores": values, **more}


def archive(path: Path, content: dict[str, Any], more: dict[str, Any] | None = None) -> Path:
    header = {key: value for key, value in content.items() if key != "samples"}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("header.json", json.dumps(header))
        for one in content["samples"]:
            file.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        for name, text in (more or {}).items():
            file.writestr(name, json.dumps(text))
    return path


@pytest.mark.parametrize("kind", ["json", "eval"])
def test_inspect_grades_are_words_and_the_unscored_are_missing(tmp_path: Path, kind: str) -> None:
    content = log(
        [
            sample(1, {"fact": "C", "match": 1}, metadata={"human": "good"}),
            sample(2, {"fact": "P", "match": False}),
            sample(3, {"fact": "N", "match": float("nan")}),
            sample(4, {"fact": "I"}),
            sample(5, None, error={"message": "timeout"}),
        ]
    )
    path = tmp_path / f"log.{kind}"
    archive(path, content, {"reductions.json": [], "_journal/start.json": {}}) if (
        kind == "eval"
    ) else put(path, content)
    imported = import_votes("inspect", path, Options(label="human"))
    assert votes_of(imported) == {
        ("1", "fact"): "correct",
        ("1", "match"): "correct",
        ("2", "fact"): "partial",
        ("2", "match"): "incorrect",
        ("3", "fact"): None,
        ("3", "match"): None,
        ("4", "fact"): "incorrect",
        ("4", "match"): None,
        ("5", "fact"): None,
        ("5", "match"): None,
    }
    assert imported.missing == {
        "no answer (N)": 1,
        "unscored": 2,
        "sample ended with an error": 2,
    }
    assert labels_of(imported) == {"1": "good"}
    assert imported.classes == ("incorrect", "partial", "correct")


def test_inspect_a_grader_without_a_grade_gives_no_vote_and_labels_become_words(
    tmp_path: Path,
) -> None:
    content = log([sample(n, {"fact": "CII"[n]}, metadata={"human": n == 0}) for n in range(3)])
    explanation = "Grade not found in model output: I cannot say."
    content["samples"][2]["scores"]["fact"]["explanation"] = explanation
    imported = import_votes("inspect", put(tmp_path / "log.json", content), Options(label="human"))
    assert list(votes_of(imported).values()) == ["correct", "incorrect", None]
    assert imported.missing == {"no grade in the grader's answer": 1}
    assert labels_of(imported) == {"0": "correct", "1": "incorrect", "2": "incorrect"}


def test_inspect_keeps_lists_of_graders_or_notes_their_loss(tmp_path: Path) -> None:
    """A list of graders reduced by its mode has one value; with collect it has all."""
    graders = [{"name": "qa_panel", "options": {"model": ["openai/a", "openai/b", "openai/c"]}}]
    put(tmp_path / "mode.json", log([sample(1, {"qa_panel": "C"})], scorers=graders))
    reduced = import_votes("inspect", tmp_path / "mode.json")
    assert any("had 3 graders and kept one value" in note for note in reduced.notes)
    collected = log([sample(1, {"qa_panel": ["C", "I", "C"]})], scorers=graders)
    put(tmp_path / "collect.json", collected)
    imported = import_votes("inspect", tmp_path / "collect.json")
    assert votes_of(imported, "sample") == {
        ("1", "qa_panel", "1"): "correct",
        ("1", "qa_panel", "2"): "incorrect",
        ("1", "qa_panel", "3"): "correct",
    }
    assert not any("graders" in note for note in imported.notes)


def test_inspect_epochs_are_outputs_or_repeated_votes(tmp_path: Path) -> None:
    path = put(
        tmp_path / "log.json", log([sample("s", {"f": g}, e) for e, g in ((1, "C"), (2, "I"))])
    )
    imported = import_votes("inspect", path)
    assert set(imported.votes["item"]) == {"s|1", "s|2"}
    assert "2 epochs, each a separate output" in " ".join(imported.notes)
    assert "for example 's|1'" in " ".join(imported.notes)
    repeated = import_votes("inspect", path, Options(sample="epoch"))
    assert repeated.notes == ()
    assert repeated.votes[["item", "sample", "vote"]].to_numpy().tolist() == [
        ["s", 1, "correct"],
        ["s", 2, "incorrect"],
    ]
    with pytest.raises(JudgeBayesError, match="use --set sample=epoch"):
        import_votes("inspect", path, Options(sample="run"))


def test_inspect_scores_of_several_keys_are_several_judges(tmp_path: Path) -> None:
    path = put(tmp_path / "log.json", log([sample("s", {"rubric": {"tone": 1, "facts": 0}})]))
    assert votes_of(import_votes("inspect", path)) == {
        ("s", "rubric/tone"): 1,
        ("s", "rubric/facts"): 0,
    }


def test_inspect_samples_count_once_and_outputs_have_distinct_names(tmp_path: Path) -> None:
    first = log([sample(1, {"fact": "C"}, epoch) for epoch in (1, 2)])
    put(tmp_path / "a.json", first)
    archive(tmp_path / "copy.eval", first)
    put(tmp_path / "b.json", log([sample(1, {"fact": "I"})], eval_id="e2", model="m2"))
    put(tmp_path / "again.json", log([sample(1, {"fact": "P"})], eval_id="e4", model="m2"))
    put(tmp_path / "other.json", {"not": "a log"})
    put(tmp_path / "empty.json", log([], eval_id="e3") | {"status": "cancelled"})
    imported = import_votes("inspect", tmp_path)
    assert votes_of(imported) == {
        ("openai/gpt|1|1|e1", "fact"): "correct",
        ("openai/gpt|1|2|e1", "fact"): "correct",
        ("m2|1|1|e2", "fact"): "incorrect",
        ("m2|1|1|e4", "fact"): "partial",
    }
    assert imported.dropped == {"sample is in another log too": 2}
    note_text = " ".join(imported.notes)
    assert "other.json is not an Inspect log" in note_text
    assert "status is cancelled" in note_text
    assert "empty.json has no samples" in note_text


def test_inspect_answers_are_votes_of_the_model(tmp_path: Path) -> None:
    def answered(name: int, answer: str | None, target: Any, epoch: int = 1) -> dict[str, Any]:
        scores = {"choice": {"value": "C", "answer": answer}}
        return {"id": name, "epoch": epoch, "target": target, "scores": scores}

    samples = [
        answered(1, "A", "A"),
        answered(1, "B", "A", 2),
        answered(2, None, ["B"]),
        answered(3, "A", ["A", "B"]),
    ]
    path = put(tmp_path / "log.json", log(samples))
    imported = import_votes("inspect", path, Options(votes_from="answer"))
    assert votes_of(imported, "sample") == {
        ("1", "openai/gpt", "1"): "A",
        ("1", "openai/gpt", "2"): "B",
        ("2", "openai/gpt", "1"): None,
        ("3", "openai/gpt", "1"): "A",
    }
    assert labels_of(imported) == {"1": "A", "2": "B"}


def test_archives_that_unpack_to_too_much_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive(
        tmp_path / "l.eval", log([sample(1, {"f": "C"})]), {"samples/b.json": "0" * 9000}
    )
    monkeypatch.setattr(records, "MAX_JSON_BYTES", 5000)
    with pytest.raises(JudgeBayesError, match=r"'samples/b.json' .* the limit is"):
        import_votes("inspect", path)
    monkeypatch.setattr(records, "MAX_JSON_BYTES", 10_000)
    monkeypatch.setattr(records, "MAX_UNPACKED_BYTES", 9000)
    with pytest.raises(JudgeBayesError, match="when unpacked; the limit is"):
        import_votes("inspect", path)


def test_damaged_archives_are_reported(tmp_path: Path) -> None:
    whole = archive(tmp_path / "l.eval", log([sample(i, {"f": "C"}) for i in range(9)]))
    content = whole.read_bytes()
    for cut in (content[:-40], content[:60] + b"\0" * 40 + content[100:], b"PK\x03\x04"):
        whole.write_bytes(cut)
        with pytest.raises(JudgeBayesError, match=r"damaged archive|not JSON|cannot be read"):
            import_votes("inspect", whole)


@pytest.mark.parametrize(
    ("field", "value"), [("compress_type", 19), ("flag_bits", 1)], ids=["unknown", "encrypted"]
)
def test_archives_that_cannot_be_unpacked_say_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str, value: int
) -> None:
    path = archive(tmp_path / "l.eval", log([sample(1, {"f": "C"})]))
    plain = inspect.zipfile.ZipFile.getinfo

    def changed(self: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
        member = plain(self, name)
        setattr(member, field, value)
        return member

    monkeypatch.setattr(inspect.zipfile.ZipFile, "getinfo", changed)
    with pytest.raises(JudgeBayesError, match=r"cannot be read .* save it as JSON"):
        import_votes("inspect", path)


def lm(document: int, response: Any, target: Any = "A", **more: Any) -> dict[str, Any]:
    return {"doc_id": document, "target": target, "filtered_resps": response, "doc": {}, **more}


def test_lm_eval_filters_are_judges_and_invalid_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "org__model-7b"
    records = [
        lm(0, ["[invalid]"], filter="strict", exact_match=0.0),
        lm(0, [" A "], filter="flexible", exact_match=1.0),
        lm(1, [["B"]], "B", filter="strict", exact_match=1.0),
        lm(1, ["B"], "B", filter="flexible", exact_match=1.0),
    ]
    put(folder / "samples_judge_2026-01-16T15-23-47.285735.jsonl", records)
    imported = import_votes("lm-eval", tmp_path)
    assert votes_of(imported) == {
        ("0", "org/model-7b|strict"): None,
        ("0", "org/model-7b|flexible"): "A",
        ("1", "org/model-7b|strict"): "B",
        ("1", "org/model-7b|flexible"): "B",
    }
    assert imported.missing == {"filtered response [invalid]": 1}
    assert labels_of(imported) == {"0": "A", "1": "B"}


def test_lm_eval_multiple_choice_votes_for_the_likeliest(tmp_path: Path) -> None:
    def choices(*values: float) -> list[list[str]]:
        return [[str(value), "False"] for value in values]

    first = [lm(0, choices(-1.0, -0.5), 1, acc=1.0), lm(1, choices(-0.1, -2.0), 1, acc=0.0)]
    path = tmp_path / "m" / "samples_mmlu_2024-11-22T10-41-05.916629.jsonl.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, first)).encode()))
    put(tmp_path / "m" / "samples_arc_2024-11-22T10-41-05.9.jsonl", [lm(0, ["x", "y"], ["x"])])
    imported = import_votes("lm-eval", tmp_path)
    assert votes_of(imported, "sample") == {
        ("mmlu|0", "m", "1"): "1",
        ("mmlu|1", "m", "1"): "0",
        ("arc|0", "m", "1"): "x",
        ("arc|0", "m", "2"): "y",
    }
    assert labels_of(imported) == {"mmlu|0": 1, "mmlu|1": 1}
    only = import_votes("lm-eval", path)
    assert votes_of(only) == {("0", "m"): 1, ("1", "m"): 0}
    assert labels_of(only) == {"0": 1, "1": 1}


def graded(test: int, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "testIdx": test,
        "promptIdx": 0,
        "provider": {"id": "openai:gpt"},
        "success": all(part.get("pass") for part in parts),
        "failureReason": 0,
        "vars": {"human": "ok"},
        "gradingResult": {"pass": True, "componentResults": list(parts)},
        **more,
    }


def rubric(passed: bool, **more: Any) -> dict[str, Any]:
    assertion = {"type": "llm-rubric", "value": "is  polite"}
    return {"pass": passed, "score": float(passed), "assertion": assertion, "reason": "", **more}


@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_promptfoo_graders_that_failed_do_not_fail_the_output(tmp_path: Path, kind: str) -> None:
    records = [
        graded(0, rubric(True), {"pass": False, "score": 0, "assertion": {"metric": "short"}}),
        graded(1, rubric(False, reason="Could not extract JSON from llm-rubric response")),
        graded(2, rubric(False, reason="HTTP 503", metadata={"graderError": True})),
        graded(3, failureReason=2, gradingResult=None, error="API call error"),
        graded(4),
        graded(5, rubric(False, reason="It is rude.")),
    ]
    content: Any = records if kind == "jsonl" else {"results": {"version": 3, "results": records}}
    imported = import_votes(
        "promptfoo", put(tmp_path / f"out.{kind}", content), Options(label="human")
    )
    polite = "llm-rubric: is polite"
    assert votes_of(imported) == {
        ("0", polite): "pass",
        ("0", "short"): "fail",
        ("1", polite): None,
        ("2", polite): None,
        ("5", polite): "fail",
    }
    assert imported.missing == {"grader gave no readable verdict": 1, "grader failed": 1}
    assert imported.dropped == {
        "no output to judge: the provider failed": 1,
        "test without assertions": 1,
    }
    assert labels_of(imported)["0"] == "ok"


def test_openai_evals_invalid_choices_are_missing(tmp_path: Path) -> None:
    def event(name: str, kind: str, **data: Any) -> dict[str, Any]:
        return {"run_id": "r", "event_id": 0, "sample_id": name, "type": kind, "data": data}

    run = [
        {"spec": {"completion_fns": ["gpt-4"], "eval_name": "humor.dev.v0"}},
        event("s.1", "sampling", prompt="?", sampled="!"),
        event("s.1", "metrics", choice="Yes", score=1.0),
        event("s.2", "metrics", choice="__invalid__", score=0.0),
        event("s.3", "match", correct=False, expected="x"),
        {"final_report": {"accuracy": 0.5}},
    ]
    imported = import_votes("openai-evals", put(tmp_path / "log.jsonl", run))
    assert votes_of(imported) == {
        ("s.1", "humor.dev.v0"): "Yes",
        ("s.2", "humor.dev.v0"): None,
        ("s.3", "humor.dev.v0"): "0",
    }
    assert imported.missing == {"choice __invalid__": 1}
    assert imported.dropped == {"event spec": 1, "event sampling": 1, "event final_report": 1}


# --- all formats --------------------------------------------------------------------------------

BAD: list[tuple[str, str, Any, str]] = [
    ("tidy", "a.csv", "item,judge,vote\n,j,1\n", "Row 2 has no value in column 'item'"),
    ("tidy", "a.csv", "x,y\n1,2\n", "Which column is the item"),
    ("tidy", "a.csv", "item,vote,label\nx,1,1\nx,0,0\n", "Item 'x' has more than one label"),
    ("tidy", "a.csv", "item,vote\nx,\n", "There is no vote in a.csv: every value is missing"),
    ("wide", "a.csv", "item\nx\n", "No column contains the votes of a judge"),
    ("wide", "a.csv", "item,j,k\nx,1,0\nx,0,1\n", "Column 'item' .* is not read as a judge"),
    ("judgebench", "a.jsonl", "{", "Line 1 of .* is not JSON"),
    ("judgebench", "a.jsonl", [{"label": "A>B"}], "Line 1 of .* has no field 'pair_id'"),
    ("judgebench", "a.jsonl", [{"pair_id": 1, "label": "A>B", "judgments": []}], "one or two judg"),
    (
        "judgebench",
        "a.jsonl",
        [{"pair_id": 1, "label": "A=B", "judgments": [None]}],
        "has the label 'A=B'; it must be A>B or B>A",
    ),
    ("rewardbench", "a.json", {"x": 1}, "has no field 'results'"),
    ("rewardbench", "a.json", {"results": [1], "id": [1, 2]}, "different lengths"),
    ("alpaca-eval", "annotations.json", [1], "Record 0 of .* is not an object"),
    ("alpaca-eval", "annotations.json", [{"instruction": "x"}], "no field 'preference'"),
    ("mt-bench", "a.jsonl", [{"question_id": 1}], "no field 'judge'"),
    ("mt-bench", "a.jsonl", [vote(1, "gpt4", "model_c")], "has the winner 'model_c'"),
    ("inspect", "a.json", [1], "not an Inspect log"),
    ("inspect", "a.json", {"eval": {}, "samples": [{"x": 1}]}, "has no field 'id'"),
    ("inspect", "a.json", {"eval": {}, "samples": 7}, "samples that are not a list"),
    ("inspect", "a.json", "\ud800".encode("utf-8", "surrogatepass"), "not UTF-8"),
    ("inspect", "a.json", "[" * 200_000, "nested too deeply|not JSON"),
    ("lm-eval", "samples_x.jsonl", [{"resps": []}], "no field 'doc_id'"),
    ("lm-eval", "samples_x.jsonl", [{"doc_id": 1}], "no field 'filtered_resps'"),
    ("lm-eval", "samples_x.jsonl", "\n", "no votes in .*: it has no records"),
    ("promptfoo", "a.json", {"results": {"results": [{"x": 1}]}}, "no field 'testIdx'"),
    ("promptfoo", "a.json", {"results": []}, "no votes in .*: it has no records"),
    ("openai-evals", "a.jsonl", [{"x": 1}], "Line 1 of .* has no field 'type'"),
    ("openai-evals", "a.jsonl", [{"spec": {}}], "There are no votes in .*event spec 1"),
]


@pytest.mark.parametrize(("form", "name", "content", "sentence"), BAD)
def test_bad_files_are_reported_in_one_sentence(
    tmp_path: Path, form: str, name: str, content: Any, sentence: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        put(path, content)
    table = form in ("tidy", "wide")
    read = (
        partial(jb.read, path, wide=form == "wide") if table else partial(import_votes, form, path)
    )
    with pytest.raises(JudgeBayesError, match=sentence) as caught:
        read()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("form", FORMATS)
def test_missing_files_are_reported_in_one_sentence(tmp_path: Path, form: str) -> None:
    with pytest.raises(JudgeBayesError, match="There is no file"):
        import_votes(form, tmp_path / "none")
    with pytest.raises(JudgeBayesError, match=r"contains no .*: no file is named"):
        import_votes(form, tmp_path)


def test_lone_surrogates_and_huge_numbers_can_be_written(tmp_path: Path) -> None:
    """A truncated text may end in half an emoji, which JSON can hold and text files cannot."""
    half = "\ud83d"
    annotation = {"instruction": half, "output_1": half, "generator_1": f"m{half}", "preference": 1}
    records = json.dumps([annotation, annotation | {"preference": 7}]).replace("7", "9" * 5000)
    imported = import_votes("alpaca-eval", put(tmp_path / "annotations.json", records))
    imported.votes.to_parquet(tmp_path / "votes.parquet")
    assert imported.votes["vote"].tolist() == ["A", None]
    assert imported.missing == {"preference inf is not from 1 to 2": 1}
    lines = [{"item": "x", "vote": f"A{half}", "judge": half, "label": half}]
    tidy = opened(put(tmp_path / "v.jsonl", lines), classes="A?,B")
    rows_of(tidy).to_csv(tmp_path / "votes.csv")
    assert tidy.labels is not None
    tidy.labels.table.to_parquet(tmp_path / "labels.parquet")


def test_unknown_formats_and_foreign_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        JudgeBayesError, match="no format 'csv'; choose one of: reviews, judgebench"
    ):
        import_votes("csv", tmp_path)
    with pytest.raises(JudgeBayesError, match="judgebench does not take vote; it takes missing"):
        import_votes("judgebench", tmp_path, Options(vote="v"))


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_its_reader(form: str) -> None:
    reader: Callable[..., object] = reader_of(form)
    assert reader.__doc__
    assert set(FORMATS[form].takes) <= set(Options.__dataclass_fields__)
