"""Permutation tests of values with confounds: residuals are permuted, in every strategy, as by a loop of refits."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import make_scorer, mean_squared_error
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, LeaveOneOut, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVR, FoldlessSearchCV
from foldless.model_selection import (
    Confounds,
    RefitWarning,
    cross_validate,
    nested_cross_validate,
    permutation_test_score,
)
from support.permutation import (
    CODES,
    FOLDS,
    GROUPS,
    OUTPUTS,
    RNG,
    STRATA,
    WEIGHT,
    M,
    N,
    X,
    assert_scores,
    check_scores,
    orders_of,
)
from support.refits import refit, relabelled, scores_of_labelings
from support.tolerances import assert_close

C = RNG.normal((50.0, 0.0), (10.0, 1.0), size=(N, 2))
Y = 0.3 * C[:, 0] - 2 * C[:, 1] + X[:, 0] + (GROUPS > 3) + RNG.normal(size=N)
GRID = {"alpha": [1e-3, 0.3, 100.0]}
PARTS = [(np.arange(10, N), np.arange(10)), (np.arange(18), np.arange(14, N))]

SPLITTERS = {
    "k-fold": {"cv": KFold(4)},
    "shuffled": {"cv": KFold(5, shuffle=True, random_state=1)},
    "leave-one-out": {"cv": LeaveOneOut()},
    "random partitions": {"cv": ShuffleSplit(3, random_state=0)},
    "odd parts": {"cv": PARTS},
    "groups": {"cv": GroupKFold(4), "groups": GROUPS},
    "a group": {"cv": LeaveOneGroupOut(), "groups": GROUPS},
    "strata": {"cv": KFold(4), "null": STRATA},
    "many strata": {"cv": KFold(4), "null": np.arange(N) % 13},
}
MODELS = {
    "linear": LSSVR("linear"),
    "rbf": LSSVR(gamma=0.1, alpha=0.3),
    "coef": LSSVR(gamma=0.1, penalty="coef"),
    "no intercept": LSSVR(gamma=0.1, fit_intercept=False),
}


def check(estimator, y=Y, data=X, oracle=None, **options):
    """permutation_test_score equals the loop that permutes residuals, refits and scores."""
    cv, strata = options.pop("cv", FOLDS), options.pop("null", options.get("groups"))
    groups = options.pop("groups", None)
    splits = cv if isinstance(cv, list) else list(cv.split(data, y, groups))
    passed = {"null": strata} if groups is None else {"groups": groups}
    given = {"cv": cv if groups is not None else splits, "confounds": C, "n_permutations": M, "random_state": 7}
    scoring = options.get("scoring")
    result = permutation_test_score(estimator, data, y, **given, **passed, **options)
    oracle = {"splits": splits, "scoring": scoring, "strata": strata, "confounds": C, **(oracle or {})}
    scores = scores_of_labelings(oracle.pop("estimator", estimator), data, y, orders_of(N, strata), **oracle)
    single = data.dtype == np.float32
    assert_scores(result, scores, greater=result.greater_is_better, atol=2e-4 if single else 1e-8)
    return result


@pytest.mark.many_cases
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("options", SPLITTERS)
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("scoring", ["r2_pooled", "neg_mean_squared_error", "correlation"])
def test_permuted_residuals_score_as_refits_do(model, options, weighted, scoring):
    if options == "leave-one-out" and scoring == "correlation":
        pytest.skip("not defined of one row")
    if options == "odd parts":  # rows are tested twice
        scoring = "neg_mean_squared_error"
    more = {"params": {"sample_weight": WEIGHT}, "oracle": {"weight": lambda order: WEIGHT}} if weighted else {}
    result = check(MODELS[model], scoring=scoring, **SPLITTERS[options], **more)
    assert result.path.kind == "one fit"


def test_weights_stay_with_their_rows():
    check(LSSVR(gamma=0.1), params={"sample_weight": WEIGHT}, oracle={"weight": lambda order: WEIGHT})


def test_several_outputs():
    Y3 = OUTPUTS + Y[:, None] * [1.0, 0.0, -3.0]
    for scoring in (None, "neg_mean_squared_error", "correlation"):
        check(LSSVR(gamma=0.1), Y3, scoring=scoring)


def test_single_precision():
    for model in (LSSVR("linear"), LSSVR(gamma=0.1, penalty="coef")):
        check(model, data=X.astype(np.float32))


def test_whole_numbers_and_large_ones():
    whole = permutation_test_score(LSSVR(gamma=0.1), X, Y.round().astype(int), cv=FOLDS, confounds=C)
    assert_close(
        whole.permutation_scores,
        permutation_test_score(LSSVR(gamma=0.1), X, Y.round(), cv=FOLDS, confounds=C)[1],
    )
    far = permutation_test_score(LSSVR(gamma=0.1), X, 1e9 + Y, cv=FOLDS, confounds=1e9 + C, n_permutations=19)
    near = permutation_test_score(LSSVR(gamma=0.1), X, Y, cv=FOLDS, confounds=C, n_permutations=19)
    assert_close(far.permutation_scores, near.permutation_scores, rtol=1e-5)
    assert far.pvalue == near.pvalue


def test_scikit_learns_estimators():
    check(Ridge(alpha=2.0), oracle={"estimator": LSSVR("linear", alpha=2.0)})
    check(KernelRidge(kernel="rbf", gamma=0.1), oracle={"estimator": LSSVR(gamma=0.1, fit_intercept=False)})


def test_pipelines_give_the_same_test_with_and_without_refits():
    """Steps that are fitted on every training part without y, and steps that see y."""
    for steps, kind in ((StandardScaler(), "one P per fold"), (SelectKBest(f_regression, k=3), "refit")):
        pipeline = make_pipeline(steps, LSSVR(gamma=0.1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RefitWarning)
            result = permutation_test_score(pipeline, X, Y, cv=FOLDS, confounds=C, n_permutations=M, random_state=7)
        assert result.path.kind == kind
        scores = scores_of_labelings(pipeline, X, Y, orders_of(N), splits=FOLDS, lssvr__confounds=C)
        assert_scores(result, scores)


def test_scores_that_are_asked_for_one_by_one():
    """Weights of the score, which scikit-learn's loop hands to the scorer."""
    with sklearn.config_context(enable_metadata_routing=True):
        model = LSSVR(gamma=0.1).set_fit_request(sample_weight=False, confounds=True)
        scorer = make_scorer(mean_squared_error, greater_is_better=False).set_score_request(sample_weight=True)
        options = {"cv": FOLDS, "n_permutations": M, "random_state": 7, "params": {"sample_weight": WEIGHT}}
        result = permutation_test_score(model, X, Y, scoring=scorer, confounds=C, **options)
    assert "one by one" in result.path.reason
    scores = []
    for order in orders_of(N):
        labels, own = relabelled(Y, order, C), []
        for train, test in FOLDS:
            fits = LSSVR(gamma=0.1).fit(X[train], labels[train], confounds=C[train]).predict(X[test], confounds=C[test])
            own.append(-mean_squared_error(labels[test], fits, sample_weight=WEIGHT[test]))
        scores.append(np.mean(own))
    assert_scores(result, np.array(scores))


