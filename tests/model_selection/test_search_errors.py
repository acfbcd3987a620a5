"""Searches that cannot be done are refused with a way out, and lose nothing."""

import numpy as np
import pytest
from sklearn import model_selection as skl
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless._engine.tuning.criteria import CRITERIA
from foldless._engine.tuning.selection import Evaluation, Selection, best_place
from foldless.kernels import RBF
from foldless.model_selection import Optimizer, nested_cross_validate
from support.searches import ALPHAS, BINARY, CODES, KFDA, LABELS, RBF_GRID, VALUES, WEIGHT, D, N, X, losses_of
from support.tolerances import assert_close


def no_slope(f, t, w):
    return w @ np.abs(t - f)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "accuracy"}, r"criterion='accuracy' is unknown; use one of .*'press'.* or a callable"),
        ({"criterion": None}, "criterion=None is unknown"),
        ({"method": "bayes"}, r"method='bayes' is unknown; use one of 'auto', 'grid', 'simplex', 'gradient'"),
        ({"share": "some"}, r"share='some' is unknown; use one of 'all', 'kernel', 'none'"),
        ({"method": Optimizer(prior="flat")}, r"prior='flat' is unknown; use one of .*None, 'bayes'"),
        ({"criterion_weight": "equal"}, r"criterion_weight='equal' is unknown; use one of 'auto', None, 'balanced', "),
        ({"method": "gradient", "criterion": "error"}, r"criterion='error' has no derivative.*'smooth_error'.*simplex"),
        ({"method": "gradient", "criterion": "auc"}, r"criterion='auc' has no derivative"),
        ({"method": "gradient", "criterion": "multiclass_error"}, r"criterion='multiclass_error' has no derivative"),
        ({"method": "gradient", "criterion": no_slope}, r"criterion.*no derivative.*return \(loss.*method='simplex'"),
        ({"share": "none", "criterion": "multiclass_error"}, r"criterion='multiclass_error' .*share='all'"),
        ({"method": Optimizer(feature_scaling=True)}, r"feature_scaling needs method='gradient'"),
        ({"method": Optimizer(feature_scaling=[0, 0, 1, 1])}, r"feature_scaling needs method='gradient'"),
        ({"method": Optimizer(prior="bayes"), "criterion": "hinge"}, r"prior='bayes' .*criterion='hinge'"),
        ({"method": Optimizer(n_starts=0)}, r"n_starts=0 must be an integer >= 1"),
        ({"method": Optimizer(n_starts=1.5)}, r"n_starts=1.5 must be an integer >= 1"),
        ({"method": Optimizer(max_iter=0)}, r"max_iter=0 must be an integer >= 1"),
        (
            {"method": Optimizer(feature_scaling="yes")},
            r"feature_scaling='yes' must be True, False or a group for each feature",
        ),
        ({"param_grid": {"alpha": [1.0, -1.0]}}, r"alpha=-1.0 must be a finite number > 0"),
        ({"param_grid": {"alpha": [np.nan]}}, r"alpha=nan must be a finite number > 0"),
        ({"param_grid": {"alpha": ["1"]}}, r"alpha='1' must be a finite number > 0"),
        ({"param_grid": {"alpha": [-1.0]}, "method": "gradient"}, r"alpha=-1.0 must be a finite number > 0"),
        ({"param_grid": {"C": [1.0]}}, r"Invalid parameter 'C' for estimator LSSVC.*Did you mean alpha = 1 / C\?"),
        ({"param_grid": {"lssvc__alpha": [1.0]}}, r"Invalid parameter 'lssvc' .*Did you mean alpha\?"),
        ({"param_grid": {"kernel__gamma": [1.0]}}, r"param_grid: \['kernel__gamma'\] cannot be set.* mean gamma\?"),
        ({"param_grid": {"gamma": [-1.0]}}, "gamma=-1.0 must be positive"),
        (
            {"estimator": LSSVC(RBF("scale")), "param_grid": {"gamma": [0.1], "alpha": [1.0]}},
            r"param_grid: gamma is ignored, since kernel=RBF\(gamma='scale'\) has .*Use their names: kernel__gamma\.",
        ),
        ({"param_grid": []}, "param_grid"),
        ({"param_grid": {"alpha": []}}, "alpha"),
        ({"method": Optimizer("gradient", bounds={"gama": (1, 2)})}, "bounds names 'gama'; .*gamma"),
        (
            {"method": Optimizer("gradient", bounds={"alpha": (2, 1)})},
            r"bounds\['alpha'\]=\(2, 1\) must be .*low <= high",
        ),
        ({"method": Optimizer("gradient", bounds={"alpha": (0, 1)})}, r"bounds\['alpha'\]=\(0, 1\) must be .*0 < low"),
        ({"method": Optimizer("gradient", bounds={"alpha": 3})}, r"bounds\['alpha'\]=3 must be two finite numbers"),
        (
            {"method": Optimizer("gradient", bounds={"alpha": ("a", "b")})},
            r"bounds\['alpha'\]=\('a', 'b'\) must be two finite",
        ),
        ({"method": Optimizer("gradient", bounds=[(1, 2)])}, r"bounds=\[\(1, 2\)\] must be a dict"),
        (
            {"method": Optimizer("gradient", feature_scaling=[0, 1])},
            r"feature_scaling has shape \(2,\); X has 4 features",
        ),
        (
            {"method": Optimizer("gradient", feature_scaling=np.eye(4))},
            r"feature_scaling has shape \(4, 4\); X has 4 features",
        ),
        ({"cv": [(np.arange(20), np.arange(15, 25))]}, r"cv: split 0 tests rows that it trains on"),
        (
            {"cv": [(np.arange(20), np.arange(20, 30)), (np.arange(9), [8])]},
            r"cv: split 1 tests rows that it trains on",
        ),
        ({"cv": [(np.arange(30), [])]}, r"cv: no split leaves out a row"),
        ({"cv": []}, r"cv: no split leaves out a row"),
        ({"cv": skl.GroupKFold(3)}, "groups"),
        ({"cv": 1}, "n_splits"),
        ({"estimator": LSSVC(gamma=[1.0] * D), "method": "gradient"}, r"gamma .*each feature.*feature_scaling=True"),
        (
            {"estimator": LSSVC("linear"), "method": Optimizer("gradient", feature_scaling=True)},
            r"feature_scaling needs .*kernel='rbf', 'poly' or 'laplacian'; LSSVC with Linear\(\)",
        ),
        ({"estimator": SVC()}, r"estimator=SVC is not .*\(LSSVC, .*make_pipeline.*GridSearchCV"),
        ({"estimator": SVC(), "param_grid": {"C": [1.0]}}, r"estimator=SVC is not .*\(LSSVC, .*make_pipeline"),
        ({"estimator": SVC(), "method": "gradient"}, r"estimator=SVC is not"),
        (
            {"estimator": make_pipeline(StandardScaler(), SVC()), "param_grid": {"svc__C": [1.0]}},
            r"estimator: the last step 'svc', SVC, is not .*make_pipeline",
        ),
        ({"estimator": LSSVC}, "estimator"),
        ({"estimator": RidgeClassifier(positive=True, solver="lbfgs")}, r"positive=True.*GridSearchCV"),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, dict) else "",
)
def test_bad_arguments_are_named_with_a_way_out(options, message):
    options = {"estimator": LSSVC(), "param_grid": {"alpha": [1.0]}, **options}
    with pytest.raises((ValueError, TypeError), match=message):
        FoldlessSearchCV(**options).fit(X, LABELS)


