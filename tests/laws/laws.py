"""The laws. Each takes the runs of an estimator and raises AssertionError if it is broken."""

import copy
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from laws.data import GROUPS, ITEMS, ORDER, SILENT, Data, Variant, drawn, lanes
from laws.families import RESPONSE, Answers, Family
from laws.registry import CASES, Case

from judgebayes.inference import Status
from judgebayes.votes import Classes
from judgebayes.workflow import fit_file

FLOATS = ("score", "log_probs", "weight")
Run = tuple[Answers, int]
"""The answers, and the status of the fit."""


def status_of(fitted: Any) -> Any:
    """Return the status of a fit; CONVERGED if it has none."""
    return jnp.max(jnp.asarray(getattr(fitted, "status", int(Status.CONVERGED))))


def run(case: Case, fit: Any, new: Any) -> tuple[Answers, Any]:
    """Fit and answer."""
    fitted = case.family.fit(case.estimator, fit)
    return case.family.answer(fitted, new), status_of(fitted)


def host(case: Case, variant: Variant) -> Run:
    """Fit and answer outside compiled code, without the rows of weight 0."""
    takes = case.family.takes
    answers, status = run(case, takes(variant.fit.live()), takes(variant.new))
    return jax.tree.map(np.asarray, answers), int(status)


def at_once(case: Case, variants: dict[str, Variant]) -> dict[str, Run]:
    """Fit and answer all variants in one program, by `vmap`."""
    takes = case.family.takes
    inputs = {name: (takes(v.fit), takes(v.new)) for name, v in variants.items()}
    stacked = jax.tree.map(lambda *x: np.stack(x), *inputs.values())
    answers, status = jax.jit(jax.vmap(lambda pair: run(case, *pair)))(stacked)
    answers, status = jax.tree.map(np.asarray, (answers, status))
    return {
        name: (jax.tree.map(lambda x, i=i: x[i], answers), int(status[i]))
        for i, name in enumerate(variants)
    }


@dataclass
class Runs:
    """The runs of an estimator that its laws compare, each computed once."""

    case: Case
    thorough: bool
    folder: Path
    n_classes: int = field(init=False)
    separate_runs: dict[str, Run] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.n_classes = self.case.n_classes[0]

    @cached_property
    def variants(self) -> dict[str, Variant]:
        return lanes(self.n_classes)

    @cached_property
    def compiled(self) -> dict[str, Run]:
        return at_once(self.case, self.variants)

    def lanes(self, name: str) -> Run:
        """Return the run of a variant with its rows of weight 0, compiled if possible."""
        if self.case.family.compiled:
            return self.compiled[name]
        if name not in self.separate_runs:
            takes, of = self.case.family.takes, self.variants[name]
            answers, status = run(self.case, takes(of.fit), takes(of.new))
            self.separate_runs[name] = jax.tree.map(np.asarray, answers), int(status)
        return self.separate_runs[name]

    @cached_property
    def inputs(self) -> tuple[Any, Any]:
        plain, takes = self.variants["base"], self.case.family.takes
        return takes(plain.fit.live()), takes(plain.new)

    @cached_property
    def fitted(self) -> Any:
        return self.case.family.fit(self.case.estimator, self.inputs[0])

    @cached_property
    def again(self) -> Any:
        return self.case.family.fit(self.case.estimator, self.inputs[0])

    @cached_property
    def host(self) -> Answers:
        arrays = self.case.family.answer(self.fitted, self.inputs[1])
        return jax.tree.map(np.asarray, arrays)

    def lane(self, name: str) -> Answers:
        return self.lanes(name)[0]

    def alike(self, one: Answers, other: Answers) -> None:
        """Assert that two answers are the same on the items with a weight in both."""
        for name, axes in self.case.family.axes.items():
            a, b = _cut(one[name], axes), _cut(other[name], axes)
            np.testing.assert_allclose(a, b, rtol=0, atol=self.case.apart, err_msg=name)

    def permuted(self, answers: Answers, **places: np.ndarray) -> Answers:
        """Return the answers with some axes in another order."""
        result = {}
        for name, axes in self.case.family.axes.items():
            value = answers[name]
            for axis, order in places.items():
                if axis in axes:
                    value = np.take(value, order, axes.index(axis))
            result[name] = value
        return result