def test_splits_drawn_anew_see_the_permuted_values():
    class ByRank(KFold):
        """Test sets of values of neighbouring ranks."""

        def split(self, X, y, groups=None):
            rank = np.argsort(y, kind="stable")
            for train, test in super().split(X):
                yield np.sort(rank[train]), np.sort(rank[test])

    options = {"n_permutations": 3, "random_state": 7, "confounds": C, "scoring": "neg_mean_squared_error"}
    result = permutation_test_score(LSSVR(gamma=0.1), X, Y, cv=ByRank(4), null="resplit", **options)
    for score, order in zip(np.r_[result.score, result.permutation_scores], orders_of(N, m=3), strict=True):
        labels = relabelled(Y, order, C)
        found = cross_validate(LSSVR(gamma=0.1), X, labels, cv=ByRank(4), confounds=C, scoring=options["scoring"])
        assert_close(score, found["test_score"].mean())


class Shifts:
    def orders(self, n, n_permutations, random_state):
        return (np.arange(n) + random_state.randint(1, n, n_permutations)[:, None]) % n


def test_residuals_move_by_a_users_null_scheme():
    result = permutation_test_score(
        LSSVR(gamma=0.1), X, Y, cv=FOLDS, confounds=C, n_permutations=M, random_state=7, null=Shifts()
    )
    orders = np.vstack([np.arange(N), Shifts().orders(N, M, np.random.RandomState(7))])
    assert_scores(result, scores_of_labelings(LSSVR(gamma=0.1), X, Y, orders, splits=FOLDS, confounds=C))