@pytest.mark.parametrize(
    "options",
    [
        *[{"criterion": name} for name, each in CRITERIA.items() if each.labels],
        {"criterion_weight": "balanced"},
        {"share": "none"},
    ],
    ids=str,
)
@pytest.mark.parametrize("estimator", [LSSVR(), Ridge(), KernelRidge()], ids=str)
def test_what_needs_classes_is_refused_for_regressors(estimator, options):
    name, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=rf"{type(estimator).__name__} has no classes.*{name}='{value}'.*'press'"):
        FoldlessSearchCV(estimator, {"alpha": [1.0]}, **options).fit(X, VALUES)


@pytest.mark.parametrize("estimator", [Ridge(), KernelRidge(kernel="rbf"), LSSVR("cosine"), LSSVR("boolean")], ids=str)
def test_feature_scaling_needs_a_kernel_with_scales(estimator):
    with pytest.raises(ValueError, match=rf"feature_scaling needs .*'rbf'.*{type(estimator).__name__}"):
        FoldlessSearchCV(estimator, method=Optimizer("gradient", feature_scaling=True)).fit(X, VALUES)


@pytest.mark.parametrize("estimator", [LSSVC(), KFDA(), RidgeClassifier()], ids=str)
@pytest.mark.parametrize("method", ["grid", "gradient"])
def test_data_that_cannot_be_learned_from_is_refused(estimator, method):
    search = FoldlessSearchCV(estimator, {"alpha": [1.0]}, method=method)
    with pytest.raises(ValueError, match="X contains NaN"):
        search.fit(np.where(np.arange(D) == 1, np.nan, X), LABELS)
    with pytest.raises(ValueError, match=r"one class|at least two classes|number of classes"):
        search.fit(X, np.zeros(N, int))
    with pytest.raises(ValueError, match="Unknown label type"):
        search.fit(X, VALUES)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        search.fit(X, LABELS[:-1])
    with pytest.raises(ValueError, match="y"):
        search.fit(X, None)
    for w in (WEIGHT[:-1], -WEIGHT, WEIGHT * np.nan):
        with pytest.raises(ValueError, match=r"[Ss]ample.?weight"):
            search.fit(X, LABELS, sample_weight=w)
    assert not hasattr(search, "cv_results_")


