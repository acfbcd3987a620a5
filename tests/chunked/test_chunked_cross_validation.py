"""Cross-validation in chunks equals refits of the same model in memory, whatever the chunks."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.model_selection import PredefinedSplit

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant, chunked
from foldless.kernels import FeatureMap, Nystroem, RandomFeatures
from foldless.model_selection import FoldlessSearchCV
from support.refits import leave_one_out, refit
from support.tolerances import assert_close

N = 211


@dataclass(frozen=True)
class Waves(FeatureMap):
    """cos and sin of some projections: more features than columns, and of another mean than 0."""

    count: int = 7

    def features(self, X):
        A = np.random.default_rng(5).normal(size=(X.shape[1], self.count))
        return np.hstack([np.cos(X @ A), np.sin(X @ A) + 0.5])


def data_of(kind, seed=0, dtype=np.float64):
    """(X, y) of a regression with one or two outputs ("values", "outputs"), or of 2 or 4 classes."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(N, 3)) + 2).astype(dtype)
    if kind == "values":
        return X, np.sin(X[:, 0]) + X[:, 1] + 100 + 0.1 * rng.normal(size=N)
    if kind == "outputs":
        return X, np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]) + 0.1 * rng.normal(size=(N, 2))
    if kind == 2:
        return X, np.where(X[:, 0] + X[:, 1] ** 2 / 4 + rng.normal(size=N) > 3, "yes", "no")
    return X, 3 + (X[:, 0] > 2) + 2 * (X[:, 1] + 0.3 * rng.normal(size=N) > 2)


MODELS = {
    "LSSVR": (LSSVR(Waves(), alpha=0.3), "values"),
    "LSSVR two outputs": (LSSVR(Waves(), alpha=0.3), "outputs"),
    "LSSVR no intercept": (LSSVR(Waves(), alpha=0.3, fit_intercept=False), "values"),
    "LSSVR standardize": (LSSVR("linear", standardize=True), "values"),
    "LSSVC": (LSSVC(Waves(), alpha=0.5), 2),
    "LSSVC linear": (LSSVC("linear", class_weight={"no": 2.0, "yes": 0.5}), 2),
    "LSSVC classes": (LSSVC(Waves(), alpha=0.5), 4),
    "KFDA": (KernelFisherDiscriminant(Waves()), 2),
    "KFDA fisher": (KernelFisherDiscriminant(Waves(), threshold="fisher"), 2),
    "KFDA centroid": (KernelFisherDiscriminant(Waves(), threshold="centroid"), 2),
    "KFDA classes": (KernelFisherDiscriminant(Waves(), alpha=0.2), 4),
    "KFDA class weights": (KernelFisherDiscriminant(Waves(), class_weight={3: 2.0}), 4),
    "KFDA no intercept": (KernelFisherDiscriminant(Waves(), fit_intercept=False, n_components=2), 4),
}


def arrays_for(y, outputs):
    """Empty arrays for held-out predictions."""
    shape = (N, outputs) if outputs > 1 else (N,)
    names = ("decision", "loo_decision") if y.dtype.kind in "iU" else ("prediction", "loo_prediction")
    return {"fold": np.empty(N, int)} | {name: np.empty(shape) for name in names}


def outputs_of(kind):
    return {"outputs": 2, 4: 4}.get(kind, 1)


