"""Confounds in cross-validation, intervals and pairs against loops of refits."""

import pickle
import warnings

import numpy as np
import pytest
import sklearn
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.feature_selection import SelectKBest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

import foldless.model_selection as fl
from foldless import LSSVC, LSSVR, KernelFisherDiscriminant, kernels, reference
from foldless._engine.readout.codings import indicator
from support.cases import SPLITTERS, splitters
from support.confounds import (
    BINARY,
    C_NEW,
    CODES,
    LABELS,
    NEW,
    SEVERAL,
    VALUES,
    WEIGHT,
    C,
    N,
    X,
    every_estimator,
    method_of,
    refit_with_confounds,
)
from support.refits import held_out, jackknife_plus, leave_one_out, scores_of_labelings, share_of_pairs_in_order
from support.tolerances import assert_close

GROUPS = np.arange(N) % 6

weighted = pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])


@pytest.mark.many_cases
@every_estimator
@weighted
def test_folds_with_confounds_equal_refits(estimator, y, weight, strategy):
    """Stratified folds, and random splits whose test rows repeat and leave gaps."""
    params = None if weight is None else {"sample_weight": weight}
    method = method_of(estimator)
    options = {"params": params, "confounds": C}
    cv = skl.StratifiedKFold(4) if y.dtype.kind == "U" else skl.KFold(4)
    ours = fl.cross_val_predict(estimator, X, y, cv=cv, method=method, **options)
    for (_, te), expected in zip(
        cv.split(X, y),
        held_out(estimator, X, y, cv.split(X, y), method, sample_weight=weight, confounds=C),
        strict=True,
    ):
        assert_close(ours[te], expected, scale=np.abs(ours).max())
    cv = skl.ShuffleSplit(3, train_size=0.6, test_size=0.3, random_state=0)
    result = fl.cross_validate(estimator, X, y, cv=cv, return_estimator=True, return_train_score=True, **options)
    for k, (tr, te) in enumerate(cv.split(X, y)):
        model = refit_with_confounds(estimator, y, tr, weight=weight)
        assert_close(result["test_score"][k], model.score(X[te], y[te], confounds=C[te]))
        assert_close(result["train_score"][k], model.score(X[tr], y[tr], confounds=C[tr]))
        given_back = result["estimator"][k]
        for inputs in ((NEW,), (NEW, C_NEW)):
            assert_close(getattr(given_back, method)(*inputs), getattr(model, method)(*inputs))
        assert_close(given_back.confound_coef_, model.confound_coef_)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_returned_estimators_keep_all_basis_functions_and_repeat_held_out_scores(kernel):
    estimator = KernelFisherDiscriminant(kernel, gamma=0.1, penalty="coef")
    cv = skl.StratifiedKFold(4)
    decision = fl.cross_val_predict(estimator, X, LABELS, cv=cv, method="decision_function", confounds=C)
    fitted = fl.cross_validate(estimator, X, LABELS, cv=cv, return_estimator=True, confounds=C)["estimator"]
    for model, (tr, te) in zip(fitted, cv.split(X, LABELS), strict=True):
        assert_close(model.decision_function(X[te], confounds=C[te]), decision[te])
        K = kernels.resolve(kernel, X, gamma=0.1).gram(X)
        options = {"Q": np.hstack([np.ones((N, 1)), C]), "penalty": "coef", "n_confounds": 2}
        fits = reference.heldout_fits(K, indicator(CODES, 3, float), tr, te, 1.0, **options)
        assert_close(model.transform(X[te], confounds=C[te]), fits @ model._scalings)


@pytest.mark.many_cases
@every_estimator
@weighted
def test_loo_with_confounds_equals_refits(estimator, y, weight):
    model = refit_with_confounds(estimator, y, np.arange(N), weight=weight)
    expected = np.concatenate(
        held_out(estimator, X, y, leave_one_out(N), method_of(estimator), sample_weight=weight, confounds=C)
    )
    ours = model.loo_predict() if isinstance(estimator, LSSVR) else model.loo_decision_function()
    assert_close(ours, expected)
    params = None if weight is None else {"sample_weight": weight}
    options = {"cv": skl.LeaveOneOut(), "method": method_of(estimator), "params": params, "confounds": C}
    assert_close(fl.cross_val_predict(estimator, X, y, **options), expected)
    again = pickle.loads(pickle.dumps(model))  # the algebra is made anew, with the confounds
    ours = again.loo_predict() if isinstance(estimator, LSSVR) else again.loo_decision_function()
    assert_close(ours, expected)


