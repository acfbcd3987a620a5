"""How many landmarks a search takes.

``n_landmarks="auto"`` of a kernel is decided by the criterion of the held-out fits: a search with ``FIRST`` landmarks,
then others with twice as many, until two of them in a row are better by less than ``WORTH``, or a third of the rows,
``MOST``, the memory or the time limit is reached. The first search looks where any search looks. Those after it look
around the best of the one before: at half, the same and twice the kernel's parameter, since more landmarks can show a
narrower one, and at alphas over five decades, which share a decomposition. A ``param_grid`` of the user is looked at as
it is, and kernels of several parameters are tuned anew each time.

Whether a search finds a number at all is decided by ``_sklearn.landmarks.landmarks_to_find``.
"""

import time

import numpy as np
from sklearn.utils.validation import _num_samples

from foldless._engine.linalg.memory import available_memory
from foldless._engine.tuning.spec import optimizer_of, scales_features
from foldless.estimators.checks import warn_caller
from foldless.estimators.rows import all_or_nothing

FIRST = 125  # landmarks
MOST = 2000  # beyond, a search takes long; give a number for more
WORTH = 0.01  # of the criterion: what twice as many landmarks must be better by
ARRAYS = 6  # n x n_landmarks, at the same time
AROUND = {"alpha": np.logspace(-3, 2, 21), "kernel": np.array([0.5, 1.0, 2.0])}  # factors of the best so far
GROWTH = 4.0  # factor of the time for twice as many landmarks
GROWTH_OF_SECOND = 2.0  # the same where the first search looks everywhere, and the second only around its best


def fit_with_landmarks(search, to_find, X, data):
    """The search fitted as one with a number of landmarks; ``data`` are further arguments of ``fit``."""
    if to_find.reason:
        warn_caller(
            f"{_num_samples(X)} rows: {to_find.reason}. The kernel is approximated by landmarks"
            f" (kernel={to_find.kernel!r}); results are exact for that model."
        )
    if search.share != "all":
        raise ValueError(f"n_landmarks='auto' is one number for all classes; share={search.share!r} needs a number.")
    landmark_search = LandmarkSearch(search, to_find, X, data)
    best = landmark_search.best()
    with all_or_nothing(search) as fitted:
        params = fitted.get_params(deep=False)
        for name in set(vars(fitted)) - set(params):
            delattr(fitted, name)
        vars(fitted).update({name: value for name, value in vars(best).items() if name not in params})
        if to_find.prefix + "kernel" not in best.best_params_:  # a kernel of the grid has its number of landmarks
            fitted.best_params_ = {**best.best_params_, **to_find.params(landmark_search.count)}
        fitted.landmark_path_ = landmark_search.path
    return search


class LandmarkSearch:
    """Searches with more and more landmarks."""

    def __init__(self, search, to_find, X, data):
        self.search = search
        self.to_find = to_find
        self.X = X
        self.data = data
        self.n = _num_samples(X)
        self.begin, self.path, self.count = time.monotonic(), [], 0

    def best(self):
        """The fitted search with the least number of landmarks that is about as good as the best."""
        searches: list = []
        while not searches or not (self._enough() or self._short(searches[-1])):
            count, start = min(FIRST, self.n) * 2 ** len(self.path), time.monotonic()
            searches = [*searches[-2:], self._with(count, searches[-1:]).fit(self.X, **self.data)]
            seconds, loss = time.monotonic() - start, searches[-1].best_criterion_
            self.path.append({"n_landmarks": count, "criterion": loss, "seconds": seconds})
        steps = self.path[-len(searches) :]
        least = min(step["criterion"] for step in steps)
        place = next(place for place, step in enumerate(steps) if (1 - WORTH) * step["criterion"] <= least)
        self.count = steps[place]["n_landmarks"]
        return searches[place]

    def _with(self, count, before):
        """The search with so many landmarks; ``before`` holds the last one, if there is one."""
        left, limit = None, self.search.time_limit
        if limit is not None:
            left = max(0.1, limit - (time.monotonic() - self.begin))
        search = self.to_find.with_number(count).set_params(time_limit=left)
        grid = self._around(before[0].best_params_) if before else None
        return search if grid is None else search.set_params(param_grid=grid, method="grid")

    def _free(self):
        """Whether the search chooses by itself where to look."""
        optimizer = optimizer_of(self.search)
        anywhere = optimizer.method == "auto" and optimizer.bounds is None
        return anywhere and self.search.param_grid is None and not scales_features(optimizer)

    def _around(self, best):
        """A grid around the best parameters; None where the user says where to look.

        None also where the kernel has no parameter, several, or one for each feature.
        """
        if not self._free():
            return None
        alpha = self.to_find.prefix + "alpha"
        others = [name for name in best if name != alpha]
        if len(others) != 1 or np.ndim(best[others[0]]) or alpha not in best:
            return None
        return {
            alpha: (best[alpha] * AROUND["alpha"]).tolist(),
            others[0]: (best[others[0]] * AROUND["kernel"]).tolist(),
        }

    def _enough(self):
        """Whether more landmarks are not worth it, do not fit, are more than a third of the rows, or very many."""
        free = available_memory()
        more = 2 * self.path[-1]["n_landmarks"]
        losses = [step["criterion"] for step in self.path]
        no_memory = free is not None and ARRAYS * self.n * more * 8 > free
        little_gain = len(losses) > 2 and min(losses[-2:]) >= (1 - WORTH) * losses[-3]
        return 3 * more > self.n or more > MOST or no_memory or little_gain

    def _short(self, last):
        """Whether twice as many landmarks as in the last search would take more than the time limit."""
        limit = self.search.time_limit
        if limit is None:
            return False
        smaller = len(self.path) == 1 and self._around(last.best_params_) is not None
        growth = GROWTH_OF_SECOND if smaller else GROWTH
        return time.monotonic() - self.begin + growth * self.path[-1]["seconds"] > limit
