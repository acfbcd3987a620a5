"""The oracle of the tests: models refitted in plain loops, which share no step with the shortcuts they judge.

Estimators are cloned, fitted on the training rows and asked at the test rows. Fits of a Gram matrix come from the
bordered system of ``foldless.reference``, solved anew for every training part; kernels come from scikit-learn.
"""

import numpy as np
from sklearn import model_selection as skl
from sklearn.base import clone, is_regressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import balanced_accuracy_score, check_scoring, make_scorer, r2_score
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_array, check_random_state, get_tags

from foldless import KernelFisherDiscriminant, reference
from foldless.kernels import BasisFunctions
from foldless.kernels.registry import given_kernel

# -- estimators --------------------------------------------------------------------------------------------------------


def leave_one_out(n):
    """(training rows, [the row left out]) for every row."""
    return [(np.delete(np.arange(n), i), np.array([i])) for i in range(n)]


def rows_for(estimator, X, rows, train):
    """These rows of X as the estimator fitted on ``train`` takes them."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if getattr(last, "kernel", None) == "precomputed":
        return X[np.ix_(rows, train)]
    return _safe_indexing(X, rows)


def with_fixed_functions(estimator, X, weights=None):
    """The estimator with the functions of all rows of X of positive weight as features, where it has penalty="coef".

    Its fits are those of ``estimator``, and refits on a part of the rows keep the functions of the others.
    """
    parameters = estimator.get_params(deep=False)
    if parameters.get("penalty") != "coef" or getattr(parameters["kernel"], "approximates", False):
        return estimator
    rows = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    functions = BasisFunctions(given_kernel(estimator)).resolved(rows, weights)
    return clone(estimator).set_params(kernel=functions, penalty="rkhs")


def refit(estimator, X, y, train, **given):
    """The estimator fitted on the rows ``train``; ``given``: arguments of fit with a value for every row, or None.

    With penalty="coef" the functions of the other rows stay.
    """
    estimator = with_fixed_functions(estimator, X, given.get("sample_weight"))
    own = {name: values[train] for name, values in given.items() if values is not None}
    return clone(estimator).fit(rows_for(estimator, X, train, train), _safe_indexing(y, train), **own)


class Confounded:
    """A fitted estimator or pipeline, asked with the confounds of the rows."""

    def __init__(self, model, confounds):
        self._model, self._confounds = model, confounds

    def __getattr__(self, name):
        if name not in ("predict", "decision_function", "predict_proba", "score"):
            return getattr(self._model, name)
        *first, last = self._model if isinstance(self._model, Pipeline) else [self._model]

        def ask(X, *y):
            for step in first:
                X = step.transform(X)
            return getattr(last, name)(X, *y, confounds=self._confounds)

        ask.__name__ = name  # scikit-learn's scorers look at it
        return ask

    def __sklearn_tags__(self):
        return get_tags(self._model)


def at_rows(model, rows, given):
    """A refit as it is asked at these rows: with their confounds where it was fitted with some."""
    confounds = [values for name, values in given.items() if name.endswith("confounds") and values is not None]
    return Confounded(model, confounds[0][rows]) if confounds else model


def held_out(estimator, X, y, splits, method, **given):
    """What a method of the refits returns at the rows of every test part, part by part."""
    return [
        getattr(at_rows(refit(estimator, X, y, train, **given), test, given), method)(
            rows_for(estimator, X, test, train)
        )
        for train, test in splits
    ]


def held_out_rows(estimator, X, y, splits, method, **given):
    """The same in the order of the rows, nan for rows that are not tested."""
    splits = list(splits)
    parts = held_out(estimator, X, y, splits, method, **given)
    out = np.full((len(y), *parts[0].shape[1:]), np.nan)
    for (_, test), values in zip(splits, parts, strict=True):
        out[test] = values
    return out


def share_of_pairs_in_order(estimator, X, y, method="decision_function", digits=None, **given):
    """Share of pairs of unequal targets whose scores are in order, by refits without both rows; ties count half.

    Scores are rounded to ``digits`` where rows are equal and rounding must not decide.
    """
    wins = []
    for i in range(len(y)):
        for j in range(len(y)):
            if y[i] > y[j]:
                model = refit(estimator, X, y, np.setdiff1d(np.arange(len(y)), [i, j]), **given)
                upper, lower = (getattr(at_rows(model, [row], given), method)(X[[row]]).item() for row in (i, j))
                if digits is not None:
                    upper, lower = round(upper, digits), round(lower, digits)
                wins.append(np.sign(upper - lower) / 2 + 0.5)
    return np.mean(wins)


def jackknife_plus(estimator, X, y, new, coverages, new_given=None, **given):
    """Prediction intervals at ``new`` for every coverage, from refits without one row.

    Residuals are those of y without what confounds explain by themselves.
    """
    fits, residuals = [], []
    for train, test in leave_one_out(len(y)):
        model = refit(estimator, X, y, train, **given)
        fits.append(model.predict(new, **(new_given or {})))
        target = y[test]
        if "confounds" in given:
            line = LinearRegression().fit(given["confounds"][train], y[train])
            target = target - (given["confounds"][test] - given["confounds"][train].mean(0)) @ line.coef_
        residuals.append(np.abs(target - at_rows(model, test, given).predict(X[test]))[0])
    F, R, n = np.array(fits), np.array(residuals)[:, None], len(y)
    for coverage in coverages:
        rank = int(np.ceil(coverage * (n + 1)))
        yield np.stack([np.sort(F - R, 0)[n - rank], np.sort(F + R, 0)[rank - 1]], -1)


# -- conformal prediction ----------------------------------------------------------------------------------------------


def label_p_values(K, codes, n_classes, alpha, Q, *, class_conditional):
    """p of every label of the last row of K, from refits of all rows with that label, each without one of them."""
    found = []
    for label in range(n_classes):
        every = np.append(codes, label)
        F = loo_fits(K, np.where(every[:, None] == np.arange(n_classes), 1.0, -1.0), alpha, Q=Q)
        own = np.equal.outer(every, np.arange(n_classes))
        margin = F[own] - np.where(own, -np.inf, F).max(1)
        counted = every == label if class_conditional else slice(None)
        found.append(np.mean(margin[counted] <= margin[-1] + 1e-7))  # equal up to rounding is equal
    return np.array(found)


def conformal_interval(K, y, alpha, Q, coverage, *, studentised):
    """The hull of all values of the last row of K whose p exceeds 1 - coverage, from refits without one row each.

    Residuals are linear in that value, and known from two of them. The p-value can change only where the residual of a
    row is as large as that of the last: it is looked at there, and between.
    """
    n = len(K)
    Y = np.column_stack([np.append(y, 0.0), np.append(y, 1.0)])
    R = Y - loo_fits(K, Y, alpha, Q=Q)
    R = R * np.sqrt(reference.precision(K, alpha, Q=Q)[0].diagonal())[:, None] if studentised else R
    a, b = R[:, 0], R[:, 1] - R[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        places = np.concatenate([(a[-1] - a) / (b - b[-1]), (a[-1] + a) / (-b - b[-1])])
    places = np.unique(np.append(places[np.isfinite(places)], -a[-1] / b[-1]))
    step = 1.0 + np.ptp(places)
    between = np.concatenate([[places[0] - step], (places[1:] + places[:-1]) / 2, [places[-1] + step]])
    looked_at = np.concatenate([places, between])
    size = np.abs(a[:, None] + b[:, None] * looked_at)
    inside = looked_at[(size >= size[-1] * (1 - 1e-9) - 1e-12).sum(0) > (1 - coverage) * n + 1e-9]
    return np.where(
        [inside.min() < places[0], inside.max() > places[-1]], [-np.inf, np.inf], [inside.min(), inside.max()]
    )


# -- permutation tests -------------------------------------------------------------------------------------------------


def labelings(n, m, strata=None, seed=0):
    """Row numbers: the true order, then m permutations as scikit-learn draws them, within strata if given."""
    rng, rows = check_random_state(seed), np.arange(n)
    strata = np.zeros(n) if strata is None else strata
    drawn = [rows]
    for _ in range(m):
        order = rows.copy()
        for level in np.unique(strata):
            order[strata == level] = rng.permutation(order[strata == level])
        drawn.append(order)
    return np.array(drawn)


def relabelled(y, order, confounds=None, strata=None):
    """The labels of one labeling: those of other rows, or values whose residuals on strata and confounds are theirs.

    What confounds explain of the residuals in their new places is taken out of them, and their length stays.
    """
    if confounds is None or np.asarray(y).dtype.kind != "f" or (order == np.arange(len(y))).all():
        return _safe_indexing(y, order)
    strata = np.zeros(len(y)) if strata is None else np.asarray(strata)
    line = np.column_stack([strata[:, None] == np.unique(strata), confounds - np.mean(confounds, 0)])

    def residuals(values):
        return values - line @ np.linalg.lstsq(line, values, rcond=1e-10)[0]

    left = residuals(y)
    moved = residuals(left[order])
    return y - left + moved * np.linalg.norm(left, axis=0) / np.linalg.norm(moved, axis=0)


def p_value(score, null, greater=True):
    """(1 + number of null scores at least as good) / (1 + m), along the first axis; equal up to rounding is equal."""
    sign = 1 if greater else -1
    return (1 + np.sum(sign * np.asarray(null) >= sign * np.asarray(score) - 1e-10, axis=0)) / (1 + len(null))


def _correlation(truth, predictions):
    """Pearson's r, averaged over outputs."""
    columns = (np.asarray(each, float).reshape(len(truth), -1).T for each in (truth, predictions))
    return np.mean([np.corrcoef(t, f)[0, 1] for t, f in zip(*columns, strict=True)])


