"""Methods of a user: declared, run by the commands, swept without JAX, and refused in sentences."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from panels import judged
from runner import CliRunner

import judgebayes as jb
from judgebayes.cli import app
from judgebayes.inference import registry
from judgebayes.workflow import fit_file

PLUGIN = '''
import numpy as np
import judgebayes as jb

@jb.aggregator("plain-one-coin", knows_judges=True)
class Plain:
    """The one-coin model, as a class that JAX does not know."""

    def fit(self, votes, labels, *, weight=None, key=None):
        return FittedPlain(jb.OneCoin(class_prior="labels").fit(votes, labels, weight=weight))

class FittedPlain:
    def __init__(self, inner):
        self.inner = inner

    def __call__(self, votes):
        return np.asarray(self.inner(votes))

@jb.aggregator("no-probabilities")
class Wrong(Plain):
    def fit(self, votes, labels, *, weight=None, key=None):
        return lambda votes: np.zeros((votes.n_items, votes.n_classes))
'''


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Path]:
    """A file of methods, which are unregistered afterwards."""
    path, before = tmp_path / "mine.py", dict(registry.AGGREGATORS)
    path.write_text(PLUGIN)
    yield path
    registry.AGGREGATORS.clear()
    registry.AGGREGATORS.update(before)


def panel() -> tuple[pd.DataFrame, pd.DataFrame]:
    votes, truth = judged(np.linspace(0.9, 0.6, 4), 60, seed=1)
    index = np.asarray(votes.index)[..., 0]
    item, judge = np.nonzero(index >= 0)
    table = pd.DataFrame({"item": item, "judge": judge, "vote": index[item, judge]})
    return table, pd.DataFrame({"item": np.arange(60), "label": truth}).head(40)


def test_a_method_without_jax_gives_the_same_answers_as_the_compiled_one(plugin: Path) -> None:
    table, labels = panel()
    own = jb.calibrate(table, labels, method=f"{plugin}:plain-one-coin", splits=7)
    compiled = jb.calibrate(
        table, labels, method="one-coin", calibrator="none", splits=7, pairwise=False
    )
    assert own.compared is not None
    assert compiled.compared is not None
    for name in ("mae", "nll", "accuracy"):
        metric = own.compared.means["plain-one-coin"][name]
        assert metric == pytest.approx(compiled.compared.means["one-coin"][name], abs=1e-9)
    pd.testing.assert_frame_equal(own.answers, compiled.answers)


def test_the_command_runs_it_and_a_file_never_does(plugin: Path, tmp_path: Path) -> None:
    table, labels = panel()
    table.to_csv(tmp_path / "votes.csv", index=False)
    labels.to_csv(tmp_path / "labels.csv", index=False)
    given = ["calibrate", str(tmp_path / "votes.csv"), "--labels", str(tmp_path / "labels.csv")]
    loaded = [*given, "--method", f"{plugin}:plain-one-coin", "--splits", "4"]

    def said(*words: str) -> str:
        result = CliRunner().invoke(app, [*words])
        return result.output + str(result.exception or "")

    assert "'plain-one-coin' is unknown" in said(*given, "--method", "plain-one-coin")
    assert "plain-one-coin" in said(*loaded)
    assert "not JAX code" in said(*loaded, "--calibrator", "beta")
    kept = tmp_path / "fit.json"
    assert "a FittedPlain cannot be saved" in said(*loaded, "--save", str(kept))
    assert not kept.exists()
    wrong = [*given, "--method", f"{plugin}:no-probabilities"]
    assert "The exponentials of log-probabilities sum to 1" in said(*wrong)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("x = 1 / 0", "(line 1): ZeroDivisionError"),
        (
            "import judgebayes as jb\n@jb.aggregator('a')\nclass A: pass",
            "A has no method `fit`",
        ),
        (
            "import judgebayes as jb\n@jb.aggregator('davidson')\nclass A:\n  def fit(self): ...",
            "already has the name 'davidson'",
        ),
    ],
)
def test_a_file_that_declares_nothing_right_is_refused(
    tmp_path: Path, source: str, sentence: str
) -> None:
    table, labels = panel()
    (tmp_path / "bad.py").write_text(source)
    with pytest.raises(jb.JudgeBayesError) as refused:
        jb.calibrate(table, labels, method=f"{tmp_path}/bad.py:a")
    assert sentence in str(refused.value)
    with pytest.raises(jb.JudgeBayesError, match="There is no file"):
        jb.calibrate(table, labels, method="none.py:a")


def test_a_fit_of_a_class_that_is_not_loaded_names_it(tmp_path: Path) -> None:
    votes, truth = judged(np.linspace(0.9, 0.6, 4), 60, seed=1)
    fit = jb.OneCoin().fit(votes, truth)
    saved = fit_file.SavedFit("x", fit, jb.Classes((0, 1), True), fit_file.profile(votes))
    fit_file.save_fit(tmp_path / "fit.json", saved)
    text = (tmp_path / "fit.json").read_text().replace('"OneCoin"', '"Elsewhere"')
    forged = {name: value for name, value in json.loads(text).items() if name != "digest"}
    forged["digest"] = fit_file.digest_of(forged)
    (tmp_path / "fit.json").write_text(json.dumps(forged))
    with pytest.raises(jb.JudgeBayesError, match=r"contains a 'Elsewhere'.*--method FILE"):
        fit_file.load_fit(tmp_path / "fit.json")
