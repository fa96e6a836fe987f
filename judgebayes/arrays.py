"""Names for arrays at the edge, where NumPy's and JAX's are equally welcome."""

import numpy as np
from jaxtyping import Array

__all__ = ["AnyArray"]

AnyArray = Array | np.ndarray
"""An array of either kind: `Float[AnyArray, "item class"]`."""
