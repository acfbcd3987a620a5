"""penalty="coef" beside the same basis functions as features of a kernel: every public function gives the same numbers.

Of the latter, rows that are left out leave the functions as they are, and so other tests compare it with plain refits.
"""

import numpy as np
import pytest
from sklearn import model_selection as skl
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import foldless.model_selection as fl
from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless.kernels import RBF, BasisFunctions
from foldless.model_selection import Optimizer
from support.cross_validation import BINARY, GROUPS, LABELS, VALUES, WEIGHT, N, X
from support.refits import held_out_rows, with_fixed_functions
from support.tolerances import assert_close

ZEROS = np.where(np.arange(N) % 9 == 4, 0.0, WEIGHT)
KINDS = {
    "classes": (LSSVC, LABELS),
    "discriminant": (KernelFisherDiscriminant, BINARY),
    "values": (LSSVR, VALUES),
}
every_kind = pytest.mark.parametrize(("kind", "y"), KINDS.values(), ids=KINDS)


def pair_of(kind, rows=X):
    """The penalty of coefficients, and its functions given as a kernel."""
    return kind(gamma=0.1, alpha=0.3, penalty="coef"), kind(BasisFunctions(RBF(0.1), rows), alpha=0.3)


def assert_same(one, two):
    """Equal numbers; entries that are no numbers are equal as they are."""
    one, two = np.asarray(one), np.asarray(two)
    if one.dtype.kind == "f":
        assert_close(one, two, rtol=1e-10)
    else:
        np.testing.assert_array_equal(one, two)


@every_kind
def test_fits_and_leave_one_out(kind, y):
    for weight in (None, ZEROS):
        models = pair_of(kind, X if weight is None else X[weight > 0])
        one, two = (model.fit(X, y, sample_weight=weight) for model in models)
        for method in ("predict", "decision_function"):
            if hasattr(one, method):
                assert_same(getattr(one, method)(X + 0.1), getattr(two, method)(X + 0.1))
                assert_same(getattr(one, f"loo_{method}")(), getattr(two, f"loo_{method}")())
        assert one.dual_coef_.shape[0] == np.count_nonzero(np.ones(N) if weight is None else weight)


@every_kind
@pytest.mark.parametrize("cv", [skl.LeaveOneOut(), skl.KFold(4), skl.ShuffleSplit(5, random_state=0)], ids=str)
def test_cross_validation(kind, y, cv):
    scoring = "neg_mean_squared_error" if kind is LSSVR else "accuracy"
    options = {"cv": cv, "scoring": scoring, "return_train_score": True, "params": {"sample_weight": WEIGHT}}
    one, two = (fl.cross_validate(model, X, y, **options) for model in pair_of(kind))
    assert one.path.kind == two.path.kind != "refit"
    for name in ("test_score", "train_score"):
        assert_same(one[name], two[name])
    if not isinstance(cv, skl.ShuffleSplit):
        one, two = (fl.cross_val_predict(model, X, y, cv=cv) for model in pair_of(kind))
        assert_same(one, two)


@every_kind
def test_searches_and_nested_cross_validation(kind, y):
    grid = {"alpha": [0.01, 0.3, 10.0]}
    one, two = (FoldlessSearchCV(model, grid) for model in pair_of(kind))
    for inner in (None, 3):
        for search in (one, two):
            search.set_params(cv=inner).fit(X, y)
        assert one.best_params_ == two.best_params_
        assert_same(one.cv_results_["mean_test_criterion"], two.cv_results_["mean_test_criterion"])
        nested = [fl.nested_cross_validate(search, X, y, cv=skl.KFold(3)) for search in (one, two)]
        assert nested[0].best_params == nested[1].best_params
        for name in ("test_score", "inner_criterion", "outer_criterion"):
            assert_same(getattr(nested[0], name), getattr(nested[1], name))


@every_kind
def test_widths_found_by_gradients(kind, y):
    """The width of the functions is that of the kernel: it is searched with both."""
    one, two = pair_of(kind)
    one = FoldlessSearchCV(one, method=Optimizer("gradient", max_iter=4), random_state=0).fit(X, y)
    two = FoldlessSearchCV(two, method=Optimizer("gradient", max_iter=4), random_state=0).fit(X, y)
    found = [list(each.best_params_.values()) for each in (one, two)]
    assert_close(np.sort(found[0]), np.sort(found[1]), rtol=1e-6)


@every_kind
@pytest.mark.parametrize(
    "options",
    [{}, {"confounds": WEIGHT[:, None]}, {"null": GROUPS % 2}],
    ids=["plain", "confounds", "strata"],
)
def test_permutation_tests(kind, y, options):
    options = {"cv": skl.KFold(4), "n_permutations": 5, "random_state": 0, **options}
    one, two = (fl.permutation_test_score(model, X, y, **options) for model in pair_of(kind))
    assert one.path.kind == "one fit"
    assert_same(one.score, two.score)
    assert_same(one.permutation_scores, two.permutation_scores)


