"""Nested cross-validation of a search: the whole choice repeated inside every outer training part, and judged outside.

Two exact ways for a grid, the cheaper by operations is taken (n rows, t of them left out, k alphas, s outer splits):

    one P for each candidate     10 n^3 for the decomposition of each kernel, then n^3 for each alpha's P; every outer
                                 training part is a Schur complement of it, whose diagonal gives the inner leave-one-out
                                 criterion and whose blocks give the outer predictions: n t^2 for each split
    the search on every part     10 (n - t)^3 for each kernel and split

Both start from parameters resolved once on all rows ("scale", balanced class weights, the default grid; labels have a
say in the second only). Continuous searches and one setting for each class (``share``) are searched anew on every
training part by ``fit`` itself.
"""

from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, assert_all_finite, indexable
from sklearn.utils.metaestimators import _safe_split, available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from foldless.calibration import fit_calibration
from foldless.criteria import class_weights, weights
from foldless.estimators import OneAgainstAllClassifier
from foldless.estimators._classifier import labels
from foldless.holdout import Part, Solution
from foldless.model_selection._adapters import OWN
from foldless.model_selection._candidates import candidates, draw_splits, heldout_scores, row_numbers, settings
from foldless.model_selection._grid import choose
from foldless.model_selection._path import ONE_FIT, ONE_P_PER_FOLD, REFIT, Path
from foldless.model_selection._progress import Progress
from foldless.model_selection._search import FoldlessSearchCV
from foldless.readout import OneAgainstAll
from foldless.selection import Selection
from foldless.splits import Holdout


@dataclass
class NestedResult:
    """Outer and inner estimates of a tuned model, one entry for each outer split.

    Attributes
    ----------
    test_score : ndarray of shape (n_splits,)
        Score of the held-out predictions of the model chosen without them: the honest estimate.
    inner_score : ndarray of shape (n_splits,)
        The same score on the inner held-out predictions that the choice was made by; nan where the score needs
        probabilities.
    optimism : ndarray of shape (n_splits,)
        inner_score - test_score.
    inner_criterion, outer_criterion : ndarray of shape (n_splits,)
        The criterion (a loss) of the chosen setting inside, and of its held-out fits outside.
    best_params : list of dicts (of lists of dicts, one a class, where ``share`` is not "all")
    predictions, decision : lists of arrays, for the rows ``test_indices`` of each split; decisions for classifiers only
    test_indices : list of arrays
    path : Path, how it was computed and why
    """

    test_score: np.ndarray
    inner_score: np.ndarray
    inner_criterion: np.ndarray
    outer_criterion: np.ndarray
    best_params: list
    predictions: list
    decision: list
    test_indices: list
    path: Path

    @property
    def optimism(self):
        """How much better the chosen setting looked to the search than it was."""
        return self.inner_score - self.test_score

    def __str__(self):
        spread = self.test_score.std(ddof=1) / np.sqrt(len(self.test_score)) if len(self.test_score) > 1 else np.nan
        return (
            f"test score {self.test_score.mean():.4f} +- {spread:.4f} (s.e. over {len(self.test_score)} splits),"
            f" inner score {self.inner_score.mean():.4f}, optimism {self.optimism.mean():.4f}; {self.path}"
        )


