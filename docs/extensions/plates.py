"""Plate diagrams drawn from the NumPyro models themselves, as the pages are built.

The data are handed to a model as deterministic sites, so that NumPyro's own account of which site
depends on which (`get_model_relations`) holds for the data too. Axes are told by their sizes, which
differ: nothing here is drawn by hand, and a diagram cannot say other than its model does.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro.infer.inspect import get_model_relations

from judgebayes.models import (
    beta_binomial,
    davidson,
    dawid_skene,
    hierarchical_davidson,
    irt,
    one_coin,
    pooled_beta_binomial,
    stacking,
)
from judgebayes.models import generator_validator as generators
from judgebayes.models.base import PanelData

ITEMS, JUDGES, SAMPLES, CLASSES, LEVELS, TASKS, GENERATORS = 11, 7, 5, 6, 2, 4, 13
AXES = {
    ITEMS: "item",
    JUDGES: "judge",
    SAMPLES: "sample",
    CLASSES: "class",
    LEVELS: "level",
    TASKS: "task",
    GENERATORS: "generator",
}
DATA = "data "

ROW, BOX_HEIGHT, GAP, CHAR, SMALL = 104, 40, 14, 7.9, 6.2
"""Sizes in pixels: the distance of rows, a box, the gap between boxes, a letter of either size."""
WIDEST = 780
"""A row that would be wider goes on below."""


@dataclass(frozen=True)
class Subject:
    """A model with data of telling sizes."""

    model: Callable[..., None]
    data: Any
    axes: dict[int, str] = field(default_factory=lambda: AXES)


class Node(NamedTuple):
    """A site as it is drawn."""

    site: str
    kind: str
    """latent, computed, observed or data."""
    note: str
    plates: tuple[str, ...]
    parents: tuple[str, ...]
    """The sites that it depends on."""

    @property
    def name(self) -> str:
        """What the diagram calls it: of data, the last part of its path."""
        return self.site.removeprefix(DATA).rpartition(".")[2]


def subjects() -> dict[str, Subject]:
    """Return every model that a page shows."""
    labels, weight = np.zeros(ITEMS, int), np.ones(ITEMS)
    panel = PanelData(np.zeros((ITEMS, JUDGES, SAMPLES), int), labels, weight)
    evidence = davidson.Features(np.zeros(ITEMS), np.zeros((ITEMS, LEVELS)))
    by_pair = np.ones((GENERATORS, JUDGES))
    counted = generators.Counted(*[by_pair] * 6, np.ones(GENERATORS), np.ones(GENERATORS))
    form = stacking.Form(JUDGES, 4, symmetric=True)
    parameters = sum(int(np.prod(shape)) for shape in form.blocks().values())
    design = np.ones((ITEMS, 1 + form.levels, parameters))
    halves = {2: "component", ITEMS: "item", TASKS: "data set"}
    counts = beta_binomial.CountData(labels, labels + 5, weight)
    pooled = pooled_beta_binomial.PooledData(labels, labels + 5, labels, weight)
    items = generators.ItemData(np.zeros((ITEMS, JUDGES, 1), int), labels, labels, weight)
    tasks = hierarchical_davidson.HierarchicalData(evidence, labels, labels, weight)
    of_stacking = {
        **{ITEMS: "item", JUDGES: "judge", 1: "level", 2: "predictor"},
        parameters: "parameter",
    }
    return {
        "davidson": Subject(
            davidson.DavidsonModel(CLASSES), davidson.DavidsonData(evidence, labels, weight)
        ),
        "hierarchical_davidson": Subject(
            hierarchical_davidson.HierarchicalDavidsonModel(TASKS, CLASSES), tasks
        ),
        "one_coin": Subject(one_coin.OneCoinModel(CLASSES), panel),
        "dawid_skene": Subject(dawid_skene.DawidSkeneModel(CLASSES), panel),
        "stacking": Subject(
            stacking.StackingModel(form),
            stacking.StackingData(design, np.ones(JUDGES), labels, weight),
            of_stacking,
        ),
        "irt": Subject(irt.ItemResponseModel(CLASSES), panel),
        "beta_binomial": Subject(beta_binomial.BetaBinomialModel(5), counts, halves),
        "pooled_beta_binomial": Subject(
            pooled_beta_binomial.PooledBetaBinomialModel(TASKS, 5), pooled, halves
        ),
        "generator_validator.flat": Subject(generators.FlatModel(), counted),
        "generator_validator.hierarchical": Subject(generators.HierarchicalModel(), counted),
        "generator_validator.item": Subject(
            generators.ItemModel(GENERATORS), items, {**AXES, 2: "class"}
        ),
    }


def sites(subject: Subject) -> list[Node]:
    """Return the sites of a model and its data, as NumPyro tells them."""

    def model() -> None:
        leaves, tree = jax.tree_util.tree_flatten_with_path(subject.data)
        named = [
            numpyro.deterministic(
                DATA + jax.tree_util.keystr(path, simple=True, separator="."), jnp.asarray(leaf)
            )
            for path, leaf in leaves
        ]
        subject.model(jax.tree_util.tree_unflatten(tree, named))

    found = get_model_relations(model)
    trace = numpyro.handlers.trace(numpyro.handlers.seed(model, 0)).get_trace()
    plates = {
        name: tuple(frame.name for frame in site["cond_indep_stack"][::-1])
        for name, site in trace.items()
        if "cond_indep_stack" in site
    }

    def kind(name: str) -> str:
        if name.startswith(DATA):
            return "data"
        if name in found["observed"]:
            return "observed"
        return "computed" if trace[name]["type"] == "deterministic" else "latent"

    def note(name: str) -> str:
        shape = "" if kind(name) == "observed" else _axes(trace[name]["value"].shape, subject.axes)
        if trace[name]["type"] == "deterministic":
            return shape
        return " · ".join(part for part in (_distribution(trace[name]["fn"]), shape) if part)

    return [
        Node(
            name,
            kind(name),
            note(name),
            plates.get(name, ()),
            tuple(found["sample_sample"][name]),
        )
        for name in found["sample_sample"]
    ]


def _axes(shape: tuple[int, ...], axes: dict[int, str]) -> str:
    return " × ".join(axes.get(size, str(size)) for size in shape)


def _distribution(fn: Any) -> str:
    """Return a distribution's name without what only shapes it."""
    name = type(fn).__name__
    if name in ("Independent", "ExpandedDistribution", "MaskedDistribution"):
        return _distribution(fn.base_dist)
    if "Truncated" in name:
        return f"truncated {_distribution(fn.base_dist)}"
    return name.removesuffix("Logits").removesuffix("Probs")


