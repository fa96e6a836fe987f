"""Named array types: one name for what many signatures take."""

import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

AnyArray = Array | np.ndarray
"""An array of either kind: `Float[AnyArray, "item class"]`."""

Scalar = float | Float[Array, ""]
"""A number, or a traced number in compiled code."""

Labels = Int[AnyArray, " item"]
"""The class of each item, -1 where unknown; or another whole number of each item."""

Weights = Float[AnyArray, " item"]
"""A weight of each item, 0 equals a dropped item; or another number of each item."""

Key = PRNGKeyArray
"""A key of JAX's random numbers."""

LogProbs = Float[Array, "item class"]
"""Log-probabilities (or probabilities, where said) of the classes of each item."""

AnyProbs = Float[AnyArray, "item class"]
"""The same of either kind."""

ItemValues = Float[Array, " item"]
"""A number of each item."""

ItemCodes = Int[Array, " item"]
"""A whole number of each item: a class, -1 where unknown, or a group."""

ItemFloats = Float[np.ndarray, " item"]
"""A number of each item, outside compiled code."""

ItemInts = Int[np.ndarray, " item"]
"""A whole number of each item, outside compiled code."""
