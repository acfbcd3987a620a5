"""A search by fidelity: many settings on few rows, few settings on more of them, the last ones exactly on all.

    some hundred rows     the whole grid, all alphas of a kernel along one decomposition; then down from the best
    a fifth of all        the best kernels of that grid anew, then down from the best of these
    all rows              the place x where that led, moved on by 0.4 of d, the drift of the minimum from the small to
                          the larger part in steps of log n; then x itself, unless the drift hardly matters; then the
                          minimum from a model, where that may be better by more than a little

Down means L-BFGS-B by the exact gradient, or Nelder-Mead for criteria without one (``tuning.descent``). The model is
a parabola along the drift: with k the rise of the criterion from x to x + d on the larger part, where x is its minimum,

    L(x + t d) = L(x) + b t + k t^2,    least at t = -b / 2k,

so that two values on all rows show where to take the third. The drift is that of two minima on few rows, and may point
the wrong way: x tells, and the third value may lie behind it. Each value costs one Cholesky factor and its inverse.

The parts lie within each other and hold the classes, and the test sets of cv, in the shares that these have among all
rows. A part is nothing but row numbers: kernels, weights, confounds, splits and penalties are those of the whole.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from foldless._engine.linalg.random_state import check_random_state
from foldless._engine.linalg.threads import threads_for
from foldless._engine.tuning.descent import Point, Start, descend, follow
from foldless._engine.tuning.selection import best_place
from foldless._engine.tuning.space import Space, default_limits
from foldless._engine.tuning.spec import SearchSpec

FEW = 500  # rows up to which the whole grid on all of them is quick
PER_CLASS = 25  # rows of the first part for each class, where that is more, but no more than
MOST_AT_FIRST = 1000
AT_ONCE = 1500  # rows up to which the second part is all of them
MOST_IN_PART = 4000  # gradients hold five matrices of a part
KEPT = 3  # kernels of the grid that are tried on the second part
FARTHEST = 1.5  # of a drift, in logarithms
ON_ALL_ROWS = 3  # evaluations at most, or iterations with scales of features
DRIFT = 0.4  # share of it that the first of them moves
WORTH_A_SECOND = 0.01  # of the criterion: its rise from x to x + d, from which on x is judged too
WORTH_A_THIRD = 0.005  # and what the model must promise
ROUGHLY = 2e-4  # of the criterion: as well as its minimum is sought on a part, which is not that of all rows
REFIT = 0.4  # of the time of one: the fit in the end
ON_THE_WAY = 40  # evaluations that a way down is worth in time, gradients included
GROWTH = 2.6  # power of the rows that time grows with: less than 3, since few rows keep a processor less busy


def growth(problem, few, many):
    """How many times as long an evaluation of ``many`` rows takes as one of ``few``.

    Explicit features take the place of rows wherever they are fewer: time is then in proportion to the rows.
    """
    features = problem.n_features if problem.through_features(many) else many
    return many / few * (min(many, features) / min(few, features)) ** (GROWTH - 1)


def place_within(labels):
    """For every entry, how many equal ones stand before it."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(labels[order]) != 0]) if len(labels) else np.arange(0)
    place = np.empty(len(labels), int)
    place[order] = np.arange(len(labels)) - np.repeat(starts, np.diff(np.r_[starts, len(labels)]))
    return place


def order_of_rows(task, splits, random_state):
    """The rows of positive weight in an order of which every beginning is a part that stands for the whole."""
    rng = check_random_state(random_state)
    rows = rng.permutation(task.problem.active)
    codes = np.zeros(len(rows), int) if task.codes is None else task.codes[rows]
    tested = np.zeros(task.problem.n, int)
    if splits is not None and len(splits) <= len(rows) // 100:
        for number, (_, test) in enumerate(splits):
            tested[test] = number + 1
    kinds = codes * (tested.max() + 1) + tested[rows]
    _, kinds, counts = np.unique(kinds, return_inverse=True, return_counts=True)
    key = (place_within(kinds) + rng.uniform(size=len(rows))) / counts[kinds]
    order = np.argsort(key)
    rare = place_within(codes[order]) < 3  # every class has some rows from the beginning
    return rows[np.concatenate([order[rare], order[~rare]])]