def diagram(name: str) -> str:
    """Return the diagram of a model as SVG, in the colours of the page."""
    found = sites(subjects()[name])
    rows = _rows(found)
    widths = {node: _width(node) for node in found}
    row_width = [sum(widths[n] for n in row) + GAP * (len(row) - 1) for row in rows]
    across = max(row_width) + 4 * GAP
    place: dict[Node, tuple[float, float]] = {}
    for level, (row, wide) in enumerate(zip(rows, row_width, strict=True)):
        left = (across - wide) / 2
        for node in row:
            place[node] = (left + widths[node] / 2, level * ROW + ROW / 2)
            left += widths[node] + GAP
    by_site = {node.site: node for node in found}
    parts = [_arrow(place[by_site[p]], place[node]) for node in found for p in node.parents]
    parts += _plates(rows, place, widths)
    parts += [_box(node, *place[node], widths[node]) for node in found]
    words = "; ".join(
        f"{node.name} from {', '.join(by_site[p].name for p in node.parents)}"
        for node in found
        if node.parents
    )
    high = len(rows) * ROW
    return (
        f'<svg class="plate" role="img" viewBox="0 0 {across:.0f} {high}" width="{across:.0f}" '
        f'height="{high}" xmlns="http://www.w3.org/2000/svg"><title>{escape(name)}: '
        f'{escape(words)}</title><defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" '
        'markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" '
        f'fill="currentColor"/></marker></defs>{"".join(parts)}</svg>'
    )


def _rows(found: list[Node]) -> list[list[Node]]:
    """Return the sites in rows: what depends on what stands below it, data at the bottom."""
    depth: dict[str, int] = {}
    made = [node for node in found if node.kind != "data"]
    for node in made:
        above = [depth[parent] for parent in node.parents if parent in depth]
        depth[node.site] = 1 + max(above, default=-1)
    rows: list[list[Node]] = [[] for _ in range(max(depth.values()) + 1)]
    for node in made:
        rows[depth[node.site]].append(node)
    ordered = [sorted(row, key=lambda node: node.plates) for row in rows]
    ordered.append([node for node in found if node.kind == "data"])
    return [part for row in ordered for part in _broken(row)]


def _broken(row: list[Node]) -> list[list[Node]]:
    """Return a row in as many parts of about one length as keep it from being too wide."""
    whole = sum(_width(node) + GAP for node in row)
    n_parts = -(-int(whole) // WIDEST)
    size = -(-len(row) // n_parts)
    return [row[start : start + size] for start in range(0, len(row), size)]


def _width(node: Node) -> float:
    return max(CHAR * len(node.name), SMALL * len(node.note)) + 24


def _plates(
    rows: list[list[Node]],
    place: dict[Node, tuple[float, float]],
    widths: dict[Node, float],
) -> list[str]:
    """Return a frame around the sites of each plate, the outer ones wider."""
    drawn = []
    for row in rows:
        for plates in dict.fromkeys(node.plates for node in row if node.plates):
            inside = [node for node in row if node.plates == plates]
            left = min(place[n][0] - widths[n] / 2 for n in inside)
            right = max(place[n][0] + widths[n] / 2 for n in inside)
            y = place[inside[0]][1]
            pad = 5
            low, high = y - BOX_HEIGHT / 2 - pad, y + BOX_HEIGHT / 2 + 17
            words = " × ".join(plates)
            drawn.append(
                f'<rect class="frame" x="{left - pad:.1f}" y="{low:.1f}" rx="4" '
                f'width="{right - left + 2 * pad:.1f}" height="{high - low:.1f}"/>'
                f'<text class="corner" x="{right:.1f}" y="{high - 4:.1f}">{escape(words)}</text>'
            )
    return drawn


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Return an arrow from box to box, which leaves below and arrives above, or the reverse."""
    down = 1 if end[1] > start[1] else -1
    if end[1] == start[1]:
        return ""
    y0, y1 = start[1] + down * BOX_HEIGHT / 2, end[1] - down * BOX_HEIGHT / 2
    return (
        f'<line class="edge" x1="{start[0]:.1f}" y1="{y0:.1f}" x2="{end[0]:.1f}" y2="{y1:.1f}" '
        'marker-end="url(#tip)"/>'
    )


def _box(node: Node, x: float, y: float, width: float) -> str:
    round_ = 4 if node.kind == "data" else BOX_HEIGHT / 2
    return (
        f'<rect class="{node.kind}" x="{x - width / 2:.1f}" y="{y - BOX_HEIGHT / 2:.1f}" '
        f'width="{width:.1f}" height="{BOX_HEIGHT}" rx="{round_}"/>'
        f'<text class="name" x="{x:.1f}" y="{y - 2 if node.note else y + 5:.1f}">'
        f'{escape(node.name)}</text><text class="note" x="{x:.1f}" y="{y + 13:.1f}">'
        f"{escape(node.note)}</text>"
    )