def test_permutation_tests_of_searches():
    options = {"cv": skl.KFold(3), "n_permutations": 4, "random_state": 0}
    searches = [FoldlessSearchCV(model, {"alpha": [0.01, 0.3, 10.0]}) for model in pair_of(LSSVC)]
    one, two = (fl.permutation_test_score(search, X, LABELS, **options) for search in searches)
    assert one.best_params == two.best_params
    assert_same(np.r_[one.score, one.permutation_scores], np.r_[two.score, two.permutation_scores])


def test_pairs_and_intervals_of_scores():
    models = pair_of(LSSVC)
    one, two = (fl.leave_pair_out_auc(model, X, BINARY) for model in models)
    assert one == pytest.approx(two, rel=1e-12)
    options = {"cv": 4, "n_repeats": 2, "random_state": 0}
    one, two = (fl.score_interval(model, X, BINARY, **options) for model in models)
    assert_same([*one, one.standard_error], [*two, two.standard_error])
    one, two = (fl.compare(model, LSSVC(), X, BINARY, **options) for model in models)
    assert_same(one.to_frame().select_dtypes(float), two.to_frame().select_dtypes(float))


@every_kind
def test_updates(kind, y):
    one, two = (model.fit(X, y) for model in pair_of(kind))
    method = "predict" if kind is LSSVR else "decision_function"
    for model in (one, two):
        model.forget(np.arange(5)).partial_fit(X[:2] + 0.1, y[:2])
    assert_same(getattr(one, method)(X), getattr(two, method)(X))
    assert_same(getattr(one, f"loo_{method}")(), getattr(two, f"loo_{method}")())


# -- what decides which functions there are ----------------------------------------------------------------------------


@every_kind
def test_functions_behind_fitted_steps_are_those_of_each_training_part(kind, y):
    pipeline = make_pipeline(StandardScaler(), kind(gamma=0.1, penalty="coef"))
    method = "predict" if kind is LSSVR else "decision_function"
    splits = list(skl.KFold(4).split(X))
    ours = fl.cross_val_predict(pipeline, X, y, cv=splits, method=method)
    assert_close(ours, held_out_rows(pipeline, X, y, splits, method))


def test_functions_are_of_scaled_rows_of_positive_weight():
    model = LSSVR(gamma=0.1, penalty="coef", standardize=True).fit(X, VALUES, sample_weight=ZEROS)
    rows = X[ZEROS > 0]
    mean, scale = np.average(X, 0, ZEROS), np.sqrt(np.average((X - np.average(X, 0, ZEROS)) ** 2, 0, ZEROS))
    twin = LSSVR(BasisFunctions(RBF(0.1), (rows - mean) / scale)).fit((X - mean) / scale, VALUES, sample_weight=ZEROS)
    assert_same(model.loo_predict(), twin.loo_predict())
    assert_same(model.dual_coef_, twin.dual_coef_)


@every_kind
def test_refits_of_given_functions_keep_them(kind, y):
    """What the tests that compare with plain refits rest upon."""
    model = pair_of(kind)[0]
    fixed = with_fixed_functions(model, X, ZEROS)
    assert fixed.get_params()["penalty"] == "rkhs"
    again = fixed.fit(X[:20], y[:20])
    assert again.kernel_.n_features(X[:20]) == np.count_nonzero(ZEROS)


@every_kind
def test_precomputed_kernels_are_told_what_to_write(kind, y):
    K = RBF(0.1).gram(X)
    message = "use kernel='linear', penalty='rkhs' and the Gram matrix as X"
    with pytest.raises(ValueError, match=message):
        kind("precomputed", penalty="coef").fit(K, y)
    with pytest.raises(ValueError, match=message):
        fl.cross_val_predict(kind("precomputed", penalty="coef"), K, y)
    same = kind("linear", alpha=0.3).fit(K, y)
    expected = kind(gamma=0.1, alpha=0.3, penalty="coef").fit(X, y)
    assert_close(
        same.loo_predict() if kind is LSSVR else same.loo_decision_function(),
        expected.loo_predict() if kind is LSSVR else expected.loo_decision_function(),
    )


def test_a_linear_kernel_has_coefficients_of_functions_and_none_of_features():
    model = LSSVR("linear", penalty="coef").fit(X, VALUES)
    with pytest.raises(AttributeError, match="coef_ exists for kernel='linear' only, not for penalty='coef'"):
        model.coef_  # noqa: B018
    assert_close(X @ X.T @ model.dual_coef_ + model.intercept_, model.predict(X))
    with pytest.raises(ValueError, match="penalty='rkhs'"):
        fl.permutation_test_pattern(LSSVR("linear", penalty="coef"), X, VALUES)