def nested_cross_validate(search, X, y, *, cv=None, groups=None, scoring=None, params=None, n_jobs=None, verbose=0):
    """Exact nested cross-validation: the search repeated on every outer training part, judged on the rows it never saw.

    A criterion that was optimised is no performance estimate. Here every outer split chooses its own hyper-parameters;
    for grids no model is refitted.

    Parameters
    ----------
    search : FoldlessSearchCV
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    cv : int, splitter or iterable, default=None
        The outer splits, 5-fold by default; ``StratifiedShuffleSplit(100, test_size=0.1)`` is the practice of Cawley
        (2006). The inner ones are those of ``search``.
    groups : array-like of shape (n_samples,), default=None
        For the outer and for the inner splitter.
    scoring : str or callable, default=None
        One scorer; None: accuracy or R2.
    params : dict, default=None
        {"sample_weight": weights} for the fits.
    n_jobs : int, default=None
        Kernel settings, or outer splits, worked on at a time.
    verbose : int, default=0
        1 prints progress to standard error.

    Returns
    -------
    NestedResult

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from foldless import FoldlessSearchCV, LSSVC
    >>> from foldless.model_selection import nested_cross_validate
    >>> X, y = load_wine(return_X_y=True)
    >>> X = (X - X.mean(0)) / X.std(0)
    >>> result = nested_cross_validate(FoldlessSearchCV(LSSVC()), X, y, cv=10)
    >>> print(result.test_score.mean().round(3), result.inner_score.mean().round(3))
    0.983 0.988
    """
    if not isinstance(search, FoldlessSearchCV):
        raise ValueError(f"search={search!r} must be a FoldlessSearchCV; scikit-learn's cross_validate takes others.")
    unknown = set(params or {}) - {"sample_weight"}
    if unknown:
        raise ValueError(f"params holds {sorted(unknown)}; only sample_weight is passed to the fits.")
    if y is None:
        raise ValueError("y=None: there is nothing to predict.")
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"scoring={scoring!r} names several metrics; nested_cross_validate takes one.")
    X, y, groups = indexable(X, y, groups)
    criterion = search._checked().at(float(np.atleast_1d(search.slope)[0]))
    scorer = check_scoring(search, scoring=scoring)
    if _wants_probabilities(scorer) and not hasattr(search, "predict_proba"):
        raise ValueError(f"scoring={scoring!r} needs probabilities; set calibration='sigmoid' of the estimator.")
    sample_weight = (params or {}).get("sample_weight")
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, np.empty((len(y), 1)), ensure_non_negative=True)
    if is_classifier(search.estimator):
        labels_given = column_or_1d(y)
        assert_all_finite(labels_given, input_name="y")
        check_classification_targets(labels_given)
    data = _Data(search, X, y, groups, sample_weight, _wants_probabilities(scorer))
    splits = check_cv(cv, y, classifier=is_classifier(search.estimator)).split(X, y, groups)
    outer = data.checked(row_numbers(splits, len(y)))
    if search.method == "grid" and search.share == "all":
        verdicts, path = _nested_grid(data, criterion, outer, n_jobs, verbose)
    else:
        reason = "every training part is searched by itself"
        verdicts, path = _nested_loop(data, criterion, outer, n_jobs, verbose), Path(REFIT, reason)
    scores = [verdict.scored(scorer, data, test) for verdict, (_, test) in zip(verdicts, outer, strict=True)]
    return NestedResult(
        test_score=np.array([outside for outside, _ in scores]),
        inner_score=np.array([inside for _, inside in scores]),
        inner_criterion=np.array([verdict.inner_loss for verdict in verdicts]),
        outer_criterion=np.array([verdict.outer_loss for verdict in verdicts]),
        best_params=[verdict.params for verdict in verdicts],
        predictions=[verdict.outside.predict(None) for verdict in verdicts],
        decision=[verdict.outside.decision for verdict in verdicts],
        test_indices=[test for _, test in outer],
        path=path,
    )


@dataclass
class _Data:
    """What is given, and how a training part of it is cut out."""

    search: FoldlessSearchCV
    X: object
    y: object
    groups: object
    sample_weight: object
    probabilities: bool  # whether the scores want them

    def checked(self, outer):
        """The outer splits, refused where they cannot be judged."""
        if not outer:
            raise ValueError("cv holds no split.")
        active = np.ones(len(self.y), bool) if self.sample_weight is None else self.sample_weight > 0
        labelled = is_classifier(self.search.estimator)
        classes = np.unique(np.asarray(self.y)) if labelled else None
        for number, (train, test) in enumerate(outer):
            part = f"the training part of split {number}"
            if len(np.unique(train)) < len(train):
                raise ValueError(f"cv: {part} repeats rows.")
            if np.isin(test, train).any():
                raise ValueError(f"cv: split {number} tests rows that it trains on; such a score says nothing.")
            kept = train[active[train]]
            if len(kept) < 2 or not len(test):
                raise ValueError(f"cv: split {number} trains on {len(kept)} rows and tests {len(test)}.")
            if labelled:
                missing = np.setdiff1d(classes, np.asarray(self.y)[kept])
                if len(missing):
                    raise ValueError(
                        f"cv: {part} lacks class {missing[0]!r}; use a stratified splitter or fewer folds."
                    )
        return outer

    def inner_splits(self, train):
        """The splits of ``search`` inside a training part, in row numbers of all data."""
        given = (self.X, self.y, self.groups)
        X, y, groups = (None if each is None else _safe_indexing(each, train) for each in given)
        splits = draw_splits(self.search.cv, self.search.estimator, X, y, groups)
        return None if splits is None else [(train[inside], train[outside]) for inside, outside in splits]


