"""Conversions of small files in each repository's form, against numbers computed by hand."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from judgebayes.experiments.public import code_feedback, llmbar, rb2, rewardbench, wmt23
from judgebayes.experiments.public.names import coin, die, rank


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_names_determine_the_draws() -> None:
    # The SHA-256 of "abc" begins ba7816bf and ends 15ad.
    assert coin("abc")
    assert rank("abc").startswith("ba7816bf")
    assert die("abc", 16) == 0xD
    names = [f"item{k}" for k in range(3000)]
    assert abs(np.mean([coin(n) for n in names]) - 0.5) < 0.04
    assert np.bincount([die(n, 3) for n in names]).min() > 900


def test_llmbar_votes_have_two_orders_and_ratings_are_repeated(tmp_path: Path) -> None:
    home = tmp_path / "Dataset" / "LLMBar" / "Natural"
    pair = {"input": "Say a.", "output_1": "a", "output_2": "bcd", "label": 1}
    _write(home / "dataset.json", json.dumps([pair]))
    swapped = {"swap = False": {"winner": "1"}, "swap = True": {"winner": "2"}}
    rated = {"score_1": ["3"], "score_2": ["3"]} | swapped
    unread = rated | {"score_1": ["good", "stop"]}
    steps = {"Vanilla": [["metrics"], swapped], "Rating": [rated], "Unread": [unread]}
    for judge, results in steps.items():
        record = pair | {"results": results}
        _write(home / "evaluators" / "GPT" / judge / "result.json", json.dumps([record]))
    tables = llmbar.convert(tmp_path)
    votes = tables["votes_by_order.parquet"].astype(object)
    missing = votes["judge"] == "GPT/Unread"
    assert votes["vote"][missing].isna().tolist() == [True, True]
    votes = votes[~missing]
    assert votes[["judge", "order", "vote"]].to_numpy().tolist() == [
        ["GPT/Rating", "AB", "tie"],
        ["GPT/Rating", "BA", "tie"],
        ["GPT/Vanilla", "AB", "A"],
        ["GPT/Vanilla", "BA", "B"],
    ]
    assert votes["correct"].tolist()[2:] == [1.0, 0.0]
    assert votes["correct"].isna().tolist() == [True, True, False, False]
    labels = tables["labels.parquet"]
    assert labels.iloc[0].tolist() == ["LLMBar/Natural#0", "LLMBar/Natural", "A", 1, 3]


def test_code_feedback_reads_sheets_and_literals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = pd.DataFrame(
        {
            "sid": [1, 2],
            "line_number": ["3", "N/A"],
            "feedback": ["f", "g"],
            "y": [1, 0],
            "y_m": [1.0, np.nan],
            "y_n": [0, 1],
        }
    )
    monkeypatch.setattr(code_feedback, "_sheets", lambda _folder, _level: {"m": sheet})
    for level in code_feedback.LEVELS:
        home = tmp_path / code_feedback.SCRIPTS
        _write(
            home / f"llm_as_judge_{level}.py",
            "GV = [[0.5, 0.25], [1.0, 0]]\n"
            "confusion_matrix_validators = [[[1, 2, 3, 4], [0, 1, 0, 1]]]\n",
        )
        counts = "".join(f"{name} = [[1, 2], [3, 4]]\n" for name in code_feedback.COUNTS.values())
        _write(home / f"summary_{level}.py", counts)
    tables = code_feedback.convert(tmp_path)
    votes = tables["votes.parquet"].astype(object)
    first = votes[votes["repair"] == "fc"]
    assert first[["item", "validator", "vote"]].to_numpy().tolist() == [
        ["m#0", "m", 1],
        ["m#0", "n", 0],
        ["m#1", "n", 1],
    ]
    assert tables["labels.parquet"]["line_number"].tolist() == ["3", "N/A"]
    matrix = tables["gv_matrix.csv"].set_index(["repair", "generator", "validator"])
    assert matrix.loc[("noRepair", "n", "m")].tolist() == [1.0, 3, 3, 3, 3, 3]
    confusion = tables["confusion.csv"]
    assert confusion.iloc[0].tolist() == ["noRepair", "m", "m", 1, 2, 3, 4]


def test_code_feedback_executes_no_code(tmp_path: Path) -> None:
    path = tmp_path / "evil.py"
    path.write_text("x = __import__('os').getcwd()\n")
    with pytest.raises(ValueError, match="malformed"):
        code_feedback._literals(path)


def test_rb2_votes_compare_two_scores_of_the_same_sample(tmp_path: Path) -> None:
    scores = [[9, 9, None], [5, 9, 5], [9, 1, 1], [2, 2, 2]]
    record = {"id": "7", "subset": "Math", "prompt_variant": "base", "full_scores": scores}
    lines = json.dumps(record) + "\n"
    _write(tmp_path / "results" / "raw" / "base_full_k8_t0.3.jsonl", lines)
    tables = rb2.convert(tmp_path)
    pairs = tables["pairs.parquet"].set_index("pair")
    assert pairs["in_sample1000"].all()
    votes = tables["ternary_votes.parquet"].astype(object).set_index(["pair", "sample"])["vote"]
    assert votes.index.get_level_values("pair").nunique() == 6
    score_array = np.array(scores, float)
    for pair, row in pairs.iterrows():
        first, second = int(row["resp_first"]), int(row["resp_second"])
        assert row["gold"] == np.sign((first == 0) * 1 - (second == 0) * 1)
        for sample in range(3):
            if np.isfinite(score_array[[first, second], sample]).all():
                expected = np.sign(score_array[first, sample] - score_array[second, sample])
                assert votes[(pair, sample)] == expected
            else:
                assert (pair, sample) not in votes.index
    table = tables["scores.parquet"]
    assert len(table) == 11
    assert table["temperature"].unique() == np.float32(0.3)
    assert table["model"].unique().tolist() == ["gpt-5.4"]
    rejected = tables["p2_panel_labels.parquet"]["rejected_index"].iloc[0]
    panel = tables["p2_panel_votes.parquet"].astype(object).set_index("mode")["correct"]
    if score_array[rejected, 0] == 9:
        assert "k1" not in panel.index  # equal scores are not votes
    else:
        assert panel["k1"] == 1
    assert panel["mean8"] == 1


def test_rewardbench_reads_subset_and_category(tmp_path: Path) -> None:
    home = tmp_path / rewardbench.HOME
    _write(home / "response_matrix.csv", "model,0,1\nb/x,1.0,\na/y,0.0,1.0\n")
    _write(
        home / "item_content.csv", 'item_id,content\n0,"[math-prm] [x] two\nlines"\n1,[hep-go] g\n'
    )
    tables = rewardbench.convert(tmp_path)
    votes = tables["votes.parquet"].astype(object)
    assert votes.to_numpy().tolist() == [["0", "b/x", 1], ["0", "a/y", 0], ["1", "a/y", 1]]
    assert tables["items.parquet"]["text"].tolist() == ["[x] two\nlines", "g"]
    assert tables["labels.parquet"]["category"].tolist() == ["reasoning", "reasoning"]


def test_wmt23_weights_errors_and_unpacks_nothing(tmp_path: Path) -> None:
    head = ["system", "doc", "docSegId", "globalSegId", "rater", "source", "target", "category",
            "severity", "metadata"]  # fmt: skip
    for language, pairs in wmt23.PAIRS.items():
        rows = [head]
        for pair in pairs:
            for k, system in enumerate(pair):
                for rater in ("r1", "r2", "r3"):
                    category, severity = (
                        ("Fluency/Punctuation", "Minor") if k else ("Accuracy/Addition", "Major")
                    )
                    if rater == "r3":
                        category, severity = "Source issue", "Major"
                    text = f"<v>{system}</v> says"
                    rows.append([system, "d", "1", "1", rater, "s", text, category, severity, "{}"])
        content = "\n".join("\t".join(row) for row in rows).encode()
        name = f"sxs_mqm_generalMT2023_{language}.3ratingsPerSegment.tsv"
        folder = tmp_path / "generalMT2023" / language
        folder.mkdir(parents=True)
        with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as archive:
            member = tarfile.TarInfo("../../escaped.tsv")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    tables = wmt23.convert(tmp_path)
    ratings = tables["ratings.parquet"].astype(object)
    own = ratings[ratings["item"] == "zhen|1|HW-TSC|ONLINE-A"]
    columns = ["rater", "mqm_penalty_1", "mqm_penalty_2", "vote"]
    assert own[columns].to_numpy().tolist() == [
        ["r1", 5.0, 0.1, -1],
        ["r2", 5.0, 0.1, -1],
        ["r3", 0.0, 0.0, 0],
    ]
    label = tables["labels.parquet"].set_index("item").loc["zhen|1|HW-TSC|ONLINE-A"]
    assert label[["pos", "tie", "neg", "label"]].tolist() == [0, 1, 2, -1]
    assert tables["items.parquet"]["target1"].iloc[0] == "GPT4-5shot_with_refA says"
    assert not (tmp_path / ".." / "escaped.tsv").exists()