def _cut(value: np.ndarray, axes: tuple[str, ...]) -> np.ndarray:
    """Return the answers without the padding rows."""
    return value[:ITEMS] if axes[0] == "item" and len(axes) == 1 else value


def valid(family: Family, answers: Answers) -> None:
    """Assert that answers are finite, and are probabilities where they should be."""
    for name, axes in family.axes.items():
        value = _cut(answers[name], axes)
        assert np.isfinite(value).all(), f"{name} is not finite: {value}"
        if family.probabilities:
            assert ((value >= -1e-12) & (value <= 1 + 1e-12)).all(), (
                f"{name} is not in [0, 1]: {value}"
            )
        if "class" in axes:
            np.testing.assert_allclose(value.sum(-1), 1, atol=1e-9, err_msg=name)


def sound(runs: Runs, *names: str) -> None:
    """Assert that some lanes have valid answers, and a status that is not NONFINITE."""
    for name in names:
        answers, status = runs.lanes(name)
        try:
            valid(runs.case.family, answers)
            assert status != Status.NONFINITE, "the status is NONFINITE"
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


def answers_are_valid(runs: Runs) -> None:
    sound(runs, "base")
    valid(runs.case.family, runs.host)


def weight_0(runs: Runs) -> None:
    """Compiled code, which cannot drop rows, gives the same as dropping them outside."""
    runs.alike(runs.lane("base"), runs.host)
    plain, takes = runs.variants["base"], runs.case.family.takes
    answers, _ = run(runs.case, takes(plain.fit), takes(plain.new))
    runs.alike(jax.tree.map(np.asarray, answers), runs.host)


def weight_2(runs: Runs) -> None:
    runs.alike(runs.lane("twice"), runs.lane("repeated"))


def unlabelled(runs: Runs) -> None:
    if runs.case.family is RESPONSE:  # their own parameters stay at the prior
        labelled_items = np.flatnonzero(runs.variants["base"].fit.labels[:ITEMS] >= 0)
        one, other = (
            runs.permuted(runs.lane(n), item=labelled_items) for n in ("labelled", "base")
        )
        return runs.alike(one, other)
    return runs.alike(runs.lane("labelled"), runs.lane("base"))


def permuting_items(runs: Runs) -> None:
    order = np.random.default_rng(7).permutation(len(runs.variants["base"].fit.labels))
    back = runs.permuted(runs.lane("items"), item=np.argsort(order))
    runs.alike(back, runs.lane("base"))


def permuting_judges(runs: Runs) -> None:
    runs.alike(runs.lane("judges"), runs.permuted(runs.lane("base"), judge=np.array(ORDER)))


def swapping(runs: Runs) -> None:
    back = np.arange(runs.n_classes)[::-1]
    runs.alike(
        runs.lane("mirrored"),
        runs.permuted(runs.lane("base"), **{"class": back, "class_in_set": back}),
    )


def renaming(runs: Runs) -> None:
    to = np.argsort(np.roll(np.arange(runs.n_classes), 1))
    runs.alike(
        runs.lane("renamed"), runs.permuted(runs.lane("base"), **{"class": to, "class_in_set": to})
    )


def permuting_groups(runs: Runs) -> None:
    back = np.argsort((np.arange(GROUPS) + 1) % GROUPS)
    runs.alike(runs.lane("groups"), runs.permuted(runs.lane("base"), group=back, generator=back))


def vmap_is_a_loop(runs: Runs) -> None:
    for name in ("missing 30%", "mirrored", "unanimous votes"):
        unbatched, status = host(runs.case, runs.variants[name])
        runs.alike(runs.lane(name), unbatched)
        assert status == runs.lanes(name)[1], f"{name}: the status differs"


def jit_is_eager(runs: Runs) -> None:
    """`jax.jit` gives the same as no `jit`, and as no compilation if that does not take minutes."""
    if runs.case.family.compiled:
        jitted = jax.jit(lambda fit, new: run(runs.case, fit, new)[0])(*runs.inputs)
        runs.alike(jax.tree.map(np.asarray, jitted), runs.host)
    if not runs.case.costly:
        with jax.disable_jit():
            runs.alike(run(runs.case, *runs.inputs)[0], runs.host)