@pytest.mark.many_cases
@pytest.mark.parametrize("splitter", SPLITTERS)
@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        pytest.param(KernelFisherDiscriminant(gamma=0.1, alpha=0.3), LABELS, id="KFDA"),
        pytest.param(LSSVC("linear", fit_intercept=False), BINARY, id="LSSVC"),
        pytest.param(LSSVR(gamma=0.1, penalty="coef"), VALUES, id="LSSVR"),
    ],
)
def test_every_splitter_with_confounds_equals_refits(estimator, y, splitter):
    cv = splitters(N, CODES)[splitter]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored")
        splits = list(cv.split(X, CODES, GROUPS))[:40]
    splits = [(tr, te) for tr, te in splits if y.dtype.kind == "f" or len(np.unique(y[tr])) == len(np.unique(y))]
    scoring = "neg_mean_squared_error" if y.dtype.kind == "f" else "accuracy"
    ours = fl.cross_val_score(estimator, X, y, cv=splits, scoring=scoring, confounds=C)
    options = {"scoring": scoring, "confounds": C}
    each = [scores_of_labelings(estimator, X, y, [np.arange(N)], splits=[split], **options)[0] for split in splits]
    assert_close(ours, np.array(each))


@pytest.mark.many_cases
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        pytest.param(KernelFisherDiscriminant(gamma=0.1, threshold="loo"), BINARY, id="KFDA 2 classes"),
        pytest.param(KernelFisherDiscriminant(gamma=0.1), LABELS, id="KFDA 3 classes"),
        pytest.param(LSSVC(gamma=0.1, penalty="coef"), BINARY, id="LSSVC 2 classes"),
    ],
)
def test_probabilities_with_confounds_equal_refits(estimator, y, calibration, strategy):
    estimator = clone(estimator).set_params(calibration=calibration)
    cv = skl.StratifiedKFold(3)
    ours = fl.cross_val_predict(estimator, X, y, cv=cv, method="predict_proba", confounds=C)
    refits = held_out(estimator, X, y, cv.split(X, y), "predict_proba", confounds=C)
    for (_, te), expected in zip(cv.split(X, y), refits, strict=True):
        np.testing.assert_allclose(ours[te], expected, atol=1e-7)
    few = np.array([0, 7, 20])
    rest = [np.delete(np.arange(N), i) for i in few]
    expected = np.concatenate(
        held_out(estimator, X, y, zip(rest, few[:, None], strict=True), "predict_proba", confounds=C)
    )
    ours = refit_with_confounds(estimator, y, np.arange(N)).loo_predict_proba()
    np.testing.assert_allclose(ours[few], expected, atol=1e-7)


@pytest.mark.parametrize("in_score", [False, True])
@pytest.mark.parametrize(
    ("estimator", "y", "kernel", "intercept"),
    [
        pytest.param(Ridge(alpha=0.5), VALUES, "linear", 1, id="Ridge"),
        pytest.param(Ridge(alpha=0.5, fit_intercept=False), SEVERAL, "linear", 0, id="Ridge, two outputs"),
        pytest.param(RidgeClassifier(alpha=0.5), LABELS, "linear", 1, id="RidgeClassifier"),
        pytest.param(KernelRidge(alpha=0.5, kernel="rbf", gamma=0.1), VALUES, "rbf", 0, id="KernelRidge"),
    ],
)
def test_estimators_of_scikit_learn_take_confounds_here(estimator, y, kernel, intercept, in_score):
    K = kernels.resolve(kernel, X, gamma=0.1).gram(X)
    Q = np.hstack([np.ones((N, intercept)), C])
    targets = 2.0 * indicator(CODES, 3, float) - 1 if y is LABELS else y.reshape(N, -1)
    cv = skl.KFold(4)
    method = "decision_function" if y is LABELS else "predict"
    options = {"confounds": fl.Confounds(C, in_score=in_score)}
    ours = fl.cross_val_predict(estimator, X, y, cv=cv, method=method, **options).reshape(N, -1)
    for tr, te in cv.split(X):
        left_out = {"Q": Q, "w": WEIGHT, "n_confounds": 0 if in_score else 2}
        assert_close(ours[te], reference.heldout_fits(K, targets, tr, te, 0.5, **{**left_out, "w": None}))
    weighted = fl.cross_val_predict(estimator, X, y, cv=cv, method=method, params={"sample_weight": WEIGHT}, **options)
    assert_close(weighted.reshape(N, -1)[te], reference.heldout_fits(K, targets, tr, te, 0.5, **left_out))
    many = skl.KFold(16)
    assert fl.cross_validate(estimator, X, y, cv=many, **options)["path"].kind == "one fit"
    assert fl.explain(estimator, X, y, cv=many, **options).kind == "one fit"


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("confounds", [None, C_NEW], ids=["left out", "added"])
def test_intervals_with_confounds_equal_refits(penalty, confounds):
    model = LSSVR(gamma=0.1, penalty=penalty).fit(X, VALUES, confounds=C)
    (expected,) = jackknife_plus(model, X, VALUES, NEW, [0.8], new_given={"confounds": confounds}, confounds=C)
    assert_close(model.predict_interval(NEW, 0.8, confounds=confounds), expected)


