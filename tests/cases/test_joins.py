"""Names are text as written, in every file and join; what merges or is left out is said."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases.asking import FILES, checked, result_of, run

import judgebayes as jb


@pytest.mark.parametrize(
    ("names", "labelled"),
    [("007", {"007": 1, "7": None}), ("210", {"2.10": 0, "2.1": None})],
)
def test_a_label_belongs_to_the_item_as_it_is_written(
    names: str, labelled: dict[str, int | None]
) -> None:
    data = jb.read(FILES / f"votes_{names}.csv", FILES / f"labels_{names}.csv")
    label = dict(zip(map(str, data.items["item"]), data.items["label"], strict=True))
    assert data.numbers["labels"] == 41
    assert {name: label[name] for name in labelled} == labelled


NAMES = [
    "007",
    "7",
    "2.10",
    "2.1",
    "2",
    "1e5",
    "100000",
    "0x1F",
    "TRUE",
    "1152921504606846977",
    "+5",
]


def write(table: pd.DataFrame, path: Path, numbers: str) -> Path:
    """Write a table; in JSONL the names of one column that can be numbers are numbers."""
    if path.suffix == ".parquet":
        table.to_parquet(path)
    elif path.suffix == ".jsonl":
        is_number = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?(e\d+)?")
        rows = [
            json.dumps(row)[:-1]
            + f', "{numbers}": {name if is_number.fullmatch(name) else json.dumps(name)}}}'
            for row, name in zip(
                table.drop(columns=numbers).to_dict("records"), table[numbers], strict=True
            )
        ]
        path.write_text("\n".join(rows))
    else:
        table.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("role", ["item", "judge", "group", "task", "annotator", "generator"])
def test_names_are_text_in_every_role_and_format(form: str, role: str, tmp_path: Path) -> None:
    """Eleven names, of which none is another one, beside whole numbers."""
    names = [*NAMES, *map(str, range(30, 60))]
    n = len(names)
    rng = np.random.default_rng(0)
    columns = {
        "item": [f"i{k}" for k in range(n)],
        "judge": "gpt",
        "vote": rng.integers(0, 2, n),
        "label": rng.integers(0, 2, n),
    }
    table = pd.DataFrame(columns | {role: names})
    if role == "annotator":
        path = write(table[["item", "judge", "vote"]], tmp_path / f"v.{form}", "item")
        labels = write(table[["item", "annotator", "label"]], tmp_path / f"l.{form}", "annotator")
        data = jb.read(path, labels, labels_merge="majority", annotator="annotator")
        assert f"{n} annotators" in " ".join(data.sentences)
        return
    path = write(table, tmp_path / f"v.{form}", role)
    if role == "generator":
        result = result_of("precision", path, "--method", "labels-only", out=tmp_path / "r.json")
        assert {row["generator"] for row in result["tables"]["generators"]} == set(names)
        return
    data = jb.read(path, **({role: role} if role in ("group", "task") else {}))
    if role == "group":
        assert len(set(data.groups)) == n
    elif role == "task":
        assert data.votes.n_tasks == n
    else:
        read = data.coding.items if role == "item" else data.coding.judges
        assert set(map(str, read)) == set(names)


def test_a_collected_text_is_the_one_of_the_file() -> None:
    judge = ("--judge", "m@http://localhost:1/v1", "--dry-run")
    said = run("collect", FILES / "items_numeric.csv", *judge)
    assert "<response_a> 0.50 </response_a>" in said
    said = run("collect", FILES / "items_ids.jsonl", *judge)
    assert "The prompt of item 007:" in said


def test_every_collected_text_is_the_one_of_the_file(tmp_path: Path) -> None:
    from judgebayes.collect.items import read_items

    roles = dict.fromkeys(("item", "prompt", "response", "response_a", "response_b"))
    csv = read_items(FILES / "items_numeric.csv", roles, None, None)
    pairs = [(item.fields["response_a"], item.fields["response_b"]) for item in csv.items]
    table = pd.read_csv(FILES / "items_numeric.csv", dtype=str)
    assert pairs == list(zip(table["response_a"], table["response_b"], strict=True))
    line = '{"item": 2.10, "prompt": "p", "response": %s}\n'
    for written, text in (
        ("0.50", "0.50"),
        ("true", "true"),
        ("1e5", "1e5"),
        ("[1.50, true]", "[1.50, true]"),
        ('"é"', "é"),
        ("1152921504606846977", "1152921504606846977"),
    ):
        path = tmp_path / "items.jsonl"
        path.write_text(line % written)
        (item,) = read_items(path, roles, None, None).items
        assert (item.name, item.fields["response"]) == ("2.10", text)


def test_spellings_of_one_name_are_one_with_a_note() -> None:
    result = checked("two_spellings.csv")
    assert result.data.numbers["judges"] == 2
    notes = [note for note in result.data.sentences if "several spellings" in note]
    assert len(notes) == 2
    assert "'gpt', 'gpt '" in notes[1]


def test_composed_and_decomposed_letters_are_one_judge(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text(
        "item,judge,vote\n1,Ren\u00e9,1\n2,Rene\u0301,0\n3,\u200bRen\u00e9,1\n"
    )
    data = jb.read(tmp_path / "v.csv")
    assert data.numbers["judges"] == 1
    assert "1 name(s) in several spellings" in " ".join(data.sentences)


def test_an_item_without_a_group_is_a_group_of_its_own(tmp_path: Path) -> None:
    data = jb.read(FILES / "groups_empty.csv", FILES / "groups_empty_labels.csv", group="grp")
    table = pd.read_csv(FILES / "groups_empty.csv")
    blank = table.loc[table["grp"].isna(), "item"].nunique()
    assert len(set(data.groups)) == table["grp"].nunique() + blank
    assert f"{blank} item(s) have no group in column 'grp'" in " ".join(data.sentences)


@pytest.mark.parametrize("command", ["precision", "calibrate", "diagnose"])
def test_rows_of_commas_are_no_rows(command: str, tmp_path: Path) -> None:
    votes, labels = FILES / "votes_for_labels_blank_rows.csv", FILES / "labels_blank_rows.csv"
    rows = labels.read_text().splitlines()
    (tmp_path / "l.csv").write_text("\n".join(row for row in rows if row.strip(",")) + "\n")
    (tmp_path / "labels_blank_rows.csv").write_text((tmp_path / "l.csv").read_text())
    more = {
        "precision": ("--set", "generator=gen", "--method", "strata"),
        "calibrate": ("--method", "sc", "--splits", 5),
    }.get(command, ())
    with_rows = run(command, votes, "--labels", labels, *more)
    without = run(command, votes, "--labels", tmp_path / "labels_blank_rows.csv", *more)
    assert "left out" not in with_rows or "left out" in without
    assert with_rows.replace(str(labels), "") == without.replace(
        str(tmp_path / "labels_blank_rows.csv"), ""
    )


def test_whole_numbers_of_any_size_stay_apart() -> None:
    data = jb.read(FILES / "bigint_float.jsonl")
    assert list(map(str, data.items["item"])) == [str(2**60), str(2**60 + 1), "2.5", "5"]


def test_a_label_is_never_matched_with_a_place(tmp_path: Path) -> None:
    """Results without names: case-1 is at place 0, so that folding would move each label by one."""
    log = json.loads((FILES / "promptfoo_offbyone.json").read_text())
    for result in log["results"]["results"]:
        for case in (result, result["testCase"]):
            case["vars"].pop("id", None)
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    result = jb.check(path, FILES / "promptfoo_offbyone_labels.csv")
    assert result.data is None
    assert "match_ids" not in result.options
    said = run("calibrate", path, "--labels", FILES / "promptfoo_offbyone_labels.csv", code=2)
    assert "loosely" not in said
    loosely = ("--set", "match_ids=loosely", "--set", "drop_unknown_labels=true")
    run("calibrate", path, "--labels", FILES / "promptfoo_offbyone_labels.csv", *loosely, code=2)


@pytest.mark.parametrize("ours", ["case-{}", "{}.json", "q{}", "Item {}"])
@pytest.mark.parametrize("swapped", [False, True])
def test_no_fold_leaves_a_number_against_places(ours: str, swapped: bool, tmp_path: Path) -> None:
    places = [str(i) for i in range(40)]
    names = [ours.format(i + 1) for i in range(40)]
    votes, labels = (names, places) if swapped else (places, names)
    pd.DataFrame({"item": votes, "judge": "j", "vote": [0, 1] * 20}).to_csv(
        tmp_path / "v.csv", index=False
    )
    pd.DataFrame({"item": labels, "label": [0, 1] * 20}).to_csv(tmp_path / "l.csv", index=False)
    assert jb.check(tmp_path / "v.csv", tmp_path / "l.csv").data is None


@pytest.mark.parametrize("swapped", [False, True])
def test_some_places_are_not_taken_for_numbers_from_one(swapped: bool, tmp_path: Path) -> None:
    """Labels of the items 3, 7, ..., beside case-1 to case-40: 3 is case-3, or case-4 at place 3."""
    names = [f"case-{i + 1}" for i in range(40)]
    some = [str(i) for i in (3, 7, 12, 20, 33)]
    votes, labels = (some, names) if swapped else (names, some)
    classes = [0, 1] * 20
    table = pd.DataFrame({"item": votes, "judge": "j", "vote": classes[: len(votes)]})
    table.to_csv(tmp_path / "v.csv", index=False)
    gold = pd.DataFrame({"item": labels, "label": classes[: len(labels)]})
    gold.to_csv(tmp_path / "l.csv", index=False)
    assert jb.check(tmp_path / "v.csv", tmp_path / "l.csv").options.get("match_ids") is None
    # The last number is no place.
    certain = pd.DataFrame({"item": ["3", "40"], "label": [0, 1]})
    certain.to_csv(tmp_path / "c.csv", index=False)
    if not swapped:
        result = jb.check(tmp_path / "v.csv", tmp_path / "c.csv")
        assert result.options["match_ids"] == "loosely"


def test_only_one_judge_is_named_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("item,judge,vote\n1,007,1\n1,7,0\n2,007 ,1\n2,7,1\n3,7,0\n")
    data = jb.read(tmp_path / "v.csv", only_judge="007")
    assert data.numbers["votes"] == 2


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_fit_is_applied_to_the_judges_as_they_are_written(suffix: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 60)
    table = pd.DataFrame(
        [
            (f"{i}.10", judge, int(y if rng.random() < right else 1 - y), int(y))
            for judge, right in (("007", 0.9), ("7", 0.6))
            for i, y in enumerate(label)
        ],
        columns=["item", "judge", "vote", "label"],
    )
    table.to_csv(tmp_path / "v.csv", index=False)
    run("calibrate", tmp_path / "v.csv", "--method", "one-coin", "--save", tmp_path / "fit.json",
        "--splits", 3)  # fmt: skip
    new = table.drop(columns="label").sample(frac=1, random_state=1)
    path = tmp_path / f"new.{suffix}"
    new.to_csv(path, index=False) if suffix == "csv" else new.to_json(
        path, orient="records", lines=True
    )
    for votes, out in ((tmp_path / "v.csv", "a.csv"), (path, "b.csv")):
        run("apply", tmp_path / "fit.json", votes, "--out", tmp_path / out)
    first, again = (
        pd.read_csv(tmp_path / out, dtype={"item": str}).sort_values("item")
        for out in ("a.csv", "b.csv")
    )
    assert set(first["item"]) == {f"{i}.10" for i in range(60)}
    pd.testing.assert_frame_equal(first.reset_index(drop=True), again.reset_index(drop=True))


@pytest.mark.parametrize(
    ("shift", "words"), [(1, "next item on 9"), (-1, "previous item on 9"), (0, "")]
)
def test_labels_of_the_next_item_are_noticed(shift: int, words: str) -> None:
    """One file counts from 0 and the other from 1; agreement by chance is a half."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 80)
    votes = [
        (f"q{i}", judge, int(truth[i] if rng.random() < 0.95 else 1 - truth[i]))
        for i in range(80)
        for judge in "abc"
    ]
    labels = [(f"q{i + shift}", int(truth[i])) for i in range(2, 70)]
    frames = pd.DataFrame(votes, columns=["item", "judge", "vote"]), pd.DataFrame(labels)
    checked = jb.check(frames[0], frames[1].set_axis(["item", "label"], axis=1))
    said = " ".join(each.sentence for each in checked.problems)
    assert words in said
    assert ("counted from 0" in said) == bool(shift)


@pytest.mark.parametrize("shuffled", [False, True])
def test_labels_in_another_order_are_noticed_by_every_command(shuffled: bool) -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 200)
    votes = pd.DataFrame(
        [(f"q{i}", j, int(truth[i] ^ (rng.random() < 0.2))) for i in range(200) for j in "abc"],
        columns=["item", "judge", "vote"],
    )
    given = rng.permutation(truth) if shuffled else truth
    labels = pd.DataFrame({"item": [f"q{i}" for i in range(200)], "label": given})
    said = [" ".join(each(votes, labels).sentences) for each in (jb.read, jb.check, jb.diagnose)]
    assert all(("labels in random order on 50%" in text) == shuffled for text in said)
