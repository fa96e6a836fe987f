"""Types for arguments that may be NumPy or JAX arrays."""

import numpy as np
from jaxtyping import Array, Float

__all__ = ["AnyArray", "Scalar"]

AnyArray = Array | np.ndarray
"""An array of either kind: `Float[AnyArray, "item class"]`."""

Scalar = float | Float[Array, ""]
"""A number, or a traced number in compiled code."""
