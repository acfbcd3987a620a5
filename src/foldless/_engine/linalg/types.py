"""Names for the arrays that the library takes."""

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

MatrixLike: TypeAlias = ArrayLike | sp.spmatrix | sp.sparray  # what scikit-learn's validation accepts for X
RandomStateLike: TypeAlias = int | np.random.RandomState | None
Matrix: TypeAlias = Any  # an array or a SciPy sparse matrix, once X has been validated