def answers(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_folds_and_leave_one_out_equal_refits(name, weighted):
    model, kind = MODELS[name]
    X, y = data_of(kind)
    w = np.random.default_rng(1).integers(0, 4, N) / 2 if weighted else None
    found = arrays_for(y, outputs_of(kind))
    data = chunked.arrays(X, y, sample_weight=w, rows=50)
    result = chunked.cross_validate(model, data, cv=4, predictions=found)
    of_folds, of_loo = list(found)[1:]
    if model.standardize:  # scales are those of all rows
        X, model = (X - X.mean(0)) / X.std(0) if w is None else _standardized(X, w), LSSVR("linear")
    for fold in range(4):
        test = found["fold"] == fold
        fitted = refit(model, X, y, ~test, sample_weight=w)
        assert_close(found[of_folds][test], answers(fitted, X[test]))
        assert result.test_score[fold] == pytest.approx(fitted.score(X[test], y[test]), rel=1e-8)
    whole = refit(model, X, y, slice(None), sample_weight=w)
    assert_close(found[of_loo], whole.loo_predict() if of_loo == "loo_prediction" else whole.loo_decision_function())
    assert result.loo_score == pytest.approx(whole.loo_score_, rel=1e-8)
    if name != "LSSVR standardize":
        assert_close(answers(result.estimator, X), answers(whole, X))


def _standardized(X, w):
    mean = np.average(X, 0, w)
    return (X - mean) / np.sqrt(np.average((X - mean) ** 2, 0, w))


APPROXIMATE = {
    "nystroem": LSSVC(Nystroem("rbf", 12, landmarks="uniform")),
    "centres": LSSVC(Nystroem("rbf", 12)),
    "coef": KernelFisherDiscriminant(Nystroem("rbf", 12), penalty="coef"),
    "rff": KernelFisherDiscriminant(RandomFeatures("rbf", 12)),
    "rff regression": LSSVR(RandomFeatures("rbf", 12), standardize=True),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", APPROXIMATE)
def test_approximate_kernels_equal_refits_with_the_same_features(name, dtype):
    model = APPROXIMATE[name]
    kind = "values" if name == "rff regression" else 4
    X, y = data_of(kind, dtype=dtype)
    found = arrays_for(y, outputs_of(kind))
    of_folds, of_loo = list(found)[1:]
    result = chunked.cross_validate(model, chunked.arrays(X, y, rows=60), cv=3, sample=80, predictions=found)
    same = type(model)(result.estimator.kernel_, alpha=1.0)  # features as they were resolved
    X = X.astype(float)
    if model.standardize:
        X = (X - result.estimator._scaler.mean_) / result.estimator._scaler.scale_
    for fold in range(3):
        test = found["fold"] == fold
        assert_close(found[of_folds][test], answers(refit(same, X, y, ~test), X[test]))
    whole = refit(same, X, y, slice(None))
    assert_close(found[of_loo], whole.loo_predict() if of_loo == "loo_prediction" else whole.loo_decision_function())


@pytest.mark.parametrize("name", ["nystroem", "coef", "rff regression"])
def test_landmarks_of_each_training_part_equal_refits(name):
    kernel, penalty = Nystroem("rbf", 12, landmarks="uniform", per_fold=True), APPROXIMATE[name].penalty
    model = APPROXIMATE[name].__class__(kernel, penalty=penalty, standardize=name != "coef")
    kind = "values" if name == "rff regression" else 4
    X, y = data_of(kind)
    found = arrays_for(y, outputs_of(kind))
    data = chunked.arrays(X, y, rows=60)
    result = chunked.cross_validate(model, data, cv=3, alphas=[0.1, 1.0], sample=N, predictions=found)
    model.set_params(**result.best_params)
    of_folds, of_loo = list(found)[1:]
    for fold in range(3):
        test = found["fold"] == fold
        assert_close(found[of_folds][test], answers(refit(model, X, y, ~test), X[test]))
    whole = refit(model.set_params(kernel__per_fold=False), X, y, slice(None))
    assert_close(found[of_loo], whole.loo_predict() if of_loo == "loo_prediction" else whole.loo_decision_function())


@pytest.mark.parametrize("name", ["LSSVR two outputs", "LSSVC", "KFDA classes"])
def test_chunks_of_any_sizes_and_precisions_give_the_same(name, monkeypatch):
    model, kind = MODELS[name]
    X, y = data_of(kind, dtype=np.float32)
    rng = np.random.default_rng(2)

    def uneven():
        cuts = np.sort(np.random.default_rng(3).integers(0, N, 20))
        for part in np.split(np.arange(N), cuts):  # some are empty
            yield X[part], y[part]

    sources = [chunked.arrays(X.astype(float), y, rows=int(rows)) for rows in (3, 7, 64, N, 1000)]
    sources += [chunked.arrays(X, y, rows=int(rng.integers(2, 100))), chunked.iterator(uneven)]
    results = []
    for place, data in enumerate(sources):
        monkeypatch.setattr("foldless.chunked.gather.ROWS_TOGETHER", 40 if place % 2 else 1)
        found = arrays_for(y, outputs_of(kind))
        result = chunked.cross_validate(model, data, cv=5, sample=30, alphas=[0.1, 1.0], predictions=found)
        results.append((*found.values(), result.test_score, result.loo_score, result.kfold_press))
    for other in results[1:]:
        assert_array_equal(other[0], results[0][0])
        for mine, theirs in zip(other, results[0], strict=True):
            assert_close(mine, theirs, rtol=1e-11)


def test_features_are_never_held_whole(monkeypatch):
    sizes = []

    class Watched(Waves):
        def features(self, X):
            sizes.append(len(X))
            return super().features(X)

    X, y = data_of("values")
    expected = chunked.cross_validate(LSSVR(Waves()), chunked.arrays(X, y), cv=3)
    monkeypatch.setattr("foldless.chunked.plan.Plan.block", 16)
    found = chunked.cross_validate(LSSVR(Watched()), chunked.arrays(X, y), cv=3, sample=20)
    assert max(sizes) == 20
    assert_close(found.test_score, expected.test_score)


@pytest.mark.parametrize("form", [sp.csr_array, sp.coo_matrix, sp.csc_matrix, sp.bsr_array])
def test_sparse_rows(form):
    X, y = data_of(4)
    X = np.where(X > 2, X, 0.0)
    model = LSSVC("linear")
    dense = chunked.cross_validate(model, chunked.arrays(X, y, rows=40), cv=3)
    sparse = chunked.cross_validate(model, chunked.arrays(form(X), y, rows=40), cv=3)
    assert_close(sparse.estimator.coef_, dense.estimator.coef_)
    assert sparse.loo_score == dense.loo_score


def test_targets_and_features_far_from_zero_keep_their_digits():
    X, y = data_of("values")
    near, far = LSSVR("linear"), LSSVR("linear")
    near = chunked.cross_validate(near, chunked.arrays(X, y, rows=50), sample=60)
    far = chunked.cross_validate(far, chunked.arrays(X + 1e6, y + 1e8, rows=50), sample=60)
    assert_close(far.test_score, near.test_score, rtol=1e-7)
    assert_close(far.estimator.predict(X + 1e6) - 1e8, near.estimator.predict(X), rtol=1e-6)


def test_balanced_classes_are_those_of_all_rows():
    X, y = data_of(4)
    w = np.random.default_rng(1).integers(0, 4, N) / 2
    mass = np.array([w[y == label].sum() for label in range(3, 7)])
    factors = dict(zip(range(3, 7), (w.sum() / (4 * mass)).tolist(), strict=True))
    data = chunked.arrays(X, y, sample_weight=w, rows=40)
    found, expected = (
        chunked.cross_validate(LSSVC(Waves(), class_weight=each), data, cv=3, sample=20)
        for each in ("balanced", factors)
    )
    assert_close(found.estimator.decision_function(X), expected.estimator.decision_function(X))
    assert_close(found.test_score, expected.test_score)


@pytest.mark.parametrize("weight", [1.0, 0.6])
def test_the_only_row_of_a_class_is_left_out(weight):
    X, y = data_of(4)
    y[17], w = 9, np.full(N, weight)
    w[40], y[40] = 0.0, 9  # and one that does not count
    model = KernelFisherDiscriminant(Waves(), alpha=0.2)
    out = np.empty((N, 5))
    chunked.cross_validate(model, chunked.arrays(X, y, sample_weight=w), cv=None, predictions=out)
    expected = model.fit(X, y, sample_weight=w).loo_decision_function()
    assert expected[17, 4] < -1e300
    others = np.delete(np.arange(N), 17)
    assert_close(out[others], expected[others])
    assert_close(out[17, :4], expected[17, :4])
    assert out[17, 4] == expected[17, 4]


@pytest.mark.filterwarnings("ignore::foldless._engine.heldout.caution.HugePenaltyWarning")
def test_weak_axes_keep_their_order():
    X, y = data_of(4)
    model = KernelFisherDiscriminant(Waves(), alpha=1e9)
    found = np.empty((N, 4))
    result = chunked.cross_validate(
        model, chunked.arrays(X, y), cv=3, predictions=(out := {"fold": np.empty(N), "decision": found})
    )
    for fold in range(3):
        test = out["fold"] == fold
        fitted = refit(model, X, y, ~test)
        assert_array_equal(found[test].argmax(1), fitted.decision_function(X[test]).argmax(1))
    assert_close(result.estimator.transform(X), model.fit(X, y).transform(X), rtol=3e-9)


def test_constant_values_have_the_r2_of_scikit_learn():
    X, y = data_of("values")
    folds = np.arange(N) % 2
    y[folds == 1] = 5.0
    scores = chunked.cross_validate(LSSVR(Waves()), chunked.arrays(X, y, folds=folds), cv=None).test_score
    assert scores[1] == 0.0


# -- alphas ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["LSSVR two outputs", "LSSVC classes", "KFDA", "KFDA classes"])
@pytest.mark.parametrize("weighted", [False, True])
def test_squared_errors_of_all_alphas_equal_refits(name, weighted):
    model, kind = MODELS[name]
    X, y = data_of(kind)
    w = np.random.default_rng(1).integers(0, 4, N) / 2 if weighted else None
    plain = LSSVC(model.kernel) if y.dtype.kind in "iU" else LSSVR(model.kernel)
    T = y if y.ndim > 1 else 2.0 * (y[:, None] == np.unique(y)[-1 if kind == 2 else slice(None)]) - 1
    alphas, weights = [0.01, 1.0, 100.0], np.ones(N) if w is None else w
    data = chunked.arrays(X, y, sample_weight=w, rows=80)
    by_folds = chunked.cross_validate(
        model, data, cv=3, alphas=alphas, predictions=(found := arrays_for(y, outputs_of(kind)))
    )
    by_loo = chunked.cross_validate(model, data, cv=3, alphas=alphas, select="loo")
    kfold, loo = [], []
    for alpha in alphas:
        plain.set_params(alpha=alpha)
        F = np.empty(T.shape)
        for fold in range(3):
            test = found["fold"] == fold
            F[test] = answers(refit(plain, X, y, ~test, sample_weight=w), X[test]).reshape(-1, T.shape[1])
        kfold.append(np.average(np.square(F - T).sum(1), weights=weights))
        whole = refit(plain, X, y, slice(None), sample_weight=w)
        L = whole.loo_predict() if kind == "outputs" else whole.loo_decision_function()
        loo.append(np.average(np.square(L.reshape(T.shape) - T).sum(1), weights=weights))
    assert_close(by_folds.kfold_press, [kfold])
    assert_close(by_loo.loo_press, [loo])
    assert by_folds.best_params["alpha"] == alphas[np.argmin(kfold)] == by_folds.estimator.alpha
    assert by_loo.best_params["alpha"] == alphas[np.argmin(loo)]
    assert by_folds.loo_press is None


@pytest.mark.parametrize("select", ["kfold", "loo"])
def test_other_parameters_are_chosen_in_the_same_passes(select):
    X, y = data_of(4)
    data, alphas, counts = chunked.arrays(X, y, rows=80), [0.1, 10.0], [2, 3, 5]
    options = {"cv": 3, "alphas": alphas, "select": select}
    found = chunked.cross_validate(LSSVC(Waves()), data, param_grid={"kernel__count": counts}, **options)
    alone = [chunked.cross_validate(LSSVC(Waves(each)), data, **options) for each in counts]
    name = f"{select}_press"
    assert_close(getattr(found, name), np.vstack([getattr(each, name) for each in alone]))
    best = min(alone, key=lambda each: getattr(each, name).min())
    assert found.best_params == {"kernel__count": best.estimator.kernel.count, **best.best_params}
    assert found.estimator.kernel == best.estimator.kernel
    assert_close(found.test_score, best.test_score)
    assert_close(found.estimator.decision_function(X), best.estimator.decision_function(X))


CLASS_WEIGHTS = {
    "scaled": [None, {0: 0.01, 1: 0.01, 2: 0.01}, {0: 10, 1: 10, 2: 10}],
    "others": [{0: 1, 1: 5, 2: 1}, None, {0: 3, 1: 0.1, 2: 2}],
}


@pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("select", ["kfold", "loo"])
@pytest.mark.parametrize("name", CLASS_WEIGHTS)
def test_class_weights_are_chosen_as_by_a_search(name, select, weighted, kind):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 3))
    y = (X[:, 0] + rng.normal(size=150) > 1).astype(int) + (X[:, 1] > 0)
    w = rng.uniform(0.5, 2, 150) if weighted else None
    grid, folds = {"class_weight": CLASS_WEIGHTS[name]}, np.arange(150) % 4
    data = chunked.arrays(X, y, sample_weight=w, folds=folds, rows=60)
    found = chunked.cross_validate(kind("linear"), data, cv=None, alphas=[0.1, 3.0], param_grid=grid, select=select)
    cv = PredefinedSplit(folds) if select == "kfold" else None
    options = {"criterion": "press", "criterion_weight": "sample_weight" if weighted else None}
    search = FoldlessSearchCV(kind("linear"), {"alpha": [0.1, 3.0], **grid}, cv=cv, **options)
    search.fit(X, y, sample_weight=w)
    assert_close(getattr(found, f"{select}_press").T.ravel(), search.cv_results_["mean_test_criterion"])
    assert found.best_params == search.best_params_