@dataclass
class _Verdict:
    """One outer split: the choice, its held-out outputs inside and outside."""

    params: object
    inner_loss: float
    outer_loss: float
    inner_rows: np.ndarray
    inside: object  # their outputs as scorers take them
    outside: object

    def scored(self, scorer, data, test):
        """(outer score, inner score)."""
        outer = scorer(self.outside, test[:, None], _safe_indexing(data.y, test))
        if _wants_probabilities(scorer):
            return outer, np.nan
        return outer, scorer(self.inside, self.inner_rows[:, None], _safe_indexing(data.y, self.inner_rows))


def _wants_probabilities(scorer):
    return getattr(scorer, "_response_method", "") == "predict_proba"


class _Values(RegressorMixin, BaseEstimator):
    """A fitted regressor as scorers see it, whose predictions are known already."""

    decision = None

    def __init__(self, values):
        self.values = values

    def predict(self, rows):
        """The values."""
        return self.values


class _Labels(ClassifierMixin, BaseEstimator):
    """The same for a classifier; without probabilities there is no ``predict_proba``."""

    def __init__(self, classes, decision, probabilities=None):
        self.classes, self.decision, self.probabilities = classes, decision, probabilities
        self.classes_ = classes

    def predict(self, rows):
        """Labels of the decisions."""
        return labels(self.decision, self.classes)

    def decision_function(self, rows):
        """The decisions."""
        return self.decision

    @available_if(lambda given: given.probabilities is not None)
    def predict_proba(self, rows):
        """The probabilities."""
        return self.probabilities


def _given(setting, decision, probabilities=None):
    """Outputs of a setting's estimator for the scorers."""
    if setting.classes is None:
        return _Values(decision[:, 0] if setting.flat else decision)
    return _Labels(setting.classes, decision, probabilities)


# -- grids -------------------------------------------------------------------------------------------------------------


def _nested_grid(data, criterion, outer, n_jobs, verbose):
    search, given = data.search, (data.X, data.y, data.sample_weight)
    listed = candidates(search.estimator, search.param_grid, *given)
    tried = settings(search.estimator, listed, *given)
    inner = [data.inner_splits(train) for train, _ in outer]
    shared = [_sharing_pays(setting, outer, inner) for setting in tried]
    progress = Progress(len(tried), "kernel settings", verbose)

    def losses_of(setting, share):
        chosen = [_selection(data, criterion, setting, *part) for part in zip(outer, inner, strict=True)]
        result = _from_one_p(setting, chosen) if share else _anew(setting, chosen)
        progress.step()
        return result

    found = Parallel(n_jobs=n_jobs, prefer="threads")(map(delayed(losses_of), tried, shared))
    losses = np.empty((len(outer), len(listed), found[0].shape[-1]))
    for setting, values in zip(tried, found, strict=True):
        losses[:, setting.places] = values
    places = [choose(each, tried)[0] for each in losses]
    verdicts = [None] * len(outer)
    for place in set(places):
        setting = next(each for each in tried if place in each.places)
        alpha = setting.alphas[setting.places.index(place)]
        mine = [number for number, chosen in enumerate(places) if chosen == place]
        judged = _judge(data, criterion, setting, alpha, [outer[number] for number in mine], [inner[k] for k in mine])
        for number, verdict in zip(mine, judged, strict=True):
            verdict.params, verdict.inner_loss = listed[place], losses[number, place].sum()
            verdicts[number] = verdict
    return verdicts, _described(shared)


