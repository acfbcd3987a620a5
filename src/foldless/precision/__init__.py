"""P = M^-1 - M^-1 Q G, held in four ways behind the same verbs (see ``_base.Precision``)."""

from foldless.precision._base import Explicit, Precision, SingularBlockError, orthonormal, upper_solve
from foldless.precision.factored import Factored
from foldless.precision.growing import Growing
from foldless.precision.lowrank import LowRank
from foldless.precision.spectral import IndefiniteError, Spectral, Spectrum

__all__ = [
    "Explicit",
    "Factored",
    "Growing",
    "IndefiniteError",
    "LowRank",
    "Precision",
    "SingularBlockError",
    "Spectral",
    "Spectrum",
    "orthonormal",
    "upper_solve",
]