def test_leave_pair_out_auc_with_confounds_equals_refits():
    estimator = KernelFisherDiscriminant(gamma=0.1, threshold="centroid")
    rows = np.arange(16, N)
    y = BINARY[rows]
    ours = fl.leave_pair_out_auc(estimator, X[rows], y, confounds=C[rows])
    assert ours == pytest.approx(share_of_pairs_in_order(estimator, X[rows], y, confounds=C[rows]))
    assert ours == fl.leave_pair_out_auc(estimator, X[rows], y, params={"confounds": C[rows]})
    assert ours != pytest.approx(fl.leave_pair_out_auc(estimator, X[rows], y))


# -- what confounds mean -----------------------------------------------------------------------------------------------


def test_features_that_know_only_the_confound_decode_as_chance_does():
    """Features that are the confound and noise: at chance, and no further from it than chance; far above without."""
    accuracy = {"without": [], "with": [], "kept": []}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        c = rng.normal(size=150)
        y = (c + 0.7 * rng.normal(size=150) > 0).astype(int)
        features = c[:, None] + rng.normal(size=(150, 8))
        model = LSSVC("linear")
        accuracy["without"].append(fl.cross_val_score(model, features, y).mean())
        accuracy["with"].append(fl.cross_val_score(model, features, y, confounds=c).mean())
        options = {"confounds": fl.Confounds(c, in_score=True)}
        accuracy["kept"].append(fl.cross_val_score(model, features, y, **options).mean())
    chance = np.sqrt(0.25 / 150)
    assert abs(np.mean(accuracy["with"]) - 0.5) < 3 * chance / np.sqrt(40)
    assert np.std(accuracy["with"]) < 1.4 * chance
    assert np.min(accuracy["without"]) > 0.6
    assert np.mean(accuracy["kept"]) >= np.mean(accuracy["without"])


def test_signal_beyond_the_confounds_is_decoded():
    rng = np.random.default_rng(0)
    c = rng.normal(size=150)
    y = (c + 0.7 * rng.normal(size=150) > 0).astype(int)
    features = c[:, None] * (np.arange(8) > 3) + rng.normal(size=(150, 8))
    features[:, 0] += 2 * y
    assert fl.cross_val_score(LSSVC("linear"), features, y, confounds=c).mean() > 0.65


# -- other ways: pipelines, refits, routing ----------------------------------------------------------------------------


@pytest.mark.parametrize("step", [StandardScaler(), SelectKBest(k=2)], ids=["scaler", "a step that sees y"])
def test_confounds_behind_steps_of_a_pipeline_equal_refits(step):
    pipe = make_pipeline(step, LSSVC(gamma=0.1))
    cv = skl.StratifiedKFold(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.RefitWarning)
        ours = fl.cross_val_predict(pipe, X, BINARY, cv=cv, method="decision_function", confounds=C)
        kind = fl.explain(pipe, X, BINARY, cv=cv, confounds=C).kind
    assert kind == ("one P per fold" if isinstance(step, StandardScaler) else "refit")
    for tr, te in cv.split(X, BINARY):
        first = clone(step).fit(X[tr], BINARY[tr])
        model = LSSVC(gamma=0.1).fit(first.transform(X[tr]), BINARY[tr], confounds=C[tr])
        assert_close(ours[te], model.decision_function(first.transform(X[te]), confounds=C[te]))


