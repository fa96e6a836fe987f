"""Plate diagrams: NumPyro's `render_model` draws the programs themselves, as the pages are built.

Graphviz lays them out: its Python package is among the requirements of the docs, its program `dot` comes
from the system. A diagram cannot say other than its program does.
"""

import re
import shutil
from html import escape
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro

from judgebayes.experiments.beyond_consensus import (
    flat_program,
    generator_counts,
    hierarchical_program,
    robust_program,
)
from judgebayes.models import (
    base,
    beta_binomial,
    calibration_maps,
    davidson,
    dawid_skene,
    hierarchical_davidson,
    irt,
    item_validator,
    one_coin,
    opinion_pool,
    pooled_dawid_skene,
    shared_difficulty,
    split_curve,
    stacking,
)
from judgebayes.models.base import Model, PanelData

ITEMS, JUDGES, SAMPLES, CLASSES, LEVELS, TASKS, GENERATORS = 11, 7, 5, 6, 2, 4, 13


def subjects() -> dict[str, tuple[Model, Any]]:
    """Return every program that a page shows, with data of any size."""
    labels, weight = np.zeros(ITEMS, int), np.ones(ITEMS)
    panel = PanelData(np.zeros((ITEMS, JUDGES, SAMPLES), int), labels, weight)
    evidence = davidson.Features(np.zeros(ITEMS), np.zeros((ITEMS, LEVELS)))
    by_pair = np.ones((GENERATORS, JUDGES))
    counted = generator_counts.Counted(*[by_pair] * 6, np.ones(GENERATORS), np.ones(GENERATORS))
    form = stacking.Form(JUDGES, 4, symmetric=True)
    counts = beta_binomial.CountData(labels, labels + 5, weight)
    items = base.PanelData(np.zeros((ITEMS, JUDGES, 1), int), labels, weight, generator=labels)
    tasks = davidson.DavidsonData(evidence, labels, weight, task=labels)
    beta = calibration_maps.Form(tied=False, intercepts=True, symmetric=False, monotone=True)
    answers = base.ProbsData(np.zeros((ITEMS, CLASSES)), labels, weight)
    return {
        "calibration_maps": (calibration_maps.CalibrationMapModel(CLASSES, beta), answers),
        "davidson": (
            davidson.DavidsonModel(CLASSES),
            davidson.DavidsonData(evidence, labels, weight),
        ),
        "hierarchical_davidson": (
            hierarchical_davidson.HierarchicalDavidsonModel(TASKS, CLASSES),
            tasks,
        ),
        "one_coin": (one_coin.OneCoinModel(CLASSES), panel),
        "dawid_skene": (dawid_skene.DawidSkeneModel(CLASSES), panel),
        "pooled_dawid_skene": (pooled_dawid_skene.PooledDawidSkeneModel(CLASSES), panel),
        "stacking": (
            stacking.StackingModel(form),
            stacking.StackingData(panel.votes, np.ones(JUDGES), labels, weight),
        ),
        "shared_difficulty": (
            shared_difficulty.SharedDifficultyModel(CLASSES, symmetric=False),
            panel,
        ),
        "opinion_pool": (
            opinion_pool.OpinionPoolModel(CLASSES, symmetric=False),
            base.ProbsData(np.zeros((ITEMS, 2, CLASSES)), labels, weight),
        ),
        "split_curve": (
            split_curve.SplitCurveModel(CLASSES, by_class=True),
            split_curve.split_data(
                jnp.ones((ITEMS, CLASSES)), jnp.asarray(labels), jnp.asarray(weight)
            ),
        ),
        "irt": (irt.ItemResponseModel(CLASSES), panel),
        "beta_binomial": (beta_binomial.BetaBinomialModel(5), counts),
        "generator_validator.flat": (flat_program.FlatModel(), counted),
        "generator_validator.hierarchical": (hierarchical_program.HierarchicalModel(), counted),
        "generator_validator.item": (item_validator.ItemModel(GENERATORS), items),
        "generator_validator.robust": (robust_program.RobustModel(), counted),
    }


def drawable() -> bool:
    """Tell whether Graphviz can lay a diagram out."""
    return shutil.which("dot") is not None


def diagram(name: str) -> str:
    """Return the diagram of a program as SVG, to be coloured by the page.

    Grey sites are observed. Raises an error of the `graphviz` package where Graphviz is missing.
    """
    model, data = subjects()[name]
    graph = numpyro.render_model(model, model_args=(jax.tree.map(jnp.asarray, data),))
    graph.attr(bgcolor="transparent", ranksep="0.35")
    drawn = graph.pipe(format="svg", encoding="utf-8")
    whole = drawn[drawn.index("<svg") :]
    whole = re.sub(r"<!--.*?-->|<title>.*?</title>", "", whole, flags=re.DOTALL)
    # A page with several diagrams has every identifier once.
    whole = whole.replace('id="', f'id="{name}-')
    title = f'<svg class="plate" role="img" aria-label="Plate diagram of {escape(name)}"'
    return whole.replace("<svg", title, 1)
