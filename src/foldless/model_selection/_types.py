"""Names for what scikit-learn's functions of model selection take."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from numpy.typing import ArrayLike
from sklearn.model_selection import BaseCrossValidator

from foldless._engine.permutation.metrics import Metric
from foldless._engine.permutation.nulls import NullScheme
from foldless.estimators.checks import Confounds

CVLike: TypeAlias = int | BaseCrossValidator | Iterable[tuple[ArrayLike, ArrayLike]] | None
ScoringLike: TypeAlias = str | Callable | Metric | Sequence[str] | Mapping[str, Any] | None
Params: TypeAlias = dict[str, Any] | None
ConfoundsLike: TypeAlias = ArrayLike | Confounds | None
NullLike: TypeAlias = Literal["within_test_sets", "free", "resplit"] | ArrayLike | NullScheme | None