def _selection(data, criterion, setting, split, inner):
    return Selection.of(
        setting.task,
        criterion,
        splits=inner,
        weight=data.search.criterion_weight,
        sample_weight=data.sample_weight,
        train=split[0],
    )


def _anew(setting, selections):
    """Inner losses (n_splits, n_alphas, m), each training part decomposed by itself."""
    return np.stack([each.path(setting.task.problem, setting.alphas)[0] for each in selections])


def _from_one_p(setting, selections):
    """The same from one P for each alpha: a training part is what is left of it without the other rows."""
    problem, rows = setting.task.problem, setting.task.problem.active
    whole = Selection.of(setting.task, selections[0].criterion)
    removed = [np.flatnonzero(~np.isin(rows, each.rows, assume_unique=True)) for each in selections]
    path, losses = problem.path(rows), []
    for alpha in setting.alphas:
        model = Solution(problem.at(alpha=alpha), rows, whole.Y, path.at(alpha))
        model.precision = model.precision.explicit()
        losses.append([each.judge(_part(model, out, each)) for each, out in zip(selections, removed, strict=True)])
    return np.array(losses).transpose(1, 0, 2)


def _part(model, removed, selection):
    """The training part without ``removed``, ready for the inner splits."""
    part = Part(model, removed) if len(removed) else model
    return part if selection.folds is None or part is model else part.alone()


EIGH = 10.0  # n^3 flops of an eigendecomposition at the speed of a matrix product
CALL = 5e6  # flops in the time of the small steps of one split


def _sharing_pays(setting, outer, inner):
    """Whether one P for each alpha takes fewer operations than a decomposition of every training part."""
    problem = setting.task.problem
    n = len(problem.active)
    if problem.n_features(n) is not None or (problem.drops_basis and inner[0] is not None):
        return False
    sizes = np.array([np.intersect1d(train, problem.active).size for train, _ in outer], float)
    sites = 2.0 if problem.drops_basis else 1.0
    left = sites * (n - sizes)
    split = 2 * sites * n * left**2 + (2 * sizes**2 * left if inner[0] is not None else 0.0) + CALL
    shared = EIGH * n**3 + len(setting.alphas) * ((sites * n) ** 3 + split.sum())
    return shared < EIGH * (sizes**3).sum()


def _described(shared):
    once, anew = sum(shared), len(shared) - sum(shared)
    text = f"one P for each candidate of {once} kernel settings, training parts are its Schur complements"
    other = f"each training part decomposed for {anew} kernel settings, which is less work there"
    if not anew:
        return Path(ONE_FIT, text)
    return Path(ONE_P_PER_FOLD, other if not once else f"{text}; {other}")


def _judge(data, criterion, setting, alpha, outer, inner):
    """Held-out outputs, inside and outside, of one candidate for the outer splits that chose it."""
    task, problem = setting.task, setting.problem(alpha)
    holdout = Holdout(problem, task.Y, nested=True)
    holdout.plan([len(train) for train, _ in outer])
    for (train, test), splits in zip(outer, inner, strict=True):
        model = holdout.part(train)
        rule = task.rule(model, probabilities=data.probabilities)
        fits = model.fits(test)
        selection = _selection(data, criterion, setting, (train, test), splits)
        own = model if splits is None else Solution(problem, model.rows, task.Y[model.rows])
        rows, scores = selection.rows[selection.where][selection.tested], selection.scores(own)[selection.tested]
        probabilities = None
        if data.probabilities and rule.calibrator is not None:
            probabilities = rule.proba(fits)
        elif data.probabilities and not isinstance(setting.estimator, OWN):  # as the search's own predict_proba
            counted = np.ones(len(rows)) if data.sample_weight is None else data.sample_weight[rows]
            sigmoid = fit_calibration("sigmoid", scores, task.codes[rows], task.n_classes, counted)
            probabilities = sigmoid.proba(rule.decision(fits))
        yield _Verdict(
            params=None,
            inner_loss=np.nan,
            outer_loss=_outer_loss(data, criterion, setting, test, _signed(task, fits), rule.decision(fits)),
            inner_rows=rows,
            inside=_given(setting, scores - rule.cut),
            outside=_given(setting, rule.decision(fits), probabilities),
        )