SCORERS = {
    "ber": make_scorer(lambda truth, labels: 1 - balanced_accuracy_score(truth, labels)),
    "correlation": make_scorer(_correlation),
}


def scorer_of(scoring, estimator):
    """scikit-learn's scorer; foldless has two names more."""
    scoring = SCORERS.get(scoring, scoring) if isinstance(scoring, str) else scoring
    return check_scoring(estimator, scoring=scoring)


def scores_of_labelings(
    estimator, X, y, orders, *, splits, scoring=None, weight=None, name="sample_weight", strata=None, **given
):
    """Mean scores of every labeling: clone, fit on train, score on test.

    ``weight(order)`` are the weights of a labeling, ``given`` are arguments of fit that stay with the rows.
    """
    means, confounds = [], next((values for key, values in given.items() if key.endswith("confounds")), None)
    for order in orders:
        labels, held = relabelled(y, order, confounds, strata), []
        own = given if weight is None else {**given, name: weight(order)}
        for train, test in splits:
            model = at_rows(refit(estimator, X, labels, train, **own), test, own)
            held.append((model, rows_for(estimator, X, test, train), _safe_indexing(labels, test)))
        means.append(score_of_splits(scoring, estimator, held))
    return np.array(means)


def score_of_splits(scoring, estimator, held):
    """The mean over splits [(model, test rows, labels)] of a score; for values, by default, R2 of all rows together."""
    if scoring == "r2_pooled" or (scoring is None and is_regressor(estimator)):
        truth, predictions = zip(*[(labels, model.predict(rows)) for model, rows, labels in held], strict=True)
        return r2_score(np.concatenate(truth), np.concatenate(predictions))
    scorer = scorer_of(scoring, estimator)
    return np.mean([scorer(*each) for each in held])