def test_splits_that_go_with_the_residuals():
    """Splits made from whole numbers, which regressions may have too, and a null scheme of a user."""
    y, cv = CODES + 0.0, StratifiedKFold(4)
    result = permutation_test_score(
        LSSVR(gamma=0.1), X, y, cv=cv, confounds=C, n_permutations=M, random_state=7, null=Shifts()
    )
    orders = [np.arange(N), *Shifts().orders(N, M, np.random.RandomState(7))]
    for score, order in zip(np.r_[result.score, result.permutation_scores], orders, strict=True):
        place = np.argsort(order)
        moved = [(place[train], place[test]) for train, test in cv.split(X, y)]
        own = scores_of_labelings(LSSVR(gamma=0.1), X, y, [order], splits=moved, confounds=C)
        assert_close(score, own[0])


class WithConfoundsInX(RegressorMixin, BaseEstimator):
    """A regression whose X carries its confounds behind the features, and what they explain stays in predictions."""

    def fit(self, X, y):
        self.model_ = refit(LSSVR(gamma=0.1), X[:, :-2], y, np.arange(len(y)), confounds=X[:, -2:])
        self.line_ = LinearRegression().fit(X[:, -2:], y)
        self.mean_ = X[:, -2:].mean(0)
        return self

    def predict(self, X):
        C = X[:, -2:]
        return self.model_.predict(X[:, :-2], confounds=C) + (C - self.mean_) @ self.line_.coef_


def test_confounds_kept_in_the_score():
    """What they explain is in the null as well."""
    options = {"cv": FOLDS, "n_permutations": M, "random_state": 7, "confounds": Confounds(C, in_score=True)}
    result = permutation_test_score(LSSVR(gamma=0.1), X, Y, **options)
    both = np.hstack([X, C])
    expected = [
        scores_of_labelings(WithConfoundsInX(), both, relabelled(Y, order, C), [np.arange(N)], splits=FOLDS)[0]
        for order in orders_of(N)
    ]
    assert_scores(result, np.array(expected))
    assert result.permutation_scores.min() > 0.5


@pytest.mark.parametrize("inner", [None, 3], ids=["leave-one-out", "3-fold"])
@pytest.mark.parametrize("family", [False, True], ids=["", "family"])
def test_searches_choose_and_score_as_nested_refits(inner, family):
    check_search(
        FoldlessSearchCV(LSSVR(gamma=0.1), GRID, cv=None if inner is None else KFold(inner)), "one fit", family
    )


def test_searches_that_are_repeated_choose_and_score_as_nested_refits():
    check_search(FoldlessSearchCV(LSSVR(gamma=0.1), GRID, scoring="neg_mean_absolute_error"), "refit")


def check_search(search, kind, family=False):
    members = [X, X[:, ::-1] ** 2] if family else [X]
    options = {"cv": FOLDS, "n_permutations": 3, "random_state": 7, "confounds": C, "null": STRATA}
    options["scoring"] = "neg_mean_squared_error"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RefitWarning)
        result = permutation_test_score(search, members if family else X, Y, **options)
    assert result.path.kind == kind
    found = np.vstack([result.score, result.permutation_scores.reshape(3, -1)])
    chosen = set()
    for row, order in zip(found, orders_of(N, STRATA, m=3), strict=True):
        labels = relabelled(Y, order, C, STRATA)
        each = [
            nested_cross_validate(search, one, labels, cv=FOLDS, confounds=C, scoring=options["scoring"])
            for one in members
        ]
        chosen |= {params["alpha"] for nested in each for params in nested.best_params}
        assert_close(row, [nested.test_score.mean() for nested in each])
    assert len(chosen) > 1


def test_members_of_a_family_have_the_same_labelings():
    family = np.stack([X, X**2, X[:, ::-1] ** 3], axis=2)
    options = {"cv": FOLDS, "n_permutations": M, "random_state": 7, "confounds": C, "null": STRATA}
    whole = permutation_test_score(LSSVR("linear"), family, Y, **options)
    for k in range(3):
        alone = check_scores(LSSVR("linear"), family[:, :, k], Y, strata=STRATA, confounds=C, oracle={"confounds": C})
        assert_close(whole.permutation_scores[:, k], alone.permutation_scores)


def test_what_the_confounds_determine_is_not_tested():
    options = {"cv": FOLDS, "n_permutations": 19, "confounds": C}
    with pytest.warns(UserWarning, match="do not change the labels.*or the confounds determine it"):
        result = permutation_test_score(LSSVR("linear"), X, C @ [1.0, 2.0], **options)
    assert result.pvalue == 1.0


def test_values_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="could not convert string"):
        permutation_test_score(LSSVR("linear"), X, np.array(["a", "b"])[CODES % 2], cv=FOLDS, confounds=C)
    with pytest.raises(ValueError, match="y contains NaN"):
        permutation_test_score(LSSVR("linear"), X, np.where(CODES, Y, np.nan), cv=FOLDS, confounds=C)