def test_pipeline_of_one_step_with_confounds_takes_the_closed_form():
    pipe = make_pipeline(LSSVC(gamma=0.1))
    options = {"cv": 4, "method": "decision_function"}
    expected = fl.cross_val_predict(LSSVC(gamma=0.1), X, BINARY, confounds=C, **options)
    assert fl.explain(pipe, X, BINARY, cv=10, confounds=C).kind == "one fit"
    np.testing.assert_array_equal(fl.cross_val_predict(pipe, X, BINARY, confounds=C, **options), expected)
    params = {"lssvc__confounds": C}
    np.testing.assert_array_equal(fl.cross_val_predict(pipe, X, BINARY, params=params, **options), expected)
    weighted = {"lssvc__sample_weight": WEIGHT}
    theirs = fl.cross_val_predict(LSSVC(gamma=0.1), X, BINARY, params={"sample_weight": WEIGHT}, confounds=C, **options)
    np.testing.assert_array_equal(
        fl.cross_val_predict(pipe, X, BINARY, params={**weighted, **params}, **options), theirs
    )


def test_confounds_as_a_parameter_of_fit_are_those_of_the_argument():
    expected = fl.cross_val_score(LSSVC(gamma=0.1), X, BINARY, confounds=C)
    params = {"confounds": C}
    assert fl.explain(LSSVC(gamma=0.1), X, BINARY, cv=10, params=params).kind == "one fit"
    np.testing.assert_array_equal(fl.cross_val_score(LSSVC(gamma=0.1), X, BINARY, params=params), expected)
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = LSSVC(gamma=0.1).set_fit_request(confounds=True).set_score_request(confounds=True)
        np.testing.assert_array_equal(fl.cross_val_score(estimator, X, BINARY, params=params), expected)
        np.testing.assert_allclose(skl.cross_val_score(estimator, X, BINARY, params=params), expected)
        pipe = make_pipeline(StandardScaler(), estimator)
        ours = fl.cross_val_score(pipe, X, BINARY, confounds=C)
        if parse_version(sklearn.__version__) >= parse_version("1.9"):  # older pipelines do not hand them to score
            np.testing.assert_allclose(ours, skl.cross_val_score(pipe, X, BINARY, params=params))


def test_a_training_part_without_a_class_is_refitted_with_the_confounds():
    y = LABELS.copy()
    y[1:] = np.where(y[1:] == "cat", "ant", y[1:])
    y[0] = "cat"  # one row: its fold empties the class
    with pytest.warns(fl.RefitWarning, match="lacks a class"):
        ours = fl.cross_val_predict(LSSVC(gamma=0.1), X, y, cv=skl.KFold(4), confounds=C)
    for tr, te in skl.KFold(4).split(X):
        model = refit_with_confounds(LSSVC(gamma=0.1), y, tr)
        np.testing.assert_array_equal(ours[te], model.predict(X[te], confounds=C[te]))
    with pytest.raises(ValueError, match="confounds: RidgeClassifier would be refitted"):
        fl.cross_val_predict(RidgeClassifier(), X, y, cv=skl.KFold(4), confounds=C)


def test_a_training_part_that_repeats_rows_is_refitted_with_the_confounds():
    splits = [(np.r_[:20, :5], np.arange(20, N)), (np.arange(12, N), np.arange(12))]
    with pytest.warns(fl.RefitWarning, match="repeats rows"):
        ours = fl.cross_val_score(LSSVR(gamma=0.1), X, VALUES, cv=splits, confounds=C)
    models = [refit_with_confounds(LSSVR(gamma=0.1), VALUES, tr) for tr, _ in splits]
    each = zip(models, splits, strict=True)
    assert_close(ours, [model.score(X[te], VALUES[te], confounds=C[te]) for model, (_, te) in each])


def test_scorers_that_are_functions_are_refused_with_confounds():
    """They would ask fitted estimators for X alone, and get predictions with the confounds at their mean."""
    for estimator in (LSSVC(gamma=0.1), make_pipeline(StandardScaler(), LSSVC(gamma=0.1))):
        for scoring in (lambda model, X, y: model.score(X, y), {"mine": lambda model, X, y: model.score(X, y)}):
            with pytest.raises(ValueError, match="confounds: a scorer that is a function"):
                fl.cross_validate(estimator, X, BINARY, scoring=scoring, confounds=C)
    by_name = fl.cross_val_score(LSSVC(gamma=0.1), X, BINARY, cv=4, confounds=C)
    made = fl.cross_val_score(LSSVC(gamma=0.1), X, BINARY, cv=4, scoring=make_scorer(accuracy_score), confounds=C)
    np.testing.assert_array_equal(made, by_name)