@pytest.mark.parametrize("estimator", [LSSVC(), RidgeClassifier(), LSSVR(), Ridge(), KernelRidge()], ids=str)
@pytest.mark.parametrize("method", ["grid", "gradient"])
def test_weights_that_leave_too_little_are_refused(estimator, method):
    search = FoldlessSearchCV(estimator, {"alpha": [1.0]}, method=method)
    y = LABELS if is_classifier(estimator) else VALUES
    with pytest.raises(
        ValueError, match=r"[Ss]ample.weights? (must contain at least one non-zero|leaves fewer than two)"
    ):
        search.fit(X, y, sample_weight=np.zeros(N))
    with pytest.raises(ValueError, match="sample_weight leaves fewer than two rows"):
        search.fit(X, y, sample_weight=(np.arange(N) == 3).astype(float))
    if is_classifier(estimator):
        with pytest.raises(ValueError, match="sample_weight leaves one class only"):
            search.fit(X, y, sample_weight=(CODES == 1).astype(float))


def test_one_number_as_a_weight_weighs_all_rows_the_same():
    for estimator, y in ((LSSVC(), LABELS), (Ridge(), VALUES)):
        for weight in (None, "sample_weight"):
            search = FoldlessSearchCV(estimator, {"alpha": ALPHAS}, criterion_weight=weight)
            same = clone(search).fit(X, y, sample_weight=np.full(N, 2.0))
            assert_close(losses_of(search.fit(X, y, sample_weight=2.0)), losses_of(same))


def broken(f, t, w):
    return np.nan


@pytest.mark.parametrize(
    "change",
    [
        {"criterion": "accuracy"},
        {"criterion": broken},
        {"param_grid": {"alpha": [1.0, -1.0]}},
        {"param_grid": {"gamma": [0.1, -0.1]}},
        {"method": "gradient", "criterion": no_slope},
        {"method": Optimizer("gradient", bounds={"alpha": (2, 1)})},
        {"cv": [(np.arange(20), np.arange(15, 25))]},
        {"estimator": SVC()},
    ],
    ids=lambda change: ", ".join(change),
)
def test_a_fit_that_fails_leaves_an_earlier_one_as_it_was(change):
    search = FoldlessSearchCV(LSSVC(), RBF_GRID).fit(X, LABELS)
    predictions = search.predict(X)
    search.set_params(**change)
    before = vars(search).copy()
    with pytest.raises(ValueError):
        search.fit(X[:, :2], BINARY)
    assert vars(search).keys() == before.keys()
    assert all(vars(search)[name] is before[name] for name in before)
    np.testing.assert_array_equal(search.predict(X), predictions)


@pytest.mark.parametrize("step", ["fit", "search"])
def test_a_refit_that_fails_leaves_an_earlier_fit_as_it_was(step, monkeypatch):
    """Whatever happens after the search is over."""
    search = FoldlessSearchCV(LSSVC(), RBF_GRID).fit(X, LABELS)
    before = vars(search).copy()

    def fail(*args, **kwargs):
        raise RuntimeError("interrupted")

    monkeypatch.setattr(LSSVC, "fit" if step == "fit" else "_make_task", fail)
    with pytest.raises(RuntimeError, match="interrupted"):
        search.fit(X, BINARY)
    assert vars(search) == before
    fresh = FoldlessSearchCV(LSSVC(), RBF_GRID)
    with pytest.raises(RuntimeError, match="interrupted"):
        fresh.fit(X, BINARY)
    with pytest.raises(NotFittedError):
        fresh.predict(X)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda f: (1.0, np.full_like(f, np.nan)), "(?s)criterion=.*finite"),
        (lambda f: (1.0, f[1:]), "(?s)criterion=.*shape"),
        (lambda f: (1.0, 2.0), "(?s)criterion=.*shape"),
        (lambda f: (np.nan, f), "(?s)criterion=.*finite"),
        (lambda f: np.abs(f), "criterion="),
    ],
    ids=["nan slopes", "short", "number", "nan", "vector"],
)
def test_functions_of_users_that_answer_nonsense_are_named(answer, message):
    def mine(f, t, w):
        return answer(f)

    for method in ("grid", "simplex", "gradient"):
        with pytest.raises(ValueError, match=message):
            FoldlessSearchCV(LSSVC(), {"alpha": [1.0]}, method=method, criterion=mine).fit(X, LABELS)


