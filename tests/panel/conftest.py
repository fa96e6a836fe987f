"""Labels, and the votes of six judges on them."""

import numpy as np
import pytest
from diagnosed import ACCURACY, ITEMS


@pytest.fixture(scope="module")
def labels() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 2, ITEMS)


@pytest.fixture(scope="module")
def index(labels: np.ndarray) -> np.ndarray:
    """Six one-coin judges, a twentieth of their votes missing."""
    rng = np.random.default_rng(2)
    right = rng.random((ITEMS, len(ACCURACY))) < ACCURACY
    cast = np.where(right, labels[:, None], 1 - labels[:, None])
    return np.where(rng.random(cast.shape) < 0.05, -1, cast)
