"""The model of the share of valid items of each generator, from the votes on its items."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from judgebayes.arrays import Key
from judgebayes.errors import JudgeBayesError
from judgebayes.generators.counts import unique_items
from judgebayes.inference.problem import Problem, Sites
from judgebayes.inference.sampled import Described
from judgebayes.models.base import PanelData
from judgebayes.models.item_validator import ItemModel, ItemPrior
from judgebayes.posteriors.story import coords_of, of_agreement
from judgebayes.votes.array import Data


def items(data: Data, prior: ItemPrior, *, points: int) -> Described:
    """Return the item-level model.

    It has a leaning per item, common to all judges; with one point, judges err independently given the
    label, as in P4.
    """
    if data.generator is None:
        raise JudgeBayesError(
            "--model generator-validator needs the generator of every item: name its column with "
            "--set generator=COLUMN."
        )
    of_item, labelled = data.generator, data.labelled
    labels, names = data.labels, data.generators
    rows, row_of_item = unique_items(data.votes, labels, of_item)
    generator, truth = jnp.asarray(of_item), jnp.asarray(labels)
    total = jnp.asarray(np.bincount(of_item, minlength=len(names)))
    program = ItemModel(len(names), points, prior)
    item_data = PanelData(jnp.asarray(data.index[..., :1], int), truth, generator=generator)

    def constrained(sites: Sites, key: Key) -> Sites:
        valid = jnp.exp(program.predict(sites, rows)[row_of_item, 1])
        drawn = jax.random.bernoulli(key, valid)
        validity = jnp.where(truth >= 0, truth == 1, drawn)
        share = jax.ops.segment_sum(validity.astype(float), generator, len(names)) / total
        return {"precision": share, **program.quantities(sites, item_data)}

    def statistics(drawn: Mapping[str, np.ndarray]) -> dict[str, float]:
        return _of_generators(drawn["votes"][..., 0], data)

    shared = points > 1
    return Described(
        problem=Problem(program, rows),
        data=item_data,
        constrained=constrained,
        statistics=statistics,
        coords={
            **coords_of(data),
            "generator": list(names),
            "class": list(data.classes),
            "repeat": ["1"],
        },
        shown=("precision", "quality", "tpr", "tnr", *(("leaning",) if shared else ())),
        # A precision that labels determine is constant, and has no R-hat.
        watched=(
            "quality",
            "tpr",
            "tnr",
            "lenience",
            "discernment",
            "shift",
            *(("leaning",) if shared else ()),
        ),
        meanings={
            "precision": "share of valid items among a generator's items in the file",
            "quality": "share of valid items among all that the generator could produce",
            "tpr": "how often a judge accepts a valid item of a typical generator",
            "tnr": "how often it rejects an invalid one",
            "leaning": "how much an item shifts all of its judges, in logits; 0 means not at all",
        },
        words=(
            "The precision of a generator whose items are all labelled is known, not estimated.",
        )
        if len(labelled)
        else ("No item is labelled: the results depend on the priors alone.",),
        advice="judges' errors are correlated: --variant leaning allows this."
        if not shared
        else "some judges prefer some generators for reasons outside the model.",
    )


def _of_generators(votes: Int[np.ndarray, "item judge"], data: Data) -> dict[str, float]:
    assert data.generator is not None
    top = data.classes[1]
    shares = of_agreement(votes[..., None], 2)
    parts = [
        *(
            (f"votes {top} on items labelled {name}", votes[data.labels == k])
            for k, name in enumerate(data.classes)
        ),
        *(
            (f"votes {top} on {name}", votes[data.generator == g])
            for g, name in enumerate(data.generators)
        ),
        *((f"votes {top} of {name}", votes[:, j]) for j, name in enumerate(data.judges)),
    ]
    for name, subset in parts:
        if (subset >= 0).any():
            shares[name] = float((subset == 1).sum() / (subset >= 0).sum())
    return shares
