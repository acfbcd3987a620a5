"""Arguments of ``cross_validate``: all that can be known of them is checked before the first chunk is read."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state

from foldless.estimators.base import KernelMachine
from foldless.estimators.checks import check_option, check_options, check_whole, numbers
from foldless.kernels.landmarks import CHOICES
from foldless.kernels.registry import check_shorthands, penalised_kernel

LABELS_TOGETHER = 2**16  # that are looked at together


@dataclass(frozen=True)
class Settings:
    """Arguments of ``cross_validate`` that do not depend on where it runs."""

    cv: Any
    loo: bool
    alphas: np.ndarray
    candidates: tuple[dict, ...]  # parameters of the estimator to choose from, besides alpha
    select: str | None
    sample: int
    seed: int

    @classmethod
    def checked(cls, *, cv, loo, alphas, param_grid, select, sample, random_state) -> Self:
        """The settings, or an error that says which argument is wrong."""
        check_option("select", select, (None, "kfold", "loo"))
        found = numbers(np.ravel(alphas))
        if found is None or not len(found) or found.min() <= 0:
            raise ValueError(f"alphas={alphas!r} must be finite numbers > 0.")
        candidates = tuple(ParameterGrid(param_grid or {}))
        if any("alpha" in each for each in candidates):
            raise ValueError("param_grid: give alphas by alphas=; they share the sums over the rows.")
        if not isinstance(sample, int | np.integer) or sample < 2:
            raise ValueError(f"sample={sample!r} must be an integer of at least 2.")
        whole = isinstance(random_state, int | np.integer)
        seed = random_state if whole else check_random_state(random_state).randint(2**31)
        return cls(cv, bool(loo), found, candidates, select, int(sample), int(seed))


def check_cv(cv, select, n_rows, given):
    """Refuse what is no number of folds of ``n_rows`` rows; ``given``: whether they bring their own.

    Both are None where they are not known yet.
    """
    if cv is None:
        if given is False and select == "kfold":
            raise ValueError("select='kfold' needs folds; give cv, or use select='loo'.")
        return
    if given:
        raise ValueError(f"cv={cv!r}: the data bring their own folds; use cv=None to take them.")
    if isinstance(cv, bool) or not isinstance(cv, int | np.integer) or cv < 2 or (n_rows is not None and cv > n_rows):
        most = "" if n_rows is None else f", {n_rows}"
        raise ValueError(
            f"cv={cv!r} must be a number of folds from 2 to the number of rows{most}, or None. Folds of your own are"
            " given with the rows (folds=), and so are groups."
        )


def check_estimator(estimator):
    """Refuse what has no closed form over chunks."""
    if not isinstance(estimator, KernelMachine):
        name = type(estimator).__name__
        raise ValueError(f"{name}: LSSVC, LSSVR and KernelFisherDiscriminant can be fitted in chunks.")


def check_candidates(estimator, candidates, labels, *, loo):
    """Refuse parameters that no rows would suit, of the estimator with those of each candidate.

    ``labels`` are all that occur, as often as they like, or None where they are not known.
    """
    for each in candidates:
        check_shorthands(estimator.kernel, each)
        model = clone(estimator).set_params(**each)
        check_options(model)
        kernel = penalised_kernel(model)
        if kernel.squares_condition:
            raise basis_of_rows(model)
        if kernel.approximates:
            if isinstance(kernel.n_landmarks, str):
                raise ValueError(
                    f"n_landmarks={kernel.n_landmarks!r}: a number is needed in chunks; 'auto' is found by a search of"
                    " rows in memory, FoldlessSearchCV."
                )
            check_whole("n_landmarks", kernel.n_landmarks, 1)
            if isinstance(getattr(kernel, "landmarks", None), str):
                check_option("landmarks", kernel.landmarks, CHOICES)
        elif _surely_without_features(kernel):
            raise without_features(model)
        if getattr(model, "threshold", None) == "loo" and loo and _are_two(labels):
            raise cut_without_a_row()


def _are_two(labels):
    """Whether two different labels occur; looks at some at a time, until there is a third."""
    found, labels = set[Any](), labels if hasattr(labels, "shape") else np.asarray(labels)
    for start in range(0, labels.shape[0] if len(labels.shape) == 1 else 0, LABELS_TOGETHER):
        found |= set(np.asarray(labels[start : start + LABELS_TOGETHER]).tolist())
        if len(found) > 2:
            break
    return len(found) == 2


def _surely_without_features(kernel):
    """Whether a kernel has none, whatever the rows; one that has to see some is left for later."""
    try:
        return kernel.n_features(np.zeros((1, 1))) is None
    except Exception:
        return False


def without_features(estimator):
    """The error of a kernel without explicit features."""
    return ValueError(
        f"kernel={estimator.kernel!r} has no explicit features, and its n x n matrix is never formed in chunks. Use"
        " kernel=Nystroem(...) or RandomFeatures(...) of foldless.kernels, kernel='linear', or a kernels.FeatureMap."
    )


def basis_of_rows(estimator):
    """The error of a penalty that needs all rows."""
    return ValueError(
        f"penalty={estimator.penalty!r} has a basis function for every row. Use penalty='rkhs', or"
        " kernel=Nystroem(...) of foldless.kernels, whose landmarks are its basis functions."
    )


def cut_without_a_row():
    """The error of a cut that has no leave-one-out."""
    return ValueError(
        "threshold='loo' chooses a cut by leave-one-out; to leave out a row of it would take another cut for every"
        " row. Use loo=False: folds have their own cuts."
    )
