"""Families of permutation tests: every member as a test of its own, p-values over the family."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import model_selection as skl
from sklearn.feature_selection import SelectKBest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless._engine.permutation.strategies import Batched
from foldless.model_selection import Confounds, PermutationTestResult, RefitWarning, permutation_test_score
from support.families import (
    BINARY,
    CONFOUNDS,
    CV,
    FOUR,
    GRID,
    GROUPS,
    KFDA,
    MEMBERS,
    OUTPUTS,
    THREE,
    TIMES,
    VALUES,
    ZEROS,
    N,
    X,
    named,
)
from support.permutation import permutation_test_in_memory
from support.refits import labelings, p_value
from support.tolerances import assert_close

BLOCKS = [X, X[:, :1], np.hstack([X, MEMBERS[1], MEMBERS[2], X**2, X**3])]  # four, one and twenty features

FAMILIES = {
    "LSSVC": (LSSVC(gamma=0.1), THREE, {}),
    "LSSVC linear": (LSSVC("linear"), FOUR, {"scoring": "ber"}),
    "KFDA": (KFDA(gamma=0.1), FOUR, {"scoring": "balanced_accuracy"}),
    "KFDA linear": (KFDA("linear", threshold="centroid"), BINARY, {"scoring": "roc_auc"}),
    "LSSVR": (LSSVR(gamma=0.1), OUTPUTS, {}),
    "Ridge": (Ridge(), VALUES, {"scoring": "correlation"}),
    "RidgeClassifier": (RidgeClassifier(), THREE, {"scoring": "f1_macro"}),
    "KernelRidge": (KernelRidge(kernel="rbf", gamma=0.1), VALUES, {"scoring": "neg_mean_squared_error"}),
    "weights": (LSSVC("linear"), THREE, {"params": {"sample_weight": ZEROS}}),
    "class weights": (KFDA("linear", class_weight="balanced"), THREE, {}),
    "confounds": (LSSVC("linear"), THREE, {"confounds": CONFOUNDS}),
    "confounds in score": (LSSVC(gamma=0.1), BINARY, {"confounds": Confounds(CONFOUNDS, in_score=True)}),
    "groups": (LSSVC(gamma=0.1), THREE, {"groups": GROUPS, "cv": skl.GroupKFold(3)}),
    "strata": (LSSVC(gamma=0.1), THREE, {"null": GROUPS % 2}),
    "resplit": (LSSVC("linear"), BINARY, {"cv": skl.StratifiedKFold(3), "null": "resplit"}),
    "one by one": (LSSVC(gamma=0.1, calibration="sigmoid"), BINARY, {"scoring": "neg_log_loss"}),
    "pipeline": (make_pipeline(StandardScaler(), LSSVC("linear")), THREE, {}),
    "search": (FoldlessSearchCV(LSSVC(), GRID), THREE, {}),
}


def assert_alone(result, members, estimator, y, options, m=9):
    """Every member as a call of its own; the maximum over members by hand."""
    alone = [permutation_test_score(estimator, each, y, n_permutations=m, **options) for each in members]
    assert_close(result.score, [each.score for each in alone], rtol=1e-12)
    assert_close(result.permutation_scores, np.stack([each.permutation_scores for each in alone], 1), rtol=1e-12)
    np.testing.assert_array_equal(result.pvalue, [each.pvalue for each in alone])
    greater = result.greater_is_better
    best = (np.max if greater else np.min)(result.permutation_scores, 1)
    np.testing.assert_array_equal(result.max_scores, best)
    np.testing.assert_array_equal(result.pvalue_fwe, p_value(result.score, best[:, None], greater))
    assert result.score.shape == result.pvalue.shape == result.pvalue_fwe.shape == (len(members),)
    assert str(result.path) == str(alone[0].path)


@pytest.mark.many_cases
@pytest.mark.parametrize("form", ["times", "blocks"])
@pytest.mark.parametrize("case", FAMILIES)
def test_members_of_a_family_equal_single_tests(case, form):
    """The same permutations for all: a call for each member with the same seed."""
    estimator, y, options = FAMILIES[case]
    options = {"cv": CV, **options}
    given, members = (TIMES, MEMBERS) if form == "times" else (BLOCKS, BLOCKS)
    result = permutation_test_score(estimator, given, y, n_permutations=9, **options)
    assert_alone(result, members, estimator, y, options)


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
@pytest.mark.parametrize(
    "estimator",
    [SVC(), make_pipeline(SelectKBest(k=1), LSSVC()), FoldlessSearchCV(LSSVC(), GRID, share="none")],
    ids=["SVC", "pipeline", "search"],
)
def test_refitted_members_of_a_family_equal_single_tests(estimator):
    options = {"cv": CV}
    result = permutation_test_score(estimator, TIMES, BINARY, n_permutations=3, **options)
    assert result.path.kind == "refit"
    assert_alone(result, MEMBERS, estimator, BINARY, options, m=3)


def test_a_family_that_is_refitted_says_so_once():
    with pytest.warns(RefitWarning, match="SVC is refitted for every permutation") as told:
        permutation_test_score(SVC(), TIMES, BINARY, cv=CV, n_permutations=2)
    assert len(told) == 1


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, pd.DataFrame, np.asfortranarray, tuple], ids=named)
def test_family_in_any_container(form):
    """Sparse blocks and frames; a tuple is a list."""
    estimator = LSSVC("linear", alpha=2.0)
    plain = permutation_test_score(estimator, BLOCKS, THREE, cv=CV, n_permutations=9)
    given = tuple(BLOCKS) if form is tuple else [form(each) for each in BLOCKS]
    result = permutation_test_score(estimator, given, THREE, cv=CV, n_permutations=9)
    assert_close(result.score, plain.score)
    assert_close(result.permutation_scores, plain.permutation_scores)


@pytest.mark.parametrize("case", ["memory", "resplit"])
def test_members_of_a_family_in_batches_equal_single_tests(case):
    """As many bytes as one labeling takes."""
    estimator = LSSVC("linear")
    y, options = {
        "memory": (THREE, {"cv": CV}),
        "resplit": (BINARY, {"cv": skl.StratifiedKFold(3), "null": "resplit"}),
    }[case]
    result = permutation_test_in_memory(1, estimator, TIMES, y, n_permutations=9, **options)
    assert_alone(result, MEMBERS, estimator, y, options)


def test_one_member_is_a_family_of_one():
    result = permutation_test_score(LSSVC(), [X], THREE, cv=CV, n_permutations=9)
    alone = permutation_test_score(LSSVC(), X, THREE, cv=CV, n_permutations=9)
    np.testing.assert_array_equal(result.permutation_scores, alone.permutation_scores[:, None])
    assert result.pvalue_fwe == result.pvalue == [alone.pvalue]
    assert alone.pvalue_fwe is None
    assert alone.max_scores is None


def test_a_list_of_rows_is_no_family():
    result = permutation_test_score(LSSVC(), X.tolist(), THREE, cv=CV, n_permutations=3)
    assert np.ndim(result.score) == 0


def test_processes_give_the_same_family():
    """Of a search, of a family, of a generalisation."""
    for estimator, data, generalise in (
        (FoldlessSearchCV(LSSVC(), GRID), X, False),
        (LSSVC(gamma=0.1), TIMES, False),
        (LSSVC(gamma=0.1), TIMES, True),
    ):
        options = {"cv": CV, "n_permutations": 9, "generalise": generalise, "labelings_of_search": 4}
        one, two = (
            permutation_test_in_memory(2**29, estimator, data, THREE, n_jobs=jobs, **options) for jobs in (1, 2)
        )
        np.testing.assert_array_equal(one.permutation_scores, two.permutation_scores)
        assert one.best_params == two.best_params


def test_undefined_null_scores_count_as_the_best_of_the_family():
    """Labelings with one class only in a test part; the same for all members, and for the maximum over them."""
    y = np.isin(np.arange(N), [1, 2, 20]).astype(int)
    cv = [(np.r_[12:N], np.arange(12)), (np.arange(18), np.r_[18:N])]
    with pytest.warns(UserWarning, match=r"of 60 permuted scores are not defined .* as at least as good"):
        result = permutation_test_score(LSSVC("linear"), TIMES, y, cv=cv, n_permutations=20, scoring="roc_auc")
    lost = np.isnan(result.permutation_scores).any(1)
    expected = [any(len(np.unique(y[order][test])) < 2 for _, test in cv) for order in labelings(N, 20)[1:]]
    np.testing.assert_array_equal(lost, expected)
    assert 0 < lost.sum() < 20
    best = np.where(lost, np.inf, np.where(lost[:, None], 0.0, result.permutation_scores).max(1))
    np.testing.assert_array_equal(result.max_scores, best)
    np.testing.assert_array_equal(result.pvalue_fwe, p_value(result.score, best[:, None]))
    filled = np.where(lost[:, None], np.inf, result.permutation_scores)
    np.testing.assert_array_equal(result.pvalue, p_value(result.score, filled))


def test_family_of_a_loss_takes_the_least_score():
    null = np.array([[0.3, np.nan], [0.2, 0.4], [0.6, 0.5]])
    result = PermutationTestResult(np.array([0.25, 0.1]), null, greater_is_better=False)
    np.testing.assert_array_equal(result.max_scores, [-np.inf, 0.2, 0.5])
    np.testing.assert_array_equal(result.pvalue, [0.5, 0.5])
    np.testing.assert_array_equal(result.pvalue_fwe, [0.75, 0.5])


def test_members_without_a_score_are_left_out():
    """An interrupted family: the rest is corrected for the rest."""
    score, null = np.array([0.6, np.nan, 0.5]), np.array([[0.7, np.nan, 0.2], [0.1, np.nan, 0.4], [0.1, np.nan, 0.3]])
    result = PermutationTestResult(score, null)
    np.testing.assert_array_equal(result.max_scores, [0.7, 0.4, 0.3])
    np.testing.assert_array_equal(result.pvalue_fwe, [0.5, np.nan, 0.5])
    np.testing.assert_array_equal(result.pvalue, [0.5, np.nan, 0.25])
    assert "best 0.6000 at 0" in repr(result)
    nothing = PermutationTestResult(np.full(2, np.nan), np.full((3, 2), np.nan))
    assert np.isnan(nothing.pvalue_fwe).all()
    assert "2 members, none of them defined" in repr(nothing)


def test_an_interrupted_family_keeps_the_members_that_are_done(monkeypatch):
    scores, calls = Batched.scores, []

    def tired(strategy, *given):
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return scores(strategy, *given)

    whole = permutation_test_score(LSSVC("linear"), TIMES, THREE, cv=CV, n_permutations=9)
    monkeypatch.setattr(Batched, "scores", tired)
    with pytest.warns(UserWarning, match="interrupted: the result rests on 2 of 3 members of the family"):
        result = permutation_test_score(LSSVC("linear"), TIMES, THREE, cv=CV, n_permutations=9)
    np.testing.assert_array_equal(result.score, [*whole.score[:2], np.nan])
    np.testing.assert_array_equal(result.permutation_scores[:, :2], whole.permutation_scores[:, :2])
    np.testing.assert_array_equal(result.max_scores, whole.permutation_scores[:, :2].max(1))


@pytest.mark.parametrize("estimator", [LSSVC("linear"), FoldlessSearchCV(LSSVC(), GRID)], ids=["model", "search"])
def test_splits_by_class_permute_within_test_sets(estimator):
    """All members, all candidates: training parts and test sets keep the class counts of the true labels."""
    cv = skl.StratifiedKFold(3, shuffle=True, random_state=0)
    result = permutation_test_score(estimator, TIMES, THREE, cv=cv, n_permutations=4, random_state=1)
    splits = list(cv.split(X, THREE))
    fold = np.empty(N, int)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
    np.testing.assert_array_equal(result.strata, fold)
    given = permutation_test_score(estimator, TIMES, THREE, cv=splits, n_permutations=4, random_state=1, null=fold)
    np.testing.assert_array_equal(result.permutation_scores, given.permutation_scores)


def test_the_text_of_a_family_names_its_best_member():
    result = permutation_test_score(LSSVC("linear"), TIMES[:, :, ::-1], BINARY, cv=CV, n_permutations=19)
    assert "accuracy of 3 members" in repr(result)
    best = int(np.argmax(result.score))
    assert f"best {result.score[best]:.4f} at {best}, family-wise p = {result.pvalue_fwe[best]:.4g}" in repr(result)
    square = permutation_test_score(LSSVC("linear"), TIMES, BINARY, cv=CV, n_permutations=19, generalise=True)
    assert "accuracy of 9 members" in repr(square)
    row, column = np.unravel_index(np.argmax(square.score), (3, 3))
    assert f"at ({row}, {column})" in repr(square)
    loss = permutation_test_score(LSSVC("linear"), TIMES, BINARY, cv=CV, n_permutations=3, scoring="ber")
    assert f"best {loss.score.min():.4f} at {loss.score.argmin()}" in repr(loss)


def test_progress_counts_members(capsys):
    permutation_test_score(LSSVC(), TIMES, THREE, cv=CV, n_permutations=2, verbose=1)
    told = capsys.readouterr()
    assert "members of the family: 3/3" in told.err
    assert told.out == ""


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (X, {"generalise": True}, "generalise=True needs a family"),
        (
            BLOCKS,
            {"generalise": True},
            r"same features; X has shapes \[\(36, 1\), \(36, 4\), \(36, 20\)\]",
        ),
        (TIMES, {"generalise": True, "null": "resplit"}, "generalise=True keeps the splits of the true labels"),
        ([X @ X.T] * 2, {"generalise": True, "kernel": "precomputed"}, "generalise=True needs features: precomputed"),
        (TIMES[:, :, :0], {}, r"X of shape \(36, 4, 0\) holds no member"),
        (TIMES[:, :, :, None], {}, "X has 4 axes"),
        ([X, X[:-1]], {}, r"X: the matrices of a family have \[35, 36\] rows"),
        ([X[:-1], X[:-1]], {}, "inconsistent numbers of samples"),
    ],
    ids=["no family", "features", "resplit", "precomputed", "no times", "four axes", "rows", "rows of y"],
)
def test_bad_families_are_refused(given, options, message):
    options = dict(options)
    with pytest.raises(ValueError, match=message):
        permutation_test_score(LSSVC(options.pop("kernel", "rbf")), given, THREE, cv=3, **options)
