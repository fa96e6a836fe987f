"""What the sentences and cells about decisions say."""

import jax
import numpy as np
import pandas as pd
import pytest

from judgebayes.votes import Classes, Coding
from judgebayes.workflow.answers import decided_counts, decided_words, decisions_of, set_name
from judgebayes.workflow.losses import losses_of

CODING = Coding(
    pd.Index(["q1", "q2", "q3"], name="item"),
    pd.Index(["j"], name="judge"),
    Classes(("bad", "tie", "good"), True),
)
PROBS = np.array([[0.05, 0.05, 0.9], [0.45, 0.1, 0.45], [0.1, 0.8, 0.1]])


@pytest.mark.parametrize(("loss", "against"), [("absolute", True), ("zero-one", False)])
def test_a_decision_against_the_most_probable_class_is_explained(loss: str, against: bool) -> None:
    losses = losses_of(loss, None, None, CODING.classes)
    with jax.enable_x64(True):
        log_probs = jax.numpy.log(jax.numpy.asarray(PROBS))
        decisions = decisions_of(log_probs, losses)
    words = decided_words(CODING, log_probs, losses, decisions)
    assert ("1 of them (the first is 'q2') are not the most probable class" in words) == against
    assert (decisions.of_item == PROBS.argmax(1)).all() != against
    counts = decided_counts(CODING.classes.names, decisions)
    expected = np.bincount(decisions.of_item, minlength=3)
    assert list(counts.values()) == expected.tolist()


def test_an_empty_set_is_shown_as_empty() -> None:
    names = CODING.classes.names
    assert set_name(np.array([False, False, False]), names) == "(empty)"
    assert set_name(np.array([True, False, True]), names) == "bad | good"
