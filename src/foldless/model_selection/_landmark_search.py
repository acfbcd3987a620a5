"""Searches that find the number of landmarks of a kernel, ``n_landmarks="auto"``, and learn the kernel first.

A search with ``FIRST_LANDMARKS``, then others with twice as many, until two of them in a row are better by less than
``WORTH`` of the criterion, or a third of the rows, ``MOST_LANDMARKS``, the memory or the time limit is reached. The
first search is any of those of ``model_selection._search_runs``. Those after it look around the best of the one before:
at half, the same and twice the kernel's parameter, since more landmarks can show a narrower one, and at alphas over
five decades, which share a decomposition. A ``param_grid`` of the user is searched as it is, and kernels of several
parameters are tuned anew each time. ``kernel="auto"`` is learnt on some thousand rows first; all searches with
landmarks look around that kernel, the first with ``FIRST_OF_LEARNT``. Whether a search finds a number at all is decided
by ``_sklearn.landmarks.landmarks_to_find``.
"""

import time
from dataclasses import replace

import numpy as np
from sklearn.utils.validation import _num_samples

from foldless._engine.linalg.memory import available_memory
from foldless._engine.tuning.kernel_search import KernelSearch
from foldless._engine.tuning.spec import optimizer_of, scales_features
from foldless._sklearn.candidates import beginning
from foldless._sklearn.landmarks import LEARNT_ON
from foldless.estimators.checks import warn_caller
from foldless.estimators.rows import all_or_nothing
from foldless.model_selection._search_runs import evaluate_points, prepared
from foldless.model_selection._search_spec import search_spec

FIRST_LANDMARKS = 125
FIRST_OF_LEARNT = 500
MOST_LANDMARKS = 2000  # beyond, a search takes long; give a number for more
WORTH = 0.01  # of the criterion: what twice as many landmarks must be better by
ARRAYS = 6  # n x n_landmarks, at the same time
AROUND = {"alpha": np.logspace(-3, 2, 21), "kernel": np.array([0.5, 1.0, 2.0])}  # factors of the best so far
GROWTH = 4.0  # factor of the time for twice as many landmarks
GROWTH_OF_SECOND = 2.0  # the same where the first search looks everywhere, and the second only around its best
SHARE_OF_LEARNING = 0.3  # of a time limit, to learn the kernel that landmarks approximate


def fit_with_landmarks(search, to_find, data, groups, y):
    """The search fitted as one with a number of landmarks; arguments are those of its ``_fit_data``."""
    if to_find.reason:
        warn_caller(
            f"{_num_samples(data.X)} rows: {to_find.reason}. The kernel is approximated by landmarks"
            f" (kernel={to_find.kernel!r}); results are exact for that model."
        )
    if search.share != "all":
        raise ValueError(f"n_landmarks='auto' is one number for all classes; share={search.share!r} needs a number.")
    landmark_search = LandmarkSearch(search, to_find, data, groups, y)
    if to_find.learns_kernel:
        landmark_search.learn_kernel()
    best = landmark_search.best()
    with all_or_nothing(search) as fitted:
        params = fitted.get_params(deep=False)
        for name in set(vars(fitted)) - set(params):
            delattr(fitted, name)
        vars(fitted).update({name: value for name, value in vars(best).items() if name not in params})
        if to_find.prefix + "kernel" not in best.best_params_:  # a kernel of the grid has its number of landmarks
            fitted.best_params_ = {**best.best_params_, **to_find.params(landmark_search.count)}
        fitted.landmark_path_ = landmark_search.path
        if landmark_search.feature_scales is not None:
            fitted.feature_scales_ = landmark_search.feature_scales[0]
    return search


