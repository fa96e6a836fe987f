"""What `check` reads in files as people and tools write them, and what is right.

None of the files may join a label to the wrong item, or end in a traceback.
"""

from pathlib import Path

import numpy as np
import pytest
from cases.asking import FILES, checked, diagnosed, run

import judgebayes as jb

LABELS = {
    "promptfoo_offbyone.json": "promptfoo_offbyone_labels.csv",
    "nan_class_votes.csv": "nan_class_labels.csv",
    "mt_votes.csv": "mt_human.csv",
    "inspect_log.json": "inspect_labels_CI.csv",
    "alpaca_annotations.json": "alpaca_labels.csv",
    "sample_id.csv": "sample_id_labels.csv",
    "ppi_votes.csv": "ppi_labels.csv",
    "votes_007.csv": "labels_007.csv",
    "votes_210.csv": "labels_210.csv",
    "groups_empty.csv": "groups_empty_labels.csv",
    "votes_for_labels_blank_rows.csv": "labels_blank_rows.csv",
    "ls_judges.csv": "ls_export.csv",
    "inspect_zstd.eval": "inspect_labels_CI.csv",
}
EVERY = sorted(path.name for path in FILES.iterdir() if path.suffix != ".md")


@pytest.mark.parametrize("name", EVERY)
def test_every_file_is_read_or_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    """The command ends with 0 where it names a command that runs, and else with 2."""
    for more in ([], ["--labels", FILES / LABELS[name]]) if name in LABELS else ([],):
        votes, labels = FILES / name, more[1] if more else None
        result = jb.check(votes, labels)
        said = run("check", votes, *more, code=2 if result.command is None else 0)
        assert "Traceback" not in said
        assert ("This command runs:" in said) == (result.command is not None)
    run("diagnose", votes, *more, code=0 if name in EVERYWHERE else 2)


EVERYWHERE = {
    "alpaca_annotations.json",
    "bigint_float.jsonl",
    "evals_log.jsonl",
    "formula_semicolon.csv",
    "groups_empty.csv",
    "inspect_log.json",
    "inspect_zstd.eval",
    "langsmith.csv",
    "ls_export.csv",
    "mt_human.csv",
    "nan_class_votes.csv",
    "prodigy.jsonl",
    "promptfoo_offbyone.json",
    "two_spellings.csv",
    "votes_007.csv",
    "votes_210.csv",
    "wide_words_goldlabel.csv",
    "votes_for_labels_blank_rows.csv",
}
"""Files that need no option."""


def test_results_whose_tests_have_names() -> None:
    accuracy = diagnosed("promptfoo_offbyone.json", "promptfoo_offbyone_labels.csv")
    assert accuracy == {"gpt": 92, "claude": 92}


def test_a_blank_cell_is_a_missing_vote_and_no_class() -> None:
    data = checked("nan_class_votes.csv", "nan_class_labels.csv").data
    assert data.coding.classes.names == ("harmful", "helpful")
    assert data.numbers["votes"] == 119


@pytest.mark.parametrize("blank", ["", " ", '""', "NaN", "N/A", "null"])
def test_blanks_of_every_kind_are_missing(blank: str, tmp_path: Path) -> None:
    rows = [f"i{i},{j},{'good' if i % 2 else 'bad'}" for i in range(6) for j in "ab"]
    (tmp_path / "v.csv").write_text(
        "\n".join(["item,judge,vote", *rows, f"i1,c,{blank}", "i2,c,bad"])
    )
    data = jb.read(tmp_path / "v.csv")
    assert data.coding.classes.names == ("bad", "good")
    assert data.numbers["votes"] == 13


def test_records_whose_vote_is_a_list_of_one_word() -> None:
    data = checked("prodigy.jsonl").data
    assert data.coding.classes.names == ("BAD", "GOOD")
    assert (data.numbers["judges"], data.numbers["votes"]) == (2, 60)


def test_an_event_log_of_evaluations() -> None:
    """200 items; 13 answers are `__invalid__`, which is missing."""
    data = checked("evals_log.jsonl").data
    assert (data.numbers["items"], data.numbers["votes"]) == (200, 187)


