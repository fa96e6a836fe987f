"""Shapes of files that were once read wrongly: the first reading is the one of whoever made the file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from runner import CliRunner

import judgebayes as jb
from judgebayes import cli
from judgebayes.errors import AmbiguousStudy, JudgeBayesError

RNG = np.random.default_rng(0)
N = 40
TRUTH = RNG.integers(0, 2, N)
WORDS = np.array(["invalid", "valid"])


def votes(right: float) -> np.ndarray:
    """Return votes that are the truth with this probability."""
    return np.where(RNG.random(N) < right, TRUTH, 1 - TRUTH)


ONE, TWO = votes(0.9), votes(0.7)


def first_reading(*files: Any, **how: Any) -> Any:
    """Return the first of the ways in which files can be read, or the only one."""
    try:
        return jb.read(*files, **how)
    except AmbiguousStudy as question:
        return jb.read(*files, **how, **question.candidates[0].options)


def long(**by_judge: np.ndarray) -> pd.DataFrame:
    """Return a table with a row per vote."""
    rows = [(f"q{i}", judge, int(of[i])) for i in range(N) for judge, of in by_judge.items()]
    return pd.DataFrame(rows, columns=["item", "judge", "vote"])


def lines(path: Path, record: Callable[[int], dict[str, Any]]) -> Path:
    """Write a record for each item."""
    path.write_text("".join(json.dumps(record(i)) + "\n" for i in range(N)))
    return path


def assert_read(data: Any, judges: dict[str, np.ndarray], labels: np.ndarray = TRUTH) -> None:
    """Assert that a study has these votes and these labels, in the order of the items."""
    assert [str(name) for name in data.coding.judges] == list(judges)
    index = np.asarray(data.votes.index)[:, :, 0]
    np.testing.assert_array_equal(index, np.stack(list(judges.values()), 1))
    np.testing.assert_array_equal(data.labels, labels)


def test_objects_in_a_record_are_columns(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.jsonl",
        lambda i: {
            "id": f"u{i}",
            "metadata": {"run": "2025-01-01"},
            "scores": {"gpt": str(WORDS[ONE[i]]), "haiku": str(WORDS[TWO[i]])},
            "human_label": str(WORDS[TRUTH[i]]),
        },
    )
    assert_read(first_reading(path), {"gpt": ONE, "haiku": TWO})
    assert_read(first_reading(pd.read_json(path, lines=True)), {"gpt": ONE, "haiku": TWO})


def test_fields_of_the_same_name_keep_the_name_of_their_object(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.jsonl",
        lambda i: {
            "id": f"u{i}",
            "metadata": {"judge": "gpt", "temperature": 0.7},
            "scores": {"correctness": int(ONE[i])},
            "reference": {"correctness": int(TRUTH[i])},
        },
    )
    assert_read(first_reading(path), {"gpt": ONE})


@pytest.mark.parametrize("names", ["run{}", "vote_{}", "gpt_run{}", "{}"])
def test_numbered_columns_are_repeated_votes_of_a_judge(names: str) -> None:
    runs = {names.format(number): cast for number, cast in enumerate((ONE, TWO, TRUTH), start=1)}
    table = pd.DataFrame({"id": range(N)} | runs | {"label": TRUTH})
    data = first_reading(table)
    assert [*map(str, data.coding.judges)] == ["gpt" if "gpt" in names else "judge"]
    expected = np.stack([ONE, TWO, TRUTH], 1)[:, None]
    np.testing.assert_array_equal(np.asarray(data.votes.index), expected)
    with pytest.raises(AmbiguousStudy) as question:
        jb.read(table)
    other = jb.read(table, **question.value.candidates[1].options)
    assert [*map(str, other.coding.judges)] == [*runs]


def test_a_column_of_kinds_says_who_is_a_person(tmp_path: Path) -> None:
    voters = (("llm", "gpt", ONE), ("llm", "claude", TWO), ("human", "anna", TRUTH))
    rows = [(i, kind, name, own[i]) for i in range(N) for kind, name, own in voters]
    table = pd.DataFrame(rows, columns=["id", "type", "rater", "verdict"])
    assert_read(first_reading(table), {"gpt": ONE, "claude": TWO})


def test_an_item_is_its_id_rather_than_its_words(tmp_path: Path) -> None:
    rows = [
        (f"What is {i} plus {i}?", i, name, own[i])
        for i in range(N)
        for name, own in (("gpt", ONE), ("claude", TWO))
    ]
    table = pd.DataFrame(rows, columns=["question", "id", "model", "verdict"])
    gold = pd.DataFrame({"id": range(N), "label": TRUTH})
    assert_read(first_reading(table, gold), {"gpt": ONE, "claude": TWO})


def test_scores_of_a_person_among_those_of_models_are_labels() -> None:
    hard = RNG.random(N)
    noisy = {name: np.round(100 * (hard + RNG.random(N)) / 2) for name in ("gpt", "claude")}
    table = pd.DataFrame({"essay_id": range(N)} | noisy | {"teacher": np.round(25 + 50 * hard)})
    data = first_reading(table)
    assert [*map(str, data.coding.judges)] == ["gpt", "claude"]
    assert (data.labels >= 0).all()


def test_the_systems_of_wide_battles_are_no_judges() -> None:
    winner = np.array(["model_b", "model_a"])
    table = pd.DataFrame(
        {
            "question_id": [f"q{i}" for i in range(N)],
            "model_a": RNG.choice(["claude", "gpt", "llama"], N),
            "model_b": RNG.choice(["claude", "gpt", "llama"], N),
            "claude_winner": winner[ONE],
            "gpt4_winner": winner[TWO],
            "human_winner": winner[TRUTH],
        }
    )
    assert_read(first_reading(table), {"claude_winner": ONE, "gpt4_winner": TWO})


def test_battles_keep_the_systems_that_they_compare(tmp_path: Path) -> None:
    path = tmp_path / "battles.csv"
    pairs = [("x", "y"), ("y", "x")]
    rows = [
        (f"q{i}", *pairs[i % 2], "model_a" if given[i] else "model_b", judge)
        for i in range(N)
        for judge, given in (("human", TRUTH), ("gpt", ONE))
    ]
    names = ["question_id", "model_a", "model_b", "winner", "judge"]
    pd.DataFrame(rows, columns=names).to_csv(path, index=False)
    rates = jb.calibrate(path, systems="model_a,model_b")
    assert set(rates.tables["systems"]["system"]) == {"x", "y"}


@pytest.mark.parametrize("item", ["question", "prompt_id", "id"])
def test_labels_of_battles_may_name_the_system_that_won(item: str, tmp_path: Path) -> None:
    names = np.array(["new", "old"])
    rows = [
        (f"q{i}", "new", "old", names[given[i]], judge)
        for i in range(N)
        for judge, given in (("gpt", ONE), ("claude", TWO))
    ]
    pd.DataFrame(rows, columns=[item, "model_a", "model_b", "winner", "judge"]).to_csv(
        tmp_path / "battles.csv", index=False
    )
    gold = pd.DataFrame({item: [f"q{i}" for i in range(N)], "label": names[TRUTH]})
    gold.to_csv(tmp_path / "labels.csv", index=False)
    assert_read(
        first_reading(tmp_path / "battles.csv", tmp_path / "labels.csv"),
        {"gpt": 2 * (1 - ONE), "claude": 2 * (1 - TWO)},  # B, tie, A
        2 * (1 - TRUTH),
    )
    rate = jb.win_rate(tmp_path / "battles.csv", tmp_path / "labels.csv").numbers["win_rate"]
    assert (rate["of"], rate["over"]) == ("new", "old")


@pytest.mark.parametrize("apart", [True, False])
def test_a_column_of_generators_is_part_of_the_item(apart: bool) -> None:
    rows = [
        (f"p{i // 2}", f"gen-{i % 2}", judge, WORDS[given[i]], WORDS[TRUTH[i]])
        for i in range(N)
        for judge, given in (("gpt", ONE), ("claude", TWO))
    ]
    names = ["prompt_id", "model", "judge_model", "verdict", "human"]
    table = pd.DataFrame(rows, columns=names)
    files = [table]
    if apart:
        gold = table[["prompt_id", "model", "human"]].drop_duplicates()
        files = [table.drop(columns="human"), gold]
    assert_read(first_reading(*files), {"gpt": ONE, "claude": TWO})
    shares = jb.precision(*files, item="prompt_id,model").tables["generators"]
    assert set(shares["generator"]) == {"gen-0", "gen-1"}


def test_votes_of_people_among_those_of_judges_are_the_labels() -> None:
    table = long(gpt=ONE, claude=TWO, human=TRUTH)
    with pytest.raises(
        AmbiguousStudy, match="Are the votes of 'human', named like people"
    ) as asked:
        jb.read(table)
    first, second = asked.value.candidates
    assert_read(jb.read(table, **first.options), {"gpt": ONE, "claude": TWO})
    assert len(jb.read(table, **second.options).coding.judges) == 3
    assert_read(jb.read(table, label="human"), {"gpt": ONE, "claude": TWO})


def test_several_people_among_judges_are_annotators() -> None:
    other = TRUTH.copy()
    other[:3] = 1 - other[:3]
    table = long(gpt=ONE, human_1=TRUTH, human_2=other)
    data = first_reading(table)
    unsure = np.where(other == TRUTH, TRUTH, -1)
    assert_read(data, {"gpt": ONE}, unsure)
    data = jb.read(table, label="human_1")
    assert "Named like people, and read as judges: 'human_2'." in data.words()


def test_a_judge_whose_name_has_a_word_for_people_and_for_models_is_a_judge() -> None:
    assert len(jb.read(long(gpt=ONE, user_model=TWO)).coding.judges) == 2
    assert len(jb.read(long(rater_1=ONE, rater_2=TWO)).coding.judges) == 2


def test_a_person_with_two_votes_on_an_item_is_no_label() -> None:
    table = long(gpt=ONE, human=TRUTH)
    again = table[table["judge"] == "human"].head(1).assign(vote=1 - TRUTH[0])
    with pytest.raises(JudgeBayesError, match=r"'human' is named like a person, and has two votes"):
        jb.read(pd.concat([table, again], ignore_index=True), repeats=True)


def test_labels_that_are_the_votes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    long(gpt=ONE).to_csv(path, index=False)
    with pytest.raises(JudgeBayesError, match="The labels are the votes themselves"):
        jb.read(path, path)


def test_the_settled_one_of_several_columns_of_labels_is_used() -> None:
    other = TRUTH.copy()
    other[:3] = 1 - other[:3]
    gold = pd.DataFrame({"item": [f"q{i}" for i in range(N)], "annotator_1": TRUTH, "final": TRUTH})
    gold.insert(2, "annotator_2", other)
    assert_read(first_reading(long(gpt=ONE), gold), {"gpt": ONE})


@pytest.mark.parametrize("wide", [True, False])
def test_an_adjudicator_decides(wide: bool) -> None:
    other = TRUTH.copy()
    other[:3] = 1 - other[:3]
    items = [f"q{i}" for i in range(N)]
    gold = pd.DataFrame({"item": items, "annotator_1": TRUTH, "annotator_2": other})
    gold["adjudicator"] = [TRUTH[i] if i < 3 else None for i in range(N)]
    if not wide:
        gold = gold.melt("item", var_name="annotator", value_name="label").dropna()
    assert_read(first_reading(long(gpt=ONE), gold), {"gpt": ONE})


def test_a_criterion_with_a_column_of_people_is_asked_about() -> None:
    table = pd.DataFrame(
        {
            "sample_id": range(N),
            "judge": "gpt",
            "helpful": ONE,
            "safety": TWO,
            "human_helpful": TRUTH,
            "human_safety": 1 - TRUTH,
        }
    )
    with pytest.raises(AmbiguousStudy) as asked:
        jb.read(table)
    ways = [(way.options["vote"], way.options["label"]) for way in asked.value.candidates]
    assert ways == [("helpful", "human_helpful"), ("safety", "human_safety")]
    assert_read(first_reading(table), {"gpt": ONE})


def test_percentages_are_numbers() -> None:
    shares = pd.DataFrame({"item": [f"q{i}" for i in range(N)], "judge": "gpt"})
    shares["score"] = [f"{40 * v + n} %" for n, v in enumerate(ONE)]
    gold = pd.DataFrame({"item": shares["item"], "label": TRUTH})
    data = first_reading(shares, gold)
    assert "Column 'score': percentages, " in " ".join(data.words())
    assert len(data.coding.classes) == 2


def test_a_merged_header_may_have_a_word_above_the_item(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    rows = [f"Q{i},text,{ONE[i]},{TWO[i]},{TRUTH[i]}" for i in range(N)]
    head = ["Item,,LLM judges,,Human", "ID,Prompt,GPT,Claude,Final"]
    path.write_text("\n".join([*head, *rows]) + "\n")
    judges = {"LLM judges / GPT": ONE, "LLM judges / Claude": TWO}
    assert_read(first_reading(path), judges)


def test_a_calibration_can_be_applied_without_a_file() -> None:
    gold = pd.DataFrame({"item": [f"q{i}" for i in range(N)], "label": TRUTH})
    fit = jb.calibrate(long(gpt=ONE, claude=TWO), gold, splits=2)
    now = jb.apply(fit, long(gpt=ONE, claude=TWO))
    same = ["item", "decision"]
    pd.testing.assert_frame_equal(now.answers[same], fit.answers[same])


def test_objects_in_objects_are_columns(tmp_path: Path) -> None:
    def said(vote: int) -> dict[str, str]:
        return {"verdict": str(WORDS[vote]), "reason": "because"}

    path = lines(
        tmp_path / "a.jsonl",
        lambda i: {
            "id": f"u{i}",
            "scores": {"gpt": said(ONE[i]), "haiku": said(TWO[i])},
            "human": {"verdict": str(WORDS[TRUTH[i]]), "by": "anna"},
        },
    )
    assert_read(first_reading(path), {"gpt.verdict": ONE, "haiku.verdict": TWO})


def test_lists_of_objects_are_rows(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.jsonl",
        lambda i: {
            "uid": f"u{i}",
            "judgments": [{"judge": j, "vote": int(v[i])} for j, v in (("g", ONE), ("c", TWO))],
            "ground_truth": int(TRUTH[i]),
        },
    )
    assert_read(first_reading(path), {"g": ONE, "c": TWO})


@pytest.mark.parametrize("words", [("model_b", "model_a"), ("x", "y")])
def test_battles_with_labels_are_a_table_of_the_users_own(
    words: tuple[str, str], tmp_path: Path
) -> None:
    winner = np.array(words)
    table = pd.DataFrame({"battle_id": range(N), "model_a": "x", "model_b": "y"})
    table = table.assign(judge_model="gpt", winner=winner[ONE], human_winner=winner[TRUTH])
    table.to_csv(tmp_path / "b.csv", index=False)
    assert_read(first_reading(tmp_path / "b.csv"), {"gpt": ONE})


def test_true_and_false_beside_a_word_are_words(tmp_path: Path) -> None:
    words = np.array(["FALSE", "TRUE"])
    one = words[ONE].astype(object)
    one[3] = "UNSURE"
    table = pd.DataFrame({"id": range(N), "gpt": one, "claude": words[TWO], "human": words[TRUTH]})
    table.to_csv(tmp_path / "t.csv", index=False)
    kept = ONE.copy()
    kept[3] = -1
    assert_read(first_reading(tmp_path / "t.csv"), {"gpt": kept, "claude": TWO})


def test_a_judge_with_half_points_is_a_judge() -> None:
    stars = RNG.integers(1, 6, (N, 3)).astype(float)
    stars[::7, 0] = 2.5
    table = pd.DataFrame({"id": [f"q{i}" for i in range(N)]})
    table[["gpt", "claude", "human"]] = stars
    assert list(first_reading(table).coding.judges) == ["gpt", "claude"]


def test_a_column_of_people_labels_the_judges_of_its_criterion() -> None:
    table = pd.DataFrame({"id": [f"q{i}" for i in range(N)], "gpt_tone": ONE, "gpt_facts": TWO})
    table = table.assign(human_tone=TRUTH, human_facts=1 - TRUTH)
    with pytest.raises(AmbiguousStudy) as asked:
        jb.read(table)
    first, second, *_ = asked.value.candidates
    assert_read(jb.read(table, **first.options), {"gpt_tone": ONE})
    assert_read(jb.read(table, **second.options), {"gpt_facts": TWO}, 1 - TRUTH)


def test_what_made_an_item_is_no_judge() -> None:
    table = pd.DataFrame({"id": [f"q{i}" for i in range(N)], "model": ["a", "b"] * (N // 2)})
    table = table.assign(judge_score=ONE, human_score=TRUTH)
    data = first_reading(table)
    assert len(data.coding.judges) == 1
    np.testing.assert_array_equal(np.asarray(data.votes.index)[:, 0, 0], ONE)
    np.testing.assert_array_equal(data.labels, TRUTH)


def test_short_answers_are_answers() -> None:
    table = pd.DataFrame({"id": [f"q{i}" for i in range(N)], "judge": "gpt"})
    table["response"] = [f"The answer looks fine. Verdict: {('no', 'yes')[v]}" for v in ONE]
    table["human"] = np.array(["no", "yes"])[TRUTH]
    assert_read(first_reading(table), {"gpt": ONE})


def test_the_only_settled_column_beside_names_is_the_label() -> None:
    gold = pd.DataFrame({"item": [f"q{i}" for i in range(N)], "anna": 1 - TRUTH, "ben": TRUTH})
    assert_read(first_reading(long(gpt=ONE), gold.assign(adjudicated=TRUTH)), {"gpt": ONE})


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (("--html", "page.pdf"), "A page ends in .html"),
        (("--set", "votes=other.csv"), "files have options of their own"),
    ],
)
def test_files_are_named_by_their_options(
    words: tuple[str, ...], match: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    long(gpt=ONE).to_csv("v.csv", index=False)
    done = CliRunner().invoke(cli.app, ["diagnose", "v.csv", *words])
    assert isinstance(done.exception, JudgeBayesError)
    assert match in str(done.exception)
    assert [each.name for each in tmp_path.iterdir()] == ["v.csv"]