class LandmarkSearch:
    """Searches with more and more landmarks."""

    def __init__(self, search, to_find, data, groups, y):
        self.search = search
        self.to_find = to_find
        self.data = data
        self.groups = groups
        self.y = y
        self.n = _num_samples(data.X)
        self.begin = time.monotonic()
        self.path: list = []  # numbers of landmarks, criteria and seconds of the searches so far
        self.count = 0  # the best number of landmarks
        self.learnt = None  # the parameters of a learnt kernel, and of the model
        self.feature_scales = None  # of this kernel

    def learn_kernel(self):
        """Learn the kernel on some thousand rows, with a share of the time limit; landmarks then approximate it."""
        search = self.to_find.with_exact_kernel()
        if search.time_limit is not None:
            search.set_params(time_limit=SHARE_OF_LEARNING * search.time_limit)
        spec, data, splits = prepared(search, search_spec(search), self.data, self.groups)
        start, first_grid = beginning(spec, search.estimator, data)
        learning = KernelSearch(start, first_grid, spec, splits, most_rows=LEARNT_ON)
        points, _ = evaluate_points(learning, spec)
        best = learning.best(points)
        self.learnt = learning.named(best)
        self.to_find = self.to_find.learnt(self.learnt)
        self.feature_scales = learning.feature_scales

    def best(self):
        """The fitted search with the least number of landmarks that is about as good as the best."""
        searches: list = []
        while not searches or not (self._enough() or self._short(searches[-1])):
            count, start = self._first_count * 2 ** len(self.path), time.monotonic()
            search = self._search_with(count, searches[-1] if searches else None)
            searches = [*searches[-2:], search._fit_data(search_spec(search), self.data, self.groups, self.y)]
            seconds, loss = time.monotonic() - start, searches[-1].best_criterion_
            self.path.append({"n_landmarks": count, "criterion": loss, "seconds": seconds})
        steps = self.path[-len(searches) :]
        least = min(step["criterion"] for step in steps)
        place = next(place for place, step in enumerate(steps) if (1 - WORTH) * step["criterion"] <= least)
        self.count = steps[place]["n_landmarks"]
        return searches[place]

    @property
    def _first_count(self):
        count = self.to_find.kernel.n_landmarks
        if not isinstance(count, str):
            return count
        return min(FIRST_LANDMARKS if self.learnt is None else FIRST_OF_LEARNT, self.n)

    def _search_with(self, count, previous):
        """The search with so many landmarks; ``previous`` is the last one, None at first."""
        seconds_left = None
        if self.search.time_limit is not None:
            seconds_left = max(0.1, self.search.time_limit - (time.monotonic() - self.begin))
        search = self.to_find.with_number(count).set_params(time_limit=seconds_left)
        if self.learnt is not None:
            grid = self._around_learnt(self.learnt if previous is None else previous.best_params_, count)
        else:
            grid = None if previous is None else self._around(previous.best_params_)
        return search if grid is None else search.set_params(param_grid=grid, method="grid")

    def _is_automatic(self):
        """Whether the user leaves grid, method and bounds to the search."""
        optimizer = optimizer_of(self.search)
        default = optimizer.method == "auto" and optimizer.bounds is None
        return default and self.search.param_grid is None and not scales_features(optimizer)

    def _around(self, best):
        """A grid around the best parameters; None if the user gave one.

        None also if the kernel has no parameter, several, or one for each feature.
        """
        if not self._is_automatic():
            return None
        alpha = self.to_find.prefix + "alpha"
        others = [name for name in best if name != alpha]
        if len(others) != 1 or np.ndim(best[others[0]]) or alpha not in best:
            return None
        return {
            alpha: (best[alpha] * AROUND["alpha"]).tolist(),
            others[0]: (best[others[0]] * AROUND["kernel"]).tolist(),
        }

    def _around_learnt(self, best, count):
        """A grid around a learnt kernel and alpha, with so many landmarks."""
        alpha, name = (self.to_find.prefix + part for part in ("alpha", "kernel"))
        kernel = getattr(best[name], "kernel", best[name])
        kernels = [kernel.narrower(factor) for factor in AROUND["kernel"]]
        approximated = [replace(self.to_find.kernel, kernel=kernel, n_landmarks=count) for kernel in kernels]
        return {alpha: (best[alpha] * AROUND["alpha"]).tolist(), name: approximated}

    def _enough(self):
        """Whether twice as many landmarks gain little, do not fit into memory, or are too many for the rows."""
        if not isinstance(self.to_find.kernel.n_landmarks, str):
            return True
        free = available_memory()
        more = 2 * self.path[-1]["n_landmarks"]
        losses = [step["criterion"] for step in self.path]
        no_memory = free is not None and ARRAYS * self.n * more * 8 > free
        little_gain = len(losses) > 2 and min(losses[-2:]) >= (1 - WORTH) * losses[-3]
        return 3 * more > self.n or more > MOST_LANDMARKS or no_memory or little_gain

    def _short(self, last):
        """Whether twice as many landmarks as in the last search would take more than the time limit."""
        limit = self.search.time_limit
        if limit is None:
            return False
        smaller = len(self.path) == 1 and self.learnt is None and self._around(last.best_params_) is not None
        growth = GROWTH_OF_SECOND if smaller else GROWTH
        return time.monotonic() - self.begin + growth * self.path[-1]["seconds"] > limit
