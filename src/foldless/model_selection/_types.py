"""Names for what scikit-learn's functions of model selection take."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from numpy.typing import ArrayLike
from sklearn.model_selection import BaseCrossValidator

CVLike: TypeAlias = int | BaseCrossValidator | Iterable[tuple[ArrayLike, ArrayLike]] | None
ScoringLike: TypeAlias = str | Callable | Sequence[str] | Mapping[str, Any] | None
Params: TypeAlias = dict[str, Any] | None