def _signs(task, dtype):
    """Targets of the criterion for each class, (c, m)."""
    return OneAgainstAll(task.n_classes).targets(np.arange(task.n_classes), dtype)


def _signed(task, fits):
    """Fits of the criterion's targets: those of the indicators combined in the way the targets are."""
    return fits @ _signs(task, fits.dtype) if task.readout.needs_moments else fits


def _outer_loss(data, criterion, setting, test, fits, decision):
    """The criterion of outer held-out fits."""
    task = setting.task
    T = task.Y[test] if task.codes is None else _signs(task, fits.dtype)[task.codes[test]]
    counted, kind = np.ones(len(test)), data.search.criterion_weight
    if kind == "sample_weight" and data.sample_weight is not None:
        counted = data.sample_weight[test]
        if not counted.any():
            return np.nan
    W = class_weights(kind, task.codes[test], counted)[:, None] if criterion.whole else weights(kind, T, counted)
    outside = Selection(task, test, T, None, np.arange(len(test)), W, criterion)
    return float((outside.errors(decision) if criterion.whole else outside.losses(T - fits)[0]).sum())


# -- everything else ---------------------------------------------------------------------------------------------------


def _nested_loop(data, criterion, outer, n_jobs, verbose):
    progress = Progress(len(outer), "outer splits", verbose)
    jobs = (delayed(_searched)(data, criterion, train, test) for train, test in outer)
    verdicts = []
    for verdict in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
        verdicts.append(verdict)
        progress.step()
    return verdicts


def _searched(data, criterion, train, test):
    """One outer split by ``fit`` on its training part."""
    search = clone(data.search)
    X, y = _safe_split(search, data.X, data.y, train)
    X_test, _ = _safe_split(search, data.X, data.y, test, train)
    options = {
        name: _safe_indexing(value, train)
        for name, value in (("sample_weight", data.sample_weight), ("groups", data.groups))
        if value is not None
    }
    search.set_params(refit=True).fit(X, y, **options)
    chosen, weight = search._chosen(), options.get("sample_weight")
    splits = draw_splits(search.cv, search.estimator, X, y, options.get("groups"))
    rows, scores = heldout_scores(chosen, X, y, weight, splits)
    setting = settings(search.estimator, [{}], data.X, data.y, data.sample_weight)[0]
    classifies = setting.classes is not None
    decision = search.decision_function(X_test) if classifies else search.predict(X_test).reshape(len(test), -1)
    return _Verdict(
        params=search.best_params_,
        inner_loss=-search.best_score_,
        outer_loss=_outer_loss(
            data, criterion, setting, test, _fits(search.best_estimator_, X_test, setting.task), decision
        ),
        inner_rows=train[rows],
        inside=_given(setting, scores - _cut(search.best_estimator_)),
        outside=_given(setting, decision, search.predict_proba(X_test) if data.probabilities else None),
    )


def _cut(estimator):
    """The cut of threshold="loo" in the decisions of a fitted estimator, for each class where each has its own."""
    if isinstance(estimator, OneAgainstAllClassifier):
        return np.array([_cut(each) for each in estimator.estimators_])
    return estimator._rule.cut if isinstance(estimator, OWN) else 0.0


def _fits(estimator, X, task):
    """Fits (n, m) of the criterion's targets by a fitted estimator."""
    if isinstance(estimator, OneAgainstAllClassifier):
        pairs = [
            each._fits(X) if isinstance(each, OWN) else each.decision_function(X)[:, None]
            for each in estimator.estimators_
        ]
        return np.column_stack([pair[:, -1] - (pair[:, 0] if pair.shape[1] == 2 else 0.0) for pair in pairs])
    if isinstance(estimator, OWN):
        return _signed(task, estimator._fits(X))
    output = estimator.decision_function(X) if is_classifier(estimator) else estimator.predict(X)
    return output.reshape(len(output), -1)