def unseen_judge(runs: Runs) -> None:
    sound(runs, "unseen")


def silent_item(runs: Runs) -> None:
    """An item without votes gets the prior; if answers are not about items, it has no effect."""
    family, case = runs.case.family, runs.case
    if family is RESPONSE:
        for name in ("difficulty", "discrimination"):
            if case.estimator.prior is not None:
                location = dict(
                    zip(("difficulty", "discrimination"), case.estimator.prior, strict=True)
                )
                assert abs(runs.host[name][SILENT] - location[name][0]) < runs.case.apart
        return
    if "probabilities" not in family.axes:
        runs.alike(runs.lane("silenced"), runs.lane("left out"))
        return
    assert case.prior is not None, "the registry has no prior"
    group = int(runs.variants["base"].new.group[SILENT])
    expected = case.prior(runs.fitted, runs.n_classes, group)
    np.testing.assert_allclose(runs.host["probabilities"][SILENT], expected, atol=1e-9)


def small(runs: Runs, rows: int, judges: int) -> None:
    """Trace a fit of few rows and judges, which detects errors of shapes; if thorough, run it."""
    takes = runs.case.family.takes
    data = drawn(runs.n_classes, rows, judges)
    data = replace(data, labels=np.maximum(data.labels, 0), group=np.zeros_like(data.group))
    inputs = takes(data), takes(drawn(runs.n_classes, rows, judges, seed=1))
    if runs.thorough or not runs.case.family.compiled:
        answers, _ = run(runs.case, *inputs)
        valid(runs.case.family, jax.tree.map(np.asarray, answers))
    else:
        jax.eval_shape(lambda fit, new: run(runs.case, fit, new), *inputs)


def one_judge(runs: Runs) -> None:
    sound(runs, "one judge")


def one_item(runs: Runs) -> None:
    sound(runs, "one item")


def one_of_each(runs: Runs) -> None:
    small(runs, 1, 1)


def constant_votes(runs: Runs) -> None:
    sound(runs, "constant votes")


def unanimous_votes(runs: Runs) -> None:
    sound(runs, "unanimous votes")


def constant_labels(runs: Runs) -> None:
    sound(runs, "constant labels")


def no_labels(runs: Runs) -> None:
    sound(runs, "no labels")


RATES = ("missing 30%", "missing 60%", "missing 95%")


def missing_votes(runs: Runs) -> None:
    sound(runs, *RATES)


EXTREMES = ("base", *RATES, "constant votes", "unanimous votes", "constant labels", "one item")


def of_classes(runs: Runs) -> None:
    """Other numbers of classes: all of them, or by default one, which differs by estimator."""
    others = runs.case.n_classes[1:]
    if not runs.thorough and others:
        others = (others[list(CASES.values()).index(runs.case) % len(others)],)
    for n_classes in others:
        every = lanes(n_classes)
        chosen = every if runs.thorough else {name: every[name] for name in (*EXTREMES, "mirrored")}
        other = Runs(runs.case, runs.thorough, runs.folder)
        other.n_classes, other.variants = n_classes, chosen
        try:
            sound(other, *(set(chosen) & set(EXTREMES)))
            if "swapping responses" not in (*runs.case.reasons, *runs.case.breaks):
                swapping(other)
        except AssertionError as error:
            raise AssertionError(f"{n_classes} classes: {error}") from error


def fit_changes_nothing(runs: Runs) -> None:
    """A fit changes neither the estimator nor the data."""
    estimator, inputs = copy.deepcopy(runs.case.estimator), jax.tree.map(np.array, runs.inputs)
    _ = runs.again
    assert runs.case.estimator == estimator
    same(runs.inputs, inputs)


def deterministic(runs: Runs) -> None:
    """Two fits are equal bit by bit; if thorough, also in another process."""
    same(runs.fitted, runs.again)
    if runs.thorough:
        name = next(name for name, case in CASES.items() if case is runs.case)
        assert elsewhere()[name] == digest(runs.host), "another process gives different answers"