@dataclass
class Fidelity:
    """The search from one starting point, as a sequence of points; the last of them are those on all rows."""

    start: Start
    grid: dict  # {parameter: values}, of alpha and of the kernel
    spec: SearchSpec
    splits: list | None
    tell: Callable = lambda *_: None  # is told what is being tried, in words, and the seconds expected to go
    ahead: float | None = None  # these, once they are known
    on_all: float = 0.0  # of these, for one evaluation of all rows
    chosen: Point | None = None  # where features have scales of their own
    short_of_time: bool = False  # whether it ended before its end
    most_rows: int | None = None  # that the last part has; None: all

    def __post_init__(self):
        self.task = self.start.task
        order = order_of_rows(self.task, self.splits, self.spec.random_state)[: self.most_rows]
        n, classes = len(order), self.task.n_classes or 1
        first = min(n, MOST_AT_FIRST, max(FEW, PER_CLASS * classes))
        second = n if n <= max(AT_ONCE, 2 * first) else min(MOST_IN_PART, max(2 * first, n // 5))
        everything = self._selection(self.spec, np.sort(order))
        self.parts = [
            everything if size == n else self._part(everything, np.sort(order[:size])) for size in (first, second, n)
        ]
        criterion = self.spec.criterion
        smooth = criterion.smooth and not (criterion.user or criterion.of_decisions or self.spec.score_decides)
        self.local = replace(self.spec, method="gradient" if smooth else "simplex", max_iter=15 if smooth else 20)

    def _selection(self, spec, rows):
        return spec.selection(self.task, self.splits, rows=rows)

    def _part(self, everything, rows):
        """The selection of some of the rows. Folds of a part may be too small for a score of each, so that one is taken
        of all held-out rows together; scores of probabilities, which are dear, wait for all rows.
        """
        part, scoring = self._selection(replace(self.spec, scoring=None), rows), everything.scoring
        if not everything.score_decides or scoring.probabilities:
            return part
        return replace(part, scoring=scoring, tests=[np.concatenate(part.tests)])

    def of(self, point):
        """The selection that a point was judged by."""
        return next(part for part in self.parts if len(part.rows) == point.n_rows)

    def judged(self, point):
        """The :class:`~foldless._engine.tuning.selection.Evaluation` of a point, with all scores, on its rows."""
        if point.judged is not None and point.judged.scores is not None:
            return point.judged
        rows = self.of(point).rows
        problem = self.task.problem.replace(kernel=point.kernel, alpha=float(point.alphas[0]))
        return self._selection(self.spec, rows).judged(problem)

    def best(self, points):
        """The best of the points so far: of those on the most rows, the one with the least criterion."""
        most = max(point.n_rows for point in points)
        return self.chosen or _least([point for point in points if point.n_rows == most])

    def named(self, point):
        """A point as parameters of the estimator."""
        moved = self._space(point, groups=0 if self.spec.feature_scaling else None).names
        names = [name for name in point.kernel.kinds if name in self.grid or name in moved]
        return self.start.named(point.alphas, point.kernel, names)[0]

    def points(self):
        """Every evaluation in order, in lists of those that are known together."""
        few, more, everything = self.parts
        points = yield from self._whole_grid(few, self.task.problem.kernel, self.grid)
        kernels: dict = {}
        for point in sorted(points, key=lambda point: point.loss):
            kernels.setdefault(id(point.kernel), point)
        best_points = list(kernels.values())[:KEPT]
        if 2 * len(few.rows) <= len(more.rows):  # otherwise the second part shows the same, and shows it better
            small = yield from self._down(best_points[0], few)
            best_points = [small, *best_points]
        again = []
        for place, point in enumerate(best_points):
            again.append(self._judge(more, point.alphas, point.kernel))
            self._look_ahead(again[-1], len(best_points) - place - 1)
            yield again[-1:]
        large = yield from self._down(_least(again), more)
        best = large
        if more is not everything:
            on_all_rows = yield from self._on_all_rows(small, large)
            best = _least(on_all_rows or [large])
        if self.spec.feature_scaling:
            yield from self._by_feature(best)

    # -- the parts -----------------------------------------------------------------------------------------------------

    def _threads(self, selection):
        """Small parts have one thread, whatever all rows together have."""
        return threads_for(len(selection.rows), self.task.problem.X.shape[1])

    def _whole_grid(self, selection, kernel, grid):
        """All settings of a grid of alpha and of parameters of a kernel."""
        alphas, points = grid["alpha"], []
        names = sorted(grid.keys() - {"alpha"})
        for values in product(*(grid[name] for name in names)):
            setting = dict(zip(names, values, strict=True))
            problem = self.task.problem.replace(kernel=kernel.changed(**setting))
            self._say(selection, alphas, problem.kernel)
            begin = time.perf_counter()
            with self._threads(selection):
                losses = selection.path(problem, alphas).losses
            seconds = (time.perf_counter() - begin) / len(alphas)
            for alpha, loss in zip(alphas, losses.sum(1).tolist(), strict=True):
                points.append(Point(loss, loss, np.array([alpha]), problem.kernel, len(selection.rows), seconds))
            yield points[-len(alphas) :]
        return points

    def _down(self, point, selection):
        self._say(selection, point.alphas, point.kernel)
        start, spec = self._start(point), self.local
        if selection is not self.parts[2]:
            spec = replace(spec, tolerance=ROUGHLY)
        with self._threads(selection):
            way = descend(start, spec, selection, start.vector)
        yield way.history
        _hand_on(way)
        return _least([point, *way.history]) if point.n_rows == len(selection.rows) else _least(way.history)

    def _start(self, point, **scaling):
        problem = self.task.problem.replace(kernel=point.kernel)
        space = self._space(point)
        if scaling:
            space = Space.of(point.kernel, problem.X.shape[1], 1, fixed=space.fixed, **scaling)
        limits = default_limits(problem) | self.start.limits
        prior = self.spec.prior if space.n_scales > 1 else None
        vector = space.pack(point.alphas, point.kernel)
        return replace(self.start, space=space, limits=limits, vector=vector, prior=prior)

    def _space(self, point, **changes):
        return replace(self.start.space, kernel=point.kernel, **changes)

    def _judge(self, selection, alphas, kernel):
        self._say(selection, alphas, kernel)
        begin = time.perf_counter()
        with self._threads(selection):
            problem = self.task.problem.replace(kernel=kernel, alpha=float(alphas[0]))
            judged = selection.judged(problem)
        loss = float(judged.losses.sum())
        return Point(loss, loss, alphas, kernel, len(selection.rows), time.perf_counter() - begin, judged)

    # -- all rows ------------------------------------------------------------------------------------------------------

    def _on_all_rows(self, small, large):
        """The last evaluations: some way along the drift, where the second part led, and the minimum of a model."""
        _, more, everything = self.parts
        start = self._start(large)
        space = start.space
        low, high = np.transpose(space.bounds(start.limits))
        x = space.pack(large.alphas, large.kernel)
        drift = np.zeros_like(x)
        if _alike(small.kernel, large.kernel, space.names):
            steps = np.log(len(everything.rows) / large.n_rows) / np.log(large.n_rows / small.n_rows)
            drift = np.clip((x - space.pack(small.alphas, small.kernel)) * steps, -FARTHEST, FARTHEST)
        places, rise = [0.0], 0.0
        if np.abs(drift).max() > 0.05:
            places = [DRIFT]
            moved = self._judge(more, *space.unpack(np.clip(x + drift, low, high)))
            rise = moved.loss / large.loss - 1 if large.loss else 0.0
            yield [moved]
        points: list = []
        while len(points) < len(places) and not self._short():
            alphas, kernel = space.unpack(np.clip(x + places[len(points)] * drift, low, high))
            points.append(self._judge(everything, alphas, kernel))
            self.on_all = points[-1].seconds
            self.ahead = (ON_ALL_ROWS - len(points) + REFIT) * self.on_all
            yield points[-1:]
            if more.score_decides == everything.score_decides:
                places += _next_place(places, [point.loss for point in points], rise, large.loss)
        return points

    def _by_feature(self, best):
        """One scale for each feature or group of them: down on the second part, then a few steps on all rows."""
        _, more, everything = self.parts
        start = self._start(best, feature_scaling=True, feature_groups=self.spec.feature_groups)
        spec = replace(self.spec, method=self.local.method)
        way: Any = follow(start, spec, self.splits, rows=more.rows)
        self.chosen = way.minimum
        yield way.history
        _hand_on(way)
        if more is not everything:
            vector = start.space.pack(way.minimum.alphas, way.minimum.kernel)
            way = descend(start, replace(spec, max_iter=ON_ALL_ROWS), everything, vector, start.prior)
            self.chosen = way.minimum
            yield way.history
            _hand_on(way)

    @property
    def feature_scales(self):
        """The scales of the features (1, d) that the search has found; None where they have no scales of their own."""
        if self.chosen is None:
            return None
        kernel = self.chosen.kernel
        return np.array([kernel.get_params()[kernel.per_feature]])

    def at_limits(self, point):
        """Names of the parameters of the grid in which a point lies at the limits that the search sets itself."""
        start = self._start(point)
        low, high = np.transpose(start.space.bounds(start.limits))
        x = start.space.pack(point.alphas, point.kernel)
        ends = (x <= low + 1e-6) | (x >= high - 1e-6)
        default_names = self.grid.keys() - self.start.limits.keys()
        names = [name for name, place in start.space.places.items() if name in default_names and ends[place].any()]
        return [start.alpha if name == "alpha" else start.prefix + name for name in names]

    # -- time ----------------------------------------------------------------------------------------------------------

    def _say(self, selection, alphas, kernel):
        values = {"alpha": float(alphas[0]), **kernel.get_params()}
        setting = ", ".join(f"{name}={value:.3g}" for name, value in values.items() if isinstance(value, float))
        self.tell(f"{len(selection.rows)} rows, {setting}", self.ahead)

    def _look_ahead(self, point, still):
        """Expected time from one evaluation of the second part: the others there, the way down, and all rows."""
        n = len(self.parts[2].rows)
        self.on_all = point.seconds * growth(self.task.problem, point.n_rows, n)
        self.ahead = point.seconds * (still + ON_THE_WAY)
        if n > point.n_rows:
            self.ahead += (ON_ALL_ROWS + REFIT) * self.on_all

    def _short(self):
        """Whether one more evaluation of all rows, and the fit after it, are expected to end after the deadline."""
        deadline = self.spec.deadline
        self.short_of_time = deadline is not None and time.monotonic() + (1 + REFIT) * self.on_all > deadline
        return self.short_of_time


class StoppedSearch(Exception):
    """The user, or the deadline, ended the search."""


def _hand_on(way):
    """What ended a way down, which keeps its best, ends the search as well."""
    if way.ended == "stopped":
        raise StoppedSearch


def _next_place(places, losses, rise, part):
    """[t], a place along the drift that is worth one more evaluation, or nothing.

    ``rise`` is k as a share of L. ``part`` is the loss at x on the second part: more rows should have less.
    """
    if len(losses) == 1:
        doubtful = rise > WORTH_A_SECOND or losses[0] > part
        return [0.0] if places[0] and doubtful else []
    if len(losses) > 2:
        return []
    (one, other), k = places, max(rise, 0.0) * losses[0]
    b = (losses[1] - losses[0]) / (other - one) - k * (one + other)
    if k > 0:
        t = float(np.clip(-b / (2 * k), -1.0, 3.0))
    else:  # the second part falls along the drift as well: as far again, downhill
        t = 2 * other - one if losses[1] < losses[0] else 2 * one - other
    promised = losses[0] + (t - one) * (b + k * (t + one))
    return [t] if promised < (1 - WORTH_A_THIRD) * min(losses) else []


def _least(points):
    place = best_place([point.objective for point in points], [float(point.alphas[0]) for point in points])
    return points[place]


def _alike(one: Any, other: Any, names):
    """Whether two kernels differ in the values of these parameters alone."""
    values = other.get_params()
    return type(one) is type(other) and one.changed(**{name: values[name] for name in names}) == other