def scores_of_members(estimator, members, y, splits, scoring=None, **given):
    """Scores (k, k): trained on member s of a family (first axis), tested at the features of member t."""
    table = np.zeros((len(members), len(members)))
    for s, seen in enumerate(members):
        models = [at_rows(refit(estimator, seen, y, train, **given), test, given) for train, test in splits]
        for t, other in enumerate(members):
            held = [(model, other[test], y[test]) for model, (_, test) in zip(models, splits, strict=True)]
            table[s, t] = score_of_splits(scoring, estimator, held)
    return table


# -- fits of a Gram matrix ---------------------------------------------------------------------------------------------


def signs(y):
    """Targets +-1 for each class, one column for two classes; values as they are."""
    if y.dtype.kind == "f":
        return y.reshape(len(y), -1)
    classes = np.unique(y)
    T = np.where(y[:, None] == classes, 1.0, -1.0)
    return T[:, 1:] if len(classes) == 2 else T


def gram(parameters, X):
    """scikit-learn's kernel of the parameters of an estimator."""
    gamma = parameters.get("gamma")
    return {
        "linear": lambda: linear_kernel(X),
        "rbf": lambda: rbf_kernel(X, gamma=gamma),
        "laplacian": lambda: laplacian_kernel(X, gamma=gamma),
        "poly": lambda: polynomial_kernel(
            X, gamma=gamma, degree=parameters.get("degree"), coef0=parameters.get("coef0")
        ),
    }[parameters.get("kernel", "linear")]()


