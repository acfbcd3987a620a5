"""Comparisons of models: differences, intervals and p-values beside loops of refits and plain formulas."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupShuffleSplit, KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC, LSSVR
from foldless._engine.inference.comparison import flipped_difference, holm
from foldless.model_selection import Confounds, compare, cross_val_score, score_interval

X, Y = make_classification(40, 5, n_informative=3, flip_y=0.2, random_state=0)
VALUES = X[:, 0] + 0.5 * np.random.default_rng(0).normal(size=40)
A, B = LSSVC(gamma=0.3), LSSVC("linear")


def test_the_difference_is_that_of_the_scores_on_the_same_folds():
    found = compare(A, B, X, Y, cv=4, n_repeats=3)
    scores = [score_interval(each, X, Y, cv=4, n_repeats=3) for each in (A, B)]
    assert [*found.scores[0]] == [*scores[0]]
    assert [*found.scores[1]] == [*scores[1]]
    (pair,) = found.differences
    np.testing.assert_allclose(pair.difference, scores[0].score - scores[1].score, atol=1e-12)
    assert (pair.first, pair.second) == ("LSSVC 1", "LSSVC 2")
    assert pair.low < pair.difference < pair.high


def test_the_error_of_the_difference_is_the_definition_by_refits():
    cv = StratifiedKFold(4)
    folds = [test for _, test in cv.split(X, Y)]

    def d(test, out):
        train = np.setdiff1d(np.arange(40), out)
        right = [clone(each).fit(X[train], Y[train]).predict(X[test]) == Y[test] for each in (A, B)]
        return right[0].astype(float) - right[1]

    outside = [d(fold, fold) for fold in folds]
    inside, square = [], []
    for j, fold in enumerate(folds):
        others = [d(other, np.concatenate([fold, other])) for i, other in enumerate(folds) if i != j]
        inside.append(np.concatenate(others).mean())
        square.append((inside[-1] - outside[j].mean()) ** 2 - outside[j].var(ddof=1) / len(fold))
    rows = np.concatenate(outside)
    plain = np.mean([each.var(ddof=1) / len(each) for each in outside]) / 4
    square_row = (np.sum(rows**2) + 2) / 44
    plain = max(plain, (square_row - (rows.sum() / 44) ** 2) / 40)
    error = np.sqrt(np.clip(0.75 * np.mean(square), plain, 4 * plain))
    centre = np.mean(inside) - 1.5 * (np.mean(inside) - rows.mean())
    (pair,) = compare(A, B, X, Y, cv=cv).differences
    half = norm.ppf(0.95) * error
    np.testing.assert_allclose([pair.low, pair.high, pair.standard_error], [centre - half, centre + half, error])
    np.testing.assert_allclose(pair.pvalue, 2 * norm.sf(abs(centre) / error))


def test_a_model_does_not_differ_from_itself():
    (pair,) = compare(A, clone(A), X, Y, cv=4, n_repeats=2).differences
    assert pair.difference == 0.0
    assert pair.pvalue == 1.0
    assert pair.standard_error > 0


def test_several_models_have_corrected_p_values():
    models = {"rbf": A, "linear": B, "strong": LSSVC(alpha=1e3)}
    found = compare(models, X, Y, cv=4, n_repeats=2, method="nadeau-bengio")
    assert [(each.first, each.second) for each in found.differences] == [
        ("rbf", "linear"),
        ("rbf", "strong"),
        ("linear", "strong"),
    ]
    np.testing.assert_allclose(
        [each.pvalue_corrected for each in found.differences], holm([each.pvalue for each in found.differences])
    )
    assert "rbf - linear" in repr(found)
    assert list(found.to_frame()["first"]) == ["rbf", "rbf", "linear"]


def test_holm_is_his_definition():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    np.testing.assert_allclose(holm([0.6, 0.9]), [1.0, 1.0])


def test_few_rows_have_all_their_signs_flipped():
    one, other = np.array([1.0, 0.3, 0.9, 0.2, 0.5]), np.array([0.2, 0.4, 0.1, 0.2, 0.1])
    d = (one - other)[[0, 1, 2, 4]]
    sums = [abs(np.dot(signs, d)) for signs in product([1, -1], repeat=4)]
    p = np.mean(np.array(sums) >= abs(d.sum()) - 1e-12)
    assert flipped_difference(one, other, 0.9)[-1] == p


def test_differences_that_are_rounding_are_none():
    """Models that predict the same tie in every row, whatever rounding made of their scores."""
    rng = np.random.default_rng(0)
    one = rng.normal(size=6)
    other = one * (1 + 1e-14 * rng.normal(size=6))
    assert flipped_difference(one, other, 0.9)[-1] == 1.0
    other[:3] = one[:3] - [0.1, 0.2, 0.3]
    assert flipped_difference(one, other, 0.9)[-1] == 2 / 8
    other[:3] = one[:3] - np.array([0.1, 0.2, -0.3]) * (1 + 1e-13 * rng.normal(size=3))
    assert flipped_difference(one, other, 0.9)[-1] == 1.0
    other = one - 1e-5 * np.array([0.2, 0.1, -0.1, 0.0, 0.0, 0.0]) + 1e-14 * rng.normal(size=6)
    assert flipped_difference(one, other, 0.9)[-1] == 6 / 8


def test_flipped_signs_take_the_rows_of_one_split():
    cv = ShuffleSplit(1, test_size=0.5, random_state=0)
    found = compare(LSSVR(gamma=0.3), Ridge(), X, VALUES, cv=cv, method="sign-flip")
    ((train, test),) = cv.split(X)
    fitted = [each.fit(X[train], VALUES[train]) for each in (LSSVR(gamma=0.3), Ridge())]
    errors = [-((each.predict(X[test]) - VALUES[test]) ** 2) for each in fitted]
    np.testing.assert_allclose(found.differences[0].difference, np.mean(errors[0] - errors[1]))
    assert 0 < found.differences[0].pvalue <= 1
    many = compare(LSSVR(gamma=0.3), Ridge(), X, VALUES, cv=cv, method="sign-flip")
    assert many.differences == found.differences


def test_the_order_of_the_models_changes_nothing_but_the_sign():
    strong = LSSVC(alpha=2000.0)
    (one,), (other,) = (compare(*pair, X, Y, cv=5, n_repeats=2).differences for pair in ((A, strong), (strong, A)))
    np.testing.assert_allclose(one.difference, -other.difference)
    np.testing.assert_allclose([one.pvalue, one.standard_error], [other.pvalue, other.standard_error])


def test_flipped_signs_are_those_of_groups():
    cv, groups = GroupShuffleSplit(1, test_size=10, random_state=0), np.arange(40) // 2
    models = LSSVR(gamma=0.3), Ridge()
    found = compare(*models, X, VALUES, cv=cv, method="sign-flip", groups=groups)
    ((train, test),) = cv.split(X, groups=groups)
    errors = [-((each.fit(X[train], VALUES[train]).predict(X[test]) - VALUES[test]) ** 2) for each in models]
    d = np.array([np.sum((errors[0] - errors[1])[groups[test] == g]) for g in np.unique(groups[test])])
    np.testing.assert_allclose(found.differences[0].difference, d.sum() / 20)
    np.testing.assert_allclose(found.differences[0].standard_error, np.sqrt(len(d)) * d.std(ddof=1) / 20)


def test_pipelines_are_named_by_their_steps():
    models = make_pipeline(StandardScaler(), A), make_pipeline("passthrough", A), make_pipeline(StandardScaler(), B)
    found = compare(*models, X, Y, cv=3, n_repeats=1)
    assert found.names == ["StandardScaler + LSSVC 1", "LSSVC", "StandardScaler + LSSVC 2"]


def test_scores_of_models_with_confounds_are_those_of_their_intervals():
    confound = X[:, 3]
    found = compare(A, B, X, Y, cv=KFold(4), confounds=confound)
    for mine, model in zip(found.scores, (A, B), strict=True):
        alone = score_interval(model, X, Y, cv=KFold(4), confounds=confound)
        np.testing.assert_allclose([*mine], [*alone])
    assert found.scores[0].low != compare(A, B, X, Y, cv=KFold(4)).scores[0].low


def test_scores_keep_what_confounds_explain_where_they_are_told_to():
    kept, options = Confounds(X[:, 3], in_score=True), {"cv": KFold(4), "method": "nadeau-bengio"}
    result = compare(A, B, X, Y, confounds=kept, **options)
    for score, model in zip(result.scores, (A, B), strict=True):
        expected = cross_val_score(model, X, Y, cv=KFold(4), confounds=kept).mean()
        assert score.score == pytest.approx(expected)
        assert score_interval(model, X, Y, confounds=kept, **options).score == pytest.approx(expected)
        assert score.score != score_interval(model, X, Y, confounds=X[:, 3], **options).score


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
def test_estimators_without_a_closed_form_are_compared_too():
    found = compare(A, LogisticRegression(), X, Y, cv=3, n_repeats=1)
    assert [each.kind for each in found.paths] == ["one fit", "refit"]


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ((A, X, Y), {}, "there are 1 models"),
        ((A, 3, X, Y), {}, "cannot be fitted"),
        ((A, LSSVR(gamma=0.3), X, Y), {}, "some models are classifiers"),
        ((A, B, X, Y), {"method": "sign-flip"}, "needs cv with one split"),
        ((A, B, X, Y), {"method": "t-test"}, "method='t-test' is unknown"),
        ((A, B, X, Y), {"confidence": 0}, "confidence=0 must lie between"),
        ((A, B, X, Y), {"method": "sign-flip", "scoring": "f1", "cv": ShuffleSplit(1)}, "a mean over rows"),
        ((A, B, X, Y), {"method": "sign-flip", "cv": KFold(3)}, "needs cv with one split"),
    ],
)
def test_bad_arguments_are_named(given, options, message):
    with pytest.raises(ValueError, match=message):
        compare(*given, **options)