@pytest.mark.parametrize("per_fold", [False, True])
def test_errors_of_folds_of_a_pass_are_those_of_the_sums(per_fold):
    X, y = data_of(2)
    model = LSSVC(Nystroem("rbf", 9, landmarks="uniform", per_fold=per_fold))
    grid, labels = {"class_weight": [None, "balanced"]}, np.unique(y)
    grid["class_weight"].append(dict(zip(labels.tolist(), range(1, 1 + len(labels)), strict=True)))
    data, options = chunked.arrays(X, y, rows=40), {"cv": 3, "alphas": [0.1, 10.0]}
    found = chunked.cross_validate(model, data, param_grid=grid, **options)
    alone = chunked.cross_validate(model, data, **options)
    assert "errors of folds" in found.seconds
    assert "errors of folds" not in alone.seconds
    assert_close(found.kfold_press[:1], alone.kfold_press)


def test_rows_that_carry_a_feature_alone_are_told():
    X = np.zeros((20, 2))
    X[0, 0], X[:, 1] = 1e4, np.arange(20)
    with pytest.warns(UserWarning, match="1 rows carry a feature nearly alone"):
        chunked.cross_validate(LSSVR("linear"), chunked.arrays(X, np.arange(20.0) % 3), cv=None)


def test_rows_left_out_at_a_tiny_alpha_equal_refits():
    """The row that carries a feature alone keeps 5 digits at an alpha of 1e-10 of the scale, the others keep all."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(60, 4)), np.where(np.arange(60) == 3, 5.0, 0.0)])
    y = X[:, 0] + X[:, 4] + np.sin(X[:, 1])
    model = LSSVR("linear", alpha=1.01e-10 * np.linalg.norm(X - X.mean(0), 2) ** 2)
    found = np.empty(60)
    with pytest.warns(UserWarning, match="1 rows carry a feature nearly alone"):
        chunked.cross_validate(model, chunked.arrays(X, y, rows=20), cv=None, predictions=found)
    expected = np.array([refit(model, X, y, train).predict(X[test])[0] for train, test in leave_one_out(60)])
    assert_close(found[3], expected[3], rtol=1e-5)
    assert_close(np.delete(found, 3), np.delete(expected, 3), rtol=1e-12)


def test_a_tiny_alpha_is_told():
    X, y = data_of("values")
    with pytest.warns(UserWarning, match="fewer than 6 digits"):
        chunked.cross_validate(LSSVR("linear", alpha=1e-11), chunked.arrays(X, y))


# -- folds, samples ----------------------------------------------------------------------------------------------------


def folds_of(data, n=N, **options):
    found = {"fold": np.full(n, -1)}
    result = chunked.cross_validate(LSSVR("linear"), data, predictions=found, loo=False, **options)
    assert_array_equal(np.bincount(found["fold"]), result.fold_sizes)
    return found["fold"]


def test_folds_differ_in_size_by_one_row_and_follow_the_seed():
    X, y = data_of("values")
    data = chunked.arrays(X, y, rows=33)
    folds = folds_of(data, cv=10)
    assert set(np.bincount(folds)) == {N // 10, N // 10 + 1}
    assert_array_equal(folds_of(data, cv=10), folds)
    other = folds_of(data, cv=10, random_state=1)
    assert np.mean(other == folds) < 0.25
    assert np.mean(folds[10:] == folds[:-10]) < 0.25  # no period


def test_groups_stay_together():
    X, y = data_of("values")
    groups = np.random.default_rng(0).integers(0, 40, N)
    folds = folds_of(chunked.arrays(X, y, groups=groups, rows=33), cv=3)
    assert all(len(np.unique(folds[groups == each])) == 1 for each in np.unique(groups))
    named = np.array([f"site {each}" for each in groups])
    by_name = folds_of(chunked.arrays(X, y, groups=named, rows=60), cv=3)
    assert all(len(np.unique(by_name[groups == each])) == 1 for each in np.unique(groups))


def test_given_folds_are_taken():
    X, y = data_of("values")
    own = np.random.default_rng(0).choice(["a", "b", "c"], N)
    folds = folds_of(chunked.arrays(X, y, folds=own, rows=33), cv=None)
    assert_array_equal(np.array(["a", "b", "c"])[folds], own)


def test_without_folds_there_is_leave_one_out_alone():
    X, y = data_of("values")
    out = np.empty(N)
    result = chunked.cross_validate(LSSVR(Waves()), chunked.arrays(X, y), cv=None, predictions=out)
    assert result.test_score is None
    assert_close(out, LSSVR(Waves()).fit(X, y).loo_predict())


def test_kernel_parameters_come_from_a_sample_that_never_sees_labels():
    X, y = data_of("values")
    seen = []

    class Kept(Waves):
        def resolved(self, X, sample_weight=None):
            seen.append(X.copy())
            return self

    for rows, target in ((10, y), (60, y[::-1])):
        chunked.cross_validate(LSSVR(Kept()), chunked.arrays(X, target, rows=rows), cv=None, sample=25)
    assert_array_equal(seen[0], seen[1])
    assert len(seen[0]) == 25
    assert len(np.unique(seen[0], axis=0)) == 25


def test_the_sample_is_spread_over_the_folds():
    X, y = data_of("values")
    seen = []

    class Kept(Waves):
        def resolved(self, X, sample_weight=None):
            seen.append(X[:, 0].copy())
            return self

    folds = {"fold": np.empty(N, int)}
    chunked.cross_validate(LSSVR(Kept()), chunked.arrays(X, y), cv=5, sample=100, predictions=folds)
    sizes = np.bincount(folds["fold"][np.isin(X[:, 0], seen[0])], minlength=5)
    assert sizes.sum() == 100
    assert sizes.min() >= 10


# -- the fitted estimator ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["LSSVR", "LSSVC classes", "KFDA classes"])
def test_the_estimator_predicts_and_keeps_no_rows(name):
    model, kind = MODELS[name]
    X, y = data_of(kind)
    X, y = np.tile(X, (20, 1)), np.tile(y, 20)
    found = chunked.cross_validate(model, chunked.arrays(X, y), cv=None, sample=100).estimator
    text = pickle.dumps(found)
    assert len(text) < 5000
    assert_array_equal(pickle.loads(text).predict(X), found.predict(X))
    assert found.score(X, y) == pytest.approx(model.fit(X, y).score(X, y), rel=1e-12)
    for use in (lambda: found.loo_score_, found.loo_predict, lambda: found.partial_fit(X[:2], y[:2])):
        with pytest.raises(AttributeError, match="keeps no training rows"):
            use()
    if kind == 4:
        assert_close(found.decision_function(X), model.decision_function(X))
