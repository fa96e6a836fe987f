"""Files that are not read without a word: the reader asks, with what selects each reading."""

from pathlib import Path

import pytest
from cases.asking import FILES, run
from runner import CliRunner

import judgebayes as jb
from judgebayes.cli import app, machine
from judgebayes.errors import AmbiguousStudy

PEOPLE = FILES / "wide_words_human.csv"


def test_a_question_has_the_readings_and_what_selects_each() -> None:
    with pytest.raises(AmbiguousStudy, match="Is column 'human', named like") as raised:
        jb.read(PEOPLE)
    first, second = raised.value.candidates
    assert first.options == {"wide": True, "label": "human"}
    assert first.preview[0] == "i0: gpt helpful, claude helpful; label helpful"
    assert second.options == {"wide": True, "label": "none"}
    data = jb.read(PEOPLE, **first.options)
    assert list(data.coding.judges) == ["gpt", "claude"]
    assert (data.labels >= 0).all()


def test_what_was_given_stays_and_is_not_proposed_again() -> None:
    with pytest.raises(AmbiguousStudy) as raised:
        jb.read(FILES / "semi_decimal_comma.csv", wide=True)
    assert "wide" not in raised.value.candidates[0].options


def test_files_that_nobody_can_read_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("a,b\n1,2\n")
    with pytest.raises(jb.JudgeBayesError) as raised:
        jb.read(tmp_path / "v.csv")
    assert not isinstance(raised.value, AmbiguousStudy)


def test_a_pipe_ends_with_the_readings(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Use --label human --set wide=true; or The same" in run("diagnose", PEOPLE, code=2)
    with pytest.raises(AmbiguousStudy) as raised:
        jb.read(PEOPLE)
    machine.show_candidates(raised.value)
    said = capsys.readouterr().err
    assert "2. The same, with --label none." in said
    assert "i0: gpt helpful, claude helpful; label helpful" in said


@pytest.mark.parametrize(("answer", "code"), [("1", 0), ("0", 1)])
def test_a_terminal_is_asked(answer: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_at_terminal", lambda: True)
    result = CliRunner().invoke(app, ["diagnose", str(PEOPLE)], input=answer)
    assert result.exit_code == code
    assert ("2 of 2 judges" in result.output) == (answer == "1")


def test_a_column_of_people_may_have_a_comma_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text(PEOPLE.read_text().replace("human", '"human, final"', 1))
    checked = jb.check(path)
    assert checked.options["label"] == "human, final"
    assert jb.read(path, **checked.options).numbers["labels"] == 60


@pytest.mark.parametrize(("names", "asked"), [("gpt,claude", False), ("Anna,Ben", True)])
def test_columns_that_may_be_people_become_judges_only_if_the_user_says_so(
    names: str, asked: bool, tmp_path: Path
) -> None:
    path = tmp_path / "v.csv"
    path.write_text(
        f"item,{names},label\n" + "".join(f"q{i},yes,no,yes\n" for i in range(9)) + "x,no,yes,no\n"
    )
    if asked:
        with pytest.raises(AmbiguousStudy, match="a row per item and a column per judge"):
            jb.read(path)
    assert list(jb.read(path, wide=asked).coding.judges) == names.split(",")


def test_a_question_about_repeated_votes_names_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("item,judge,run,vote\na,j,1,1\na,j,2,0\nb,j,1,1\na,j,2,1\n")
    with pytest.raises(AmbiguousStudy, match="Rows 3 and 5 are the same vote"):
        jb.read(path)


def test_what_would_be_lost_or_read_from_texts_is_a_question(tmp_path: Path) -> None:
    votes, labels = tmp_path / "v.csv", tmp_path / "l.csv"
    votes.write_text("item,judge,vote\n" + "".join(f"q{i},j,{i % 2}\n" for i in range(6)))
    labels.write_text("item,label\nq0,0\nq1,1\nother,1\n")
    with pytest.raises(AmbiguousStudy, match=r"labels 1 item\(s\) that have no votes") as raised:
        jb.read(votes, labels)
    assert raised.value.candidates[0].options == {"drop_unknown_labels": True}
    texts = "".join(f'q{i},j,"I compared both at length.\n[[{"AB"[i % 2]}]]"\n' for i in range(6))
    votes.write_text("item,judge,vote\n" + texts)
    with pytest.raises(AmbiguousStudy, match="has raw answers") as raised:
        jb.read(votes)
    data = jb.read(votes, **raised.value.candidates[0].options)
    assert data.how == {
        **dict.fromkeys(("sample", "order", "task", "group"), "none"),
        **{"item": "item", "judge": "judge", "vote": "vote", "verdicts": "pair"},
    }


def test_candidates_have_only_options_of_the_question_that_asks(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("item,judge,wave,vote\na,j,1,1\na,j,2,0\nb,j,1,1\nb,j,2,1\n")
    for question in (jb.precision, jb.ensemble, jb.diagnose):
        with pytest.raises(AmbiguousStudy) as raised:
            question(path)
        assert [each.options for each in raised.value.candidates] == [{"sample": "wave"}]


@pytest.mark.parametrize("names", [["low", "mid", "high"], ("low", "mid", "high")])
def test_names_may_be_a_list_in_python(names: object, tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("item,judge,vote\na,j,low\nb,j,mid\nc,j,high\nd,j,unsure\n")
    data = jb.read(path, classes=names, missing=["unsure", "n/a"])  # type: ignore[arg-type]
    assert data.coding.classes.names == ("low", "mid", "high")
    assert data.how["missing"] == "unsure,n/a"