def fits(K, Y, splits, alpha, **options):
    """Held-out fits, stacked over the splits."""
    return np.concatenate([reference.heldout_fits(K, Y, train, test, alpha, **options) for train, test in splits])


def ridge_fits(X, Y, Q, train, at, alpha):
    """Fits of linear features by least squares with rows sqrt(alpha) I: no square of X is formed."""
    q, r = Q.shape[1], X.shape[1]
    design = np.vstack([np.hstack([Q[train], X[train]]), np.hstack([np.zeros((r, q)), np.sqrt(alpha) * np.eye(r)])])
    beta = np.linalg.lstsq(design, np.vstack([Y[train], np.zeros((r, Y.shape[1]))]), rcond=None)[0]
    return np.hstack([Q[at], X[at]]) @ beta


def loo_fits(K, Y, alpha, *, rows=None, at=None, **options):
    """Fits at each row of ``at`` by the model of the other rows of ``rows``; all rows unless told."""
    rows = np.arange(len(K)) if rows is None else np.asarray(rows)
    splits = [(rows[rows != i], [i]) for i in (rows if at is None else at)]
    return fits(K, Y, splits, alpha, **options)


def class_matrices(K, Y, train, alpha, *, w, **options):
    """N = Y'WY and U = Y'W(Y - fits) of the model of a training part."""
    train = np.asarray(train)[w[train] > 0]
    YW = Y[train].T * w[train]
    return YW @ Y[train], YW @ (Y[train] - reference.heldout_fits(K, Y, train, train, alpha, w=w, **options))


def fit_weights(estimator, y, w=None):
    """Weights of the rows in a fit: those given, times those of their classes."""
    weights = np.ones(len(y)) if w is None else w
    factors = estimator.get_params().get("class_weight")
    return weights if factors is None else weights * np.array([factors.get(label, 1.0) for label in y])


class Candidate:
    """An estimator with closed form, fitted anew on any training part."""

    def __init__(self, estimator, y, X, w=None):
        self.own, self.kind = estimator.get_params(), type(estimator)
        self.K, self.y = gram(self.own, X), y
        self.w = fit_weights(estimator, y, w)

    def _fits(self, Y, train, at):
        Q = np.ones((len(Y), int(self.own.get("fit_intercept", False))))
        options = {name: self.own[name] for name in ("penalty",) if name in self.own}
        return reference.heldout_fits(self.K, Y, train, at, self.own["alpha"], w=self.w, Q=Q, **options)

    def fits(self, train, at):
        """Fits of the targets +-1 or of the values."""
        return self._fits(signs(self.y), np.asarray(train), at)

    def decision(self, train, at):
        """The decision of the estimator."""
        train = np.asarray(train)[self.w[train] > 0]
        classes, codes = np.unique(self.y, return_inverse=True)
        threshold = self.own.get("threshold")
        if self.kind is KernelFisherDiscriminant and (len(classes) > 2 or threshold == "centroid"):
            K = self.K
            if self.own["penalty"] == "coef":
                functions = np.flatnonzero(self.w > 0)
                K = K[:, functions] @ K[:, functions].T
            options = {"w": self.w, "priors": self.own["priors"], "centred": self.own["fit_intercept"]}
            decision = reference.discriminant(K, codes, train, at, self.own["alpha"], **options)[2]
            return decision[:, 1] - decision[:, 0] if len(classes) == 2 else decision
        if threshold == "fisher":
            mass = np.bincount(codes[train], self.w[train])
            fits = self._fits(np.eye(2)[codes], train, at) * mass.sum() / mass
            return fits[:, 1] - fits[:, 0]
        fits = self.fits(train, at)
        return fits[:, 0] if len(classes) == 2 else fits