def test_single_answer_grading() -> None:
    data = checked("mtbench_single.jsonl").data
    assert list(data.coding.judges) == ["gpt-4/single-v1"]


def test_the_abstentions_of_labelling_functions_are_undecided() -> None:
    """1,802 of 2,800 cells are -1, which no label is."""
    result = checked("snorkel_L.csv")
    undecided = result.data.coding.undecided
    assert int(undecided.sum()) == 1802
    assert max(diagnosed("snorkel_L.csv").values()) == 95


@pytest.mark.parametrize(
    "name", ["wide_words_goldlabel.csv", "wide_words_human.csv", "wide_yesno_human.csv"]
)
def test_words_in_a_column_per_judge(name: str) -> None:
    data = checked(name).data
    assert data.numbers["judges"] == 2
    assert data.numbers["labels"] == data.numbers["items"] == 60


@pytest.mark.parametrize(
    ("name", "person"),
    [
        ("ragas_human_ok.csv", "human_ok"),
        ("langsmith.csv", "feedback.user_score"),
        ("semi_decimal_comma.csv", "Urteil Mensch"),
    ],
)
def test_a_persons_column_is_asked_about(name: str, person: str) -> None:
    """No judge and no vote: a question with the command for either answer."""
    result = jb.check(FILES / name)
    judges = [] if result.data is None else list(map(str, result.data.coding.judges))
    assert person not in judges
    assert any(person in each.text and "--label" in each.text for each in result.findings)


def test_two_files_with_a_column_of_votes() -> None:
    result = checked("mt_votes.csv", "mt_human.csv")
    assert result.data.numbers["labels"] == result.data.numbers["items"] == 160
    assert diagnosed("mt_votes.csv", "mt_human.csv") == {"gpt-4/pair-v2": 81}


def test_the_letters_of_a_log() -> None:
    accuracies = diagnosed("inspect_log.json", "inspect_labels_CI.csv")
    assert sorted(accuracies.values()) == [79, 83, 84]


def test_preferences_are_joined_by_instruction() -> None:
    data = checked("alpaca_annotations.json", "alpaca_labels.csv").data
    assert data.numbers["labels"] == data.numbers["items"] == 60


def test_the_item_may_be_called_sample_id() -> None:
    data = checked("sample_id.csv", "sample_id_labels.csv").data
    assert data.opened.columns["item"] == "sample_id"


@pytest.mark.parametrize(
    ("name", "tool"), [("labelstudio.json", "Label Studio"), ("deepeval.json", "DeepEval")]
)
def test_the_export_of_a_tool_is_read_or_named(name: str, tool: str) -> None:
    result = jb.check(FILES / name)
    assert result.data is not None or tool in " ".join(each.text for each in result.findings)


def test_verdicts_in_sentences_are_read_as_text() -> None:
    assert checked("prose.csv").data.numbers["votes"] == 386


def test_two_header_rows_are_joined_or_asked_about() -> None:
    result = jb.check(FILES / "multi_header.csv")
    said = " ".join(each.text for each in result.findings)
    assert result.data is not None or "header rows" in said


def test_a_log_in_the_current_archive() -> None:
    accuracies = diagnosed("inspect_zstd.eval", "inspect_labels_CI.csv")
    assert sorted(accuracies.values()) == [79, 83, 84]


def test_no_file_is_read_with_a_label_on_another_item() -> None:
    """Every labelled item of a file that is read has the label that its row has."""
    import pandas as pd

    for votes, labels in LABELS.items():
        result = jb.check(FILES / votes, FILES / labels)
        if result.data is None or votes == "ls_judges.csv":
            continue
        table = pd.read_csv(FILES / labels, dtype=str).dropna(how="all")
        label = dict(zip(table.iloc[:, 0], table.iloc[:, 1], strict=True))
        read = result.data.items.dropna(subset="label")
        assert len(read) > 0
        same = [
            str(value) == label[str(item)] or label[str(item)] not in map(str, read["label"])
            for item, value in zip(read["item"], read["label"], strict=True)
        ]
        assert np.all(same), votes
