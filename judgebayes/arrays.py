"""Names for arrays at the edge, where NumPy's and JAX's are equally welcome."""

import numpy as np
from jaxtyping import Array, Float

__all__ = ["AnyArray", "Scalar"]

AnyArray = Array | np.ndarray
"""An array of either kind: `Float[AnyArray, "item class"]`."""

Scalar = float | Float[Array, ""]
"""A number, or its place in compiled code."""
