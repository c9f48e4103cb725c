"""The old home of the two functions below: use ``tadropedge.aggregate_resistance`` and ``effective_resistance``."""

import warnings

from tadropedge.scores.aggregate import aggregate_resistance
from tadropedge.scores.effective import effective_resistance

__all__ = ["aggregate_resistance", "effective_resistance"]

warnings.warn("tadropedge.resistance is deprecated: import from tadropedge", DeprecationWarning, stacklevel=2)
