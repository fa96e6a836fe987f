"""The model of what share of each generator's items is valid, from the votes on its items."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, PRNGKeyArray

from judgebayes.errors import JudgeBayesError
from judgebayes.generators.items import unique_items
from judgebayes.inference.problem import Problem, Sites
from judgebayes.models import generator_validator as gv
from judgebayes.models.generator_validator import ItemData, ItemModel, ItemPrior
from judgebayes.posterior.statistics import agreement, unanimous
from judgebayes.posterior.story import Story
from judgebayes.votes.data import Data

__all__ = ["independent", "leaning"]


def leaning(data: Data, prior: ItemPrior) -> Story:
    """Return the item-level model whose judges lean together on an item."""
    return _items(data, prior, gv.POINTS)


def independent(data: Data, prior: ItemPrior) -> Story:
    """Return the item-level model whose judges err independently given the label, as P4 has it."""
    return _items(data, prior, 1)


def _items(data: Data, prior: ItemPrior, points: int) -> Story:
    if data.generator is None:
        raise JudgeBayesError(
            "--model generator-validator needs the generator of every item: name its column, "
            "--generator."
        )
    of_item, known = data.generator, data.labelled
    labels, names = data.labels, data.generators
    rows, row_of_item = unique_items(data.votes, labels, of_item)
    generator, truth = jnp.asarray(of_item), jnp.asarray(labels)
    total = jnp.asarray(np.bincount(of_item, minlength=len(names)))
    program = ItemModel(len(names), points, points == 1, prior)
    row_data = ItemData(rows.votes[..., None], rows.labels, rows.generator, rows.weight)
    every = ItemData(jnp.asarray(data.index[..., :1], int), truth, generator)

    def constrained(sites: Sites, key: PRNGKeyArray) -> Sites:
        valid = jnp.exp(program.predict(sites, row_data)[row_of_item, 1])
        drawn = jax.random.bernoulli(key, valid)
        real = jnp.where(truth >= 0, truth == 1, drawn)
        share = jax.ops.segment_sum(real.astype(float), generator, len(names)) / total
        return {"precision": share, **program.quantities(sites, every)}

    def statistics(drawn: Mapping[str, np.ndarray]) -> dict[str, float]:
        return _of_generators(drawn["votes"][..., 0], data)

    shared = points > 1
    return Story(
        problem=Problem(program, row_data),
        data=every,
        constrained=constrained,
        statistics=statistics,
        coords={
            "generator": list(names),
            "judge": list(data.judges),
            "class": list(data.classes),
            "item": list(data.items),
            "labelled_item": data.names(known),
            "repeat": ["1"],
        },
        shown=("precision", "quality", "tpr", "tnr", *(("leaning",) if shared else ())),
        # What is known exactly (all items labelled) does not move, and has no R-hat.
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
            "quality": "the same among all items that it could write",
            "tpr": "how often a judge accepts a valid item of a typical generator",
            "tnr": "how often it rejects an invalid one",
            "leaning": "how far an item moves all of its judges together, in logits; 0 is not at all",
        },
        words=(
            "The precision of a generator whose items are all labelled is known, not estimated.",
        )
        if len(known)
        else ("No item is labelled: what the priors allow, and no more.",),
        advice="judges err together: --variant leaning lets them."
        if not shared
        else "some judges like some generators for reasons that the model does not have.",
    )


def _of_generators(votes: Int[np.ndarray, "item judge"], data: Data) -> dict[str, float]:
    assert data.generator is not None
    three, top = votes[..., None], data.classes[1]
    found = {
        "two votes on an item agree": agreement(three, 2),
        "items with votes all the same": float(unanimous(three, 2).mean()),
    }
    for label, name in enumerate(data.classes):
        own = votes[data.labels == label]
        if (own >= 0).any():
            found[f"votes {top} on items labelled {name}"] = float(
                (own == 1).sum() / (own >= 0).sum()
            )
    parts = [
        (f"votes {top} on {name}", votes[data.generator == g])
        for g, name in enumerate(data.generators)
    ] + [(f"votes {top} of {name}", votes[:, j]) for j, name in enumerate(data.judges)]
    for name, own in parts:
        if (own >= 0).any():
            found[name] = float((own == 1).sum() / (own >= 0).sum())
    return found