def fits_of_candidate(estimator, params, y, splits, X, w=None):
    """(rows, fits at them), stacked over the splits, of one setting of an estimator; rows of weight 0 are left out."""
    model = Candidate(clone(estimator).set_params(**params), y, X, w)
    splits = [(train, test[model.w[test] > 0]) for train, test in splits]
    return np.concatenate([test for _, test in splits]), np.concatenate([model.fits(*split) for split in splits])


# -- least solutions (AdaptiveKDA) -------------------------------------------------------------------------------------


def adaptive_targets(y, classes, targets, train):
    """Targets of all rows by the class sizes of ``train``; one column for two classes, else one for each."""
    columns = []
    for label in classes[1:] if len(classes) == 2 else classes:
        own = np.sum(y[train] == label)
        rest = len(train) - own
        if targets == "pm1":
            values = (1.0, -1.0)
        else:
            values = (len(train) / own if own else 0.0, -len(train) / rest if rest else 0.0)
        columns.append(np.where(y == label, *values))
    return np.column_stack(columns)


def adaptive_decision(K, y, classes, train, test, alpha, targets):
    """Decisions of AdaptiveKDA at ``test`` by the model of ``train``."""
    fits = reference.minimum_norm_fits(K, adaptive_targets(y, classes, targets, train), train, test, alpha)
    return fits[:, 0] if len(classes) == 2 else fits


def adaptive_loo_decision(K, y, classes, alpha, targets):
    """The same for each row by the model of the others."""
    splits = skl.LeaveOneOut().split(y)
    return np.concatenate([adaptive_decision(K, y, classes, *split, alpha, targets) for split in splits])


# -- extended precision ------------------------------------------------------------------------------------------------


def weak_discriminant(K, y, w, alpha, train, test, *, intercept, coef=False):
    """Decisions of a discriminant at a penalty far above the kernel, in extended precision.

    With ``coef`` the kernel functions of all rows are features.

    A = (Y - g - mean) / alpha, g = S A, repeated, is the solution; a2 are eigenvalues of the class sums of g.
    """
    K, w = np.asarray(K, np.longdouble), np.asarray(w, np.longdouble)[train, None]
    Y = np.eye(y.max() + 1, dtype=K.dtype)[y[train]]
    K = K @ K.T if coef else K
    S, s = K[np.ix_(train, train)], K[np.ix_(test, train)]

    def centred(values, own):
        return values - (w * own).sum(0) / w.sum() if intercept else values

    beta = np.zeros_like(Y)
    for _ in range(8):
        residual = Y - S @ beta
        beta = w * centred(residual, residual) / alpha
    g, new = S @ beta, s @ beta
    g, new = centred(g, g), centred(new, g)
    mass, V = (w * Y).sum(0), (w * Y).T @ g
    root = np.sqrt(mass)
    size = np.abs(V).max()
    a2, vectors = np.linalg.eigh(np.asarray((V + V.T) / 2 / size / np.outer(root, root), float))
    kept = slice(int(intercept), None)  # the constant comes out as the smallest, 0
    a2 = a2[kept] * size
    scalings = vectors[:, kept] / root[:, None] / np.sqrt(a2 * (1 - a2))
    z, centroids = new @ scalings, V @ scalings / mass[:, None]
    return np.asarray(-w.sum() / 2 * ((z[:, None] - centroids) ** 2).sum(-1), float)