def test_groups_without_a_splitter_that_reads_them_are_warned_about():
    with pytest.warns(UserWarning, match="groups is ignored by cv=None.*GroupKFold"):
        FoldlessSearchCV(LSSVC(), {"alpha": [1.0]}).fit(X, LABELS, groups=np.arange(N) % 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": Optimizer(bounds={"alpha": (0.1, 1.0)})}, "bounds is for method='gradient'"),
        ({"refit": "accuracy"}, "refit='accuracy' names a score; scoring=None holds no such name"),
        ({"criterion": "roc_auc"}, "criterion='roc_auc' is unknown.*is 'auc' here"),
        ({"criterion": lambda f, t: 0.0}, r"criterion=.*must be a function f\(f, t, w\)"),
    ],
    ids=["bounds", "refit", "their name", "two arguments"],
)
def test_arguments_of_other_searches_are_refused_with_a_hint(options, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        FoldlessSearchCV(LSSVC(), {"alpha": [1.0]}, **options).fit(X, LABELS)


def test_balanced_class_weights_of_ridge_classifiers_are_resolved_once_from_all_labels():
    shares = dict(zip(*np.unique(LABELS, return_counts=True), strict=True))
    explicit = {label: N / (len(shares) * count) for label, count in shares.items()}
    grid = {"alpha": [0.1, 1.0, 10.0]}
    balanced = FoldlessSearchCV(RidgeClassifier(class_weight="balanced"), grid).fit(X, LABELS)
    given = FoldlessSearchCV(RidgeClassifier(class_weight=explicit), grid).fit(X, LABELS)
    np.testing.assert_allclose(balanced.cv_results_["mean_test_criterion"], given.cv_results_["mean_test_criterion"])
    np.testing.assert_allclose(balanced.decision_function(X), given.decision_function(X))


def test_the_default_grid_reaches_penalties_that_raw_features_need():
    scales = np.array([1e3, 1.0, 1e-2, 1.0])
    search = FoldlessSearchCV(RidgeClassifier()).fit(X * scales, BINARY)
    finer = FoldlessSearchCV(RidgeClassifier(), {"alpha": np.logspace(-6, 6, 100)}).fit(X * scales, BINARY)
    assert search.best_criterion_ < finer.best_criterion_ * 1.02


@pytest.mark.parametrize("method", ["grid", "gradient"])
def test_splits_whose_training_parts_repeat_rows_are_refused(method):
    folds = list(skl.KFold(3).split(X))
    train, test = folds[1]
    folds[1] = np.append(train, train[4]), test
    search = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]} if method == "grid" else None, cv=folds, method=method)
    with pytest.raises(ValueError, match=r"cv: the training part of split 1 repeats rows; .* larger sample_weight"):
        search.fit(X, LABELS)
    with pytest.raises(ValueError, match=r"cv: the training part of split 1 repeats rows"):
        nested_cross_validate(FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]}), X, LABELS, cv=folds)


@pytest.mark.parametrize("share", ["all", "kernel", "none"])
def test_criterion_that_is_nan_for_all_candidates_is_an_error(share, monkeypatch):
    """As where kernel values overflow; functions of users are told by name before."""
    nothing = Evaluation(np.full((2, 3), np.nan), np.zeros((N, 3)), np.full(2, np.nan))
    monkeypatch.setattr(Selection, "path", lambda *_: nothing)
    search = FoldlessSearchCV(LSSVC(gamma=0.1), {"alpha": [0.1, 1.0]}, share=share)
    with pytest.raises(
        ValueError, match=r"the criterion is no number for any candidate: .*Rescale X .* or raise alpha"
    ):
        search.fit(X, LABELS)


def test_candidate_whose_criterion_is_nan_is_not_chosen():
    assert best_place([np.nan, 3.0, np.nan], [0.1, 1.0, 10.0]) == 1
    assert best_place([2.0, 2.0, np.nan], [0.1, 1.0, 10.0]) == 1
    with pytest.raises(ValueError, match="the criterion is no number for any candidate"):
        best_place([np.nan, np.nan], [0.1, 1.0])


def test_a_search_without_y_is_refused():
    with pytest.raises(ValueError, match="FoldlessSearchCV requires y to be passed"):
        FoldlessSearchCV(LSSVC()).fit(np.eye(4), None)


def test_parameters_of_a_pipeline_without_the_name_of_the_step_are_hinted_at():
    model = make_pipeline(StandardScaler(), LSSVC())
    for name, meant in (
        ("alpha", "lssvc__alpha"),
        ("lssvc__C", "lssvc__alpha = 1 / C"),
        ("svc__gamma", "lssvc__gamma"),
    ):
        with pytest.raises(ValueError, match=rf"'{name}': Did you mean {meant}\?"):
            FoldlessSearchCV(model, {name: [1.0]}).fit(X, LABELS)
