"""Type information, the repr of results, the fonts of PDF figures, and -h."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases.asking import run

import judgebayes as jb
from judgebayes.show.tables import judges_figure


def test_type_checkers_read_the_annotations() -> None:
    """`tests/dist.sh` checks that the wheel holds the file, too."""
    assert files("judgebayes").joinpath("py.typed").is_file()
    assert "py\\.typed" in (Path(__file__).parents[1] / "dist.sh").read_text()


def test_the_repr_of_a_result_is_a_short_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 500)
    votes = pd.DataFrame(
        [
            (i, judge, int(y if rng.random() < 0.8 else 1 - y), f"g{i % 2}")
            for judge in "ab"
            for i, y in enumerate(label)
        ],
        columns=["item", "judge", "vote", "generator"],
    )
    labels = pd.DataFrame({"item": range(100), "label": label[:100]})
    data = jb.read(votes, labels, ignore="generator")
    calibrated = jb.calibrate(data, method="sc", splits=3)
    results = [
        data,
        calibrated,
        calibrated.compared,
        jb.check(votes, labels),
        jb.diagnose(data),
        jb.precision(votes, labels, method="strata"),
    ]
    for result in results:
        assert len(repr(result)) < 1000
        assert repr(result).startswith(f"{type(result).__name__}(")
        assert "array" not in repr(result)
    assert repr(data) == "Study(items=500, labels=100, judges=2, votes=1000)"


def test_pdf_figures_have_truetype_fonts(tmp_path: Path) -> None:
    votes, _ = jb.encode(pd.DataFrame({"item": [1, 2, 3, 4], "judge": "j", "vote": [0, 1, 0, 1]}))
    figure = judges_figure(jb.judge_table(votes, np.array([0, 1, 1, 1]), ["j"]), 1).draw()
    for name, font in (("f.pdf", b"/FontFile2"), ("f.ps", b"/FontType 42")):
        figure.savefig(tmp_path / name)
        content = (tmp_path / name).read_bytes()
        assert b"/Type3" not in content
        assert b"/Subtype /Type3" not in content
        assert font in content or b"CIDFontType2" in content


@pytest.mark.parametrize("words", [(), ("calibrate",), ("data",), ("import",)])
def test_h_is_help(words: tuple[str, ...]) -> None:
    assert run(*words, "-h") == run(*words, "--help")