def digest(answers: Answers) -> str:
    """Return a digest of the exact bits of answers."""
    hash_state = hashlib.sha256()
    for name in sorted(answers):
        hash_state.update(np.ascontiguousarray(answers[name]).tobytes())
    return hash_state.hexdigest()


@cache
def elsewhere() -> dict[str, str]:
    """Return the digests of all estimators' answers in another process."""
    code = (
        "import conftest, json, jax\n"
        "from laws.laws import Runs, digest\n"
        "from laws.registry import CASES\n"
        "with jax.enable_x64(True):\n"
        "    digests = {k: digest(Runs(v, False, None).host) for k, v in CASES.items()}\n"
        "print(json.dumps(digests))"
    )
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tests, capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def single_precision(runs: Runs) -> None:
    """Inputs in single precision give the same answers as the same numbers in double precision."""

    def cast(data: Data, to: type) -> Data:
        rounded = {k: getattr(data, k).astype(np.float32).astype(to) for k in FLOATS}
        return replace(data, **rounded)

    takes, plain = runs.case.family.takes, runs.variants["base"]
    one, other = (
        run(runs.case, takes(cast(plain.fit.live(), to)), takes(cast(plain.new, to)))[0]
        for to in (np.float32, np.float64)
    )
    for name in one:
        assert np.asarray(one[name]).dtype == np.float64, f"{name} is in single precision"
    runs.alike(*(jax.tree.map(np.asarray, x) for x in (one, other)))


def same(one: Any, other: Any) -> None:
    """Assert that two trees are the same, bit by bit."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    jax.tree.map(np.testing.assert_array_equal, one, other)


def tree_round_trip(runs: Runs) -> None:
    estimator, fitted = (
        jax.tree.unflatten(*jax.tree.flatten(x)[::-1]) for x in (runs.case.estimator, runs.fitted)
    )
    assert estimator == runs.case.estimator
    answers = runs.case.family.answer(fitted, runs.inputs[1])
    same(jax.tree.map(np.asarray, answers), runs.host)


def file_round_trip(runs: Runs) -> None:
    names = tuple(range(runs.n_classes))
    votes = runs.inputs[0][0]
    saved = fit_file.SavedFit("law", runs.fitted, Classes(names, True), fit_file.profile(votes))
    path = runs.folder / "fit.json"
    fit_file.save_fit(path, saved)
    again = fit_file.load_fit(path).fitted
    answers = runs.case.family.answer(again, runs.inputs[1])
    same(jax.tree.map(np.asarray, answers), runs.host)


class Law(NamedTuple):
    """A property, and when it is tested."""

    holds: Callable[[Runs], None]
    slow: bool = False
    """Only in the slow tests."""
    more: bool = False
    """Compiles more programs: by default not tested on costly estimators."""


LAWS: dict[str, Law] = {
    "valid answers": Law(answers_are_valid),
    "weight 0 = dropped row": Law(weight_0),
    "weight 2 = row twice": Law(weight_2),
    "unlabelled rows": Law(unlabelled),
    "vmap = loop": Law(vmap_is_a_loop),
    "jit = eager": Law(jit_is_eager, slow=True),
    "permuting items": Law(permuting_items),
    "permuting judges": Law(permuting_judges),
    "permuting groups": Law(permuting_groups),
    "swapping responses": Law(swapping),
    "renaming classes": Law(renaming),
    "unseen judge": Law(unseen_judge),
    "item without votes": Law(silent_item),
    "one judge": Law(one_judge),
    "one item": Law(one_item),
    "one item of one judge": Law(one_of_each, more=True),
    "constant votes": Law(constant_votes),
    "unanimous votes": Law(unanimous_votes),
    "constant labels": Law(constant_labels),
    "no labels": Law(no_labels),
    "missing 0 to 95 %": Law(missing_votes),
    "2 to 5 classes": Law(of_classes, more=True),
    "fit changes nothing": Law(fit_changes_nothing),
    "deterministic": Law(deterministic),
    "single precision": Law(single_precision, more=True),
    "tree round trip": Law(tree_round_trip),
    "save and apply": Law(file_round_trip),
}
"""Laws by name, in the order of the table."""
