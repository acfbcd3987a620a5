"""Kernels by landmarks and by random waves: what they equal, whence landmarks come, and the way back to parameters."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import kernel_approximation
from sklearn.base import clone

from foldless import LSSVC
from foldless.kernels import RBF, Boolean, Laplacian, Linear, Nystroem, On, Poly, Precomputed, RandomFeatures

X = np.random.default_rng(0).normal(size=(60, 3))
KERNELS = [
    RBF(0.3),
    RBF(np.array([0.1, 0.5, 0.2])),
    Laplacian(0.2),
    Laplacian(np.array([0.1, 0.5, 0.2])),
    Poly(0.3, 2, 1.0),
    Boolean(0.1),
    RBF(0.3) + 0.5 * Linear(),
    RBF(0.3) * Linear(),
    On([0, 1], RBF(0.2)),
]
WAVES = [RBF(0.3), RBF(np.array([0.1, 0.5, 0.2])), Laplacian(0.2), Laplacian(np.array([0.1, 0.5, 0.2]))]
every_choice = pytest.mark.parametrize("landmarks", ["uniform", "kmeans", "leverage"])
every_form = pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])


@pytest.mark.many_cases
@every_form
@every_choice
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_nystroem_is_the_projection_on_the_landmarks(kernel, landmarks, form):
    found = Nystroem(kernel, 12, landmarks=landmarks).resolved(form(X))
    Z = found.landmarks
    C, W = kernel.gram(form(X), Z), kernel.gram(Z)
    assert found.features(form(X)).shape == (60, Z.shape[0])
    assert_allclose(found.gram(form(X)), C @ np.linalg.pinv(W, 1e-12) @ C.T, atol=1e-6 * abs(C).max())
    assert_allclose(found.diag(form(X)), found.gram(form(X)).diagonal())


@pytest.mark.parametrize(("dtype", "share", "precision"), [("float64", 1e-10, 1e-9), ("float32", 1e-5, 1e-5)])
def test_a_share_of_the_mean_diagonal_is_added_to_the_kernel_of_the_landmarks(dtype, share, precision):
    """The formula of docs/approximation.md; features of scikit-learn, which adds nothing, differ as told there."""
    rows, kernel = X.astype(dtype), 3.0 * RBF(0.1)
    features = kernel_approximation.Nystroem(gamma=0.1, n_components=20, random_state=0)
    theirs = np.sqrt(3.0) * features.fit_transform(X)
    found = Nystroem(kernel, landmarks=features.components_.astype(dtype)).resolved(rows)
    Z = found.landmarks.astype(float)
    C, M = kernel.gram(X, Z), kernel.gram(Z) + share * 3.0 * np.eye(20)
    assert_allclose(found.gram(rows), C @ np.linalg.solve(M, C.T), atol=3 * precision)
    difference = np.abs(found.gram(rows) - theirs @ theirs.T).max()
    assert 3 * precision < difference < 3.0 * 3.0 * share / np.linalg.eigvalsh(kernel.gram(Z))[0]


@pytest.mark.parametrize("kernel", [RBF(0.3), Laplacian(0.2)], ids=repr)
def test_nystroem_by_all_rows_is_the_kernel_itself(kernel):
    assert_allclose(Nystroem(kernel, 60).resolved(X).gram(X), kernel.gram(X), atol=1e-7)


def test_features_without_whitening_are_the_kernel_of_the_landmarks():
    found = Nystroem(RBF(0.3), 7, whiten=False).resolved(X)
    assert_allclose(found.features(X), RBF(0.3).gram(X, found.landmarks))


@pytest.mark.parametrize("kernel", WAVES, ids=repr)
def test_the_mean_of_many_waves_is_the_kernel(kernel):
    found = RandomFeatures(kernel, 20_000).resolved(X)
    assert_allclose(found.gram(X), kernel.gram(X), atol=0.05)
    assert_allclose(found.features(sp.csr_array(X)), found.features(X), atol=1e-12)


@every_choice
def test_landmarks_follow_from_rows_of_positive_weight_alone(landmarks):
    weight = (np.arange(60) % 3 > 0).astype(float)
    moved = X.copy()
    moved[weight == 0] += 100.0
    first, second = (Nystroem(RBF(0.3), 9, landmarks=landmarks).resolved(rows, weight).landmarks for rows in (X, moved))
    assert_array_equal(first, second)


@every_choice
@every_form
def test_landmarks_are_the_same_for_the_same_seed_and_others_for_another(landmarks, form):
    def drawn(seed):
        Z = Nystroem(RBF(0.3), 9, random_state=seed, landmarks=landmarks).resolved(form(X)).landmarks
        return Z.toarray() if sp.issparse(Z) else Z

    assert_array_equal(drawn(3), drawn(3))
    assert not np.array_equal(drawn(3), drawn(4))


def test_leverage_finds_a_far_group_that_a_uniform_draw_misses():
    rows = np.vstack([np.random.default_rng(1).normal(size=(995, 2)) * 0.01, 10 + np.eye(5, 2)])
    for seed in range(5):
        Z = Nystroem(RBF(1.0), 10, random_state=seed, landmarks="leverage").resolved(rows).landmarks
        assert Z.max() > 5


def test_landmarks_may_be_rows_of_the_user():
    found = Nystroem(RBF(0.3), landmarks=X[:5].tolist()).resolved(X)
    assert_array_equal(found.landmarks, X[:5])
    assert found.n_features(X) == 5


def test_equal_rows_as_landmarks_do_no_harm():
    found = Nystroem(RBF(0.3), landmarks=np.vstack([X[:5], X[:5]])).resolved(X)
    assert_allclose(found.gram(X), Nystroem(RBF(0.3), landmarks=X[:5]).resolved(X).gram(X), atol=1e-7)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Nystroem(RBF(0.3), 0), "n_landmarks=0 must be an integer >= 1"),
        (Nystroem(RBF(0.3), 2.5), "n_landmarks=2.5 must be an integer"),
        (Nystroem(RBF(0.3), landmarks="all"), "landmarks='all' is unknown; use one of 'uniform', 'kmeans', 'leverage'"),
        (Nystroem(RBF(0.3), landmarks=np.ones((3, 2))), "give at least one row of 3 features"),
        (Nystroem(RBF(0.3), landmarks=np.full((3, 3), np.nan)), "no finite numbers"),
        (Nystroem(Precomputed()), "Nystroem needs rows"),
        (Nystroem("rbf"), "Nystroem: kernel='rbf' is a name or a function, which only estimators take. Give an object"),
        (Nystroem(RBF(0.3), "auto"), "n_landmarks='auto' must be an integer >= 1; 'auto' is found by a search"),
        (Nystroem(RBF(0.3), per_fold="yes"), "per_fold='yes' must be True or False"),
        (Nystroem(RBF(0.3), whiten=1), "whiten=1 must be True or False"),
        (RandomFeatures(Poly()), r"RandomFeatures is for 'rbf' and 'laplacian', not for Poly\(.*use Nystroem"),
    ],
)
def test_what_cannot_be_approximated_is_told(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel.resolved(X)


def slopes(kernel, R, form):
    """Derivatives of sum_ij R_ij K_ij by central differences."""
    found = {}
    for name in kernel.differentiable:
        value = np.array(kernel.get_params()[name], float)
        each = []
        for place in np.ndindex(value.shape):
            step = np.zeros(value.shape)
            step[place] = 1e-5 * value[place]
            ends = [value + sign * step for sign in (1, -1)]
            ends = [float(end) if not end.ndim else (tuple(end) if name == "weights" else end) for end in ends]
            up, down = (np.vdot(R, kernel.changed(**{name: end}).gram(form(X))) for end in ends)
            each.append((up - down) / (2 * step[place]))
        found[name] = np.reshape(each, value.shape)
    return found


@pytest.mark.many_cases
@every_form
@pytest.mark.parametrize("whiten", [True, False], ids=["whitened", "as it is"])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_way_back_from_landmarks_is_the_derivative(kernel, whiten, form):
    kernel = Nystroem(kernel, 8, landmarks="uniform", whiten=whiten).resolved(form(X))
    R = np.random.default_rng(2).normal(size=(60, 60))
    R = R + R.T
    expected, found = slopes(kernel, R, form), kernel.pullback(R.copy(), form(X), kernel.gram(form(X)))
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert_allclose(found[name], value, rtol=1e-5, atol=1e-6 * abs(value).max())


@every_form
@pytest.mark.parametrize("kernel", WAVES, ids=repr)
def test_the_way_back_from_waves_is_the_derivative(kernel, form):
    kernel = RandomFeatures(kernel, 8).resolved(form(X))
    R = np.random.default_rng(2).normal(size=(60, 60))
    R = R + R.T
    expected, found = slopes(kernel, R, form), kernel.pullback(R.copy(), form(X), kernel.gram(form(X)))
    assert_allclose(found["gamma"], expected["gamma"], rtol=1e-5)


def test_parameters_of_the_kernel_keep_their_names():
    kernel = Nystroem(RBF("scale"), 8).resolved(X)
    other = kernel.changed(gamma=2.0)
    assert (other.get_params()["gamma"], other.landmarks is kernel.landmarks) == (2.0, True)
    assert kernel == kernel.changed(gamma=kernel.get_params()["gamma"])
    assert kernel != other
    assert kernel.default_grid(X) == RBF(1.0).default_grid(X)
    assert kernel.changed(n_landmarks=3, gamma=1.0).get_params(deep=False)["n_landmarks"] == 3
    assert Nystroem(On([0, 1], RBF(0.2))).changed(kernel__gamma=2.0) == Nystroem(On([0, 1], RBF(2.0)))
    with pytest.raises(ValueError, match=r"Invalid parameter 'degree' for kernel Nystroem\(RBF.*'n_landmarks'"):
        kernel.changed(degree=3)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Nystroem(RBF(0.3), 8), Nystroem(RBF(0.3), 9)),
        (Nystroem(RBF(0.3)), Nystroem(RBF(0.3), per_fold=True)),
        (Nystroem(RBF(0.3)), Nystroem(RBF(0.3), whiten=False)),
        (Nystroem("rbf"), Nystroem("laplacian")),
        (RandomFeatures(RBF(0.3)), RandomFeatures(RBF(0.3), random_state=1)),
    ],
    ids=str,
)
def test_kernels_of_other_settings_differ(one, other):
    assert one != other
    assert one == clone(one) == pickle.loads(pickle.dumps(one))


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (Nystroem("rbf"), "Nystroem('rbf', n_landmarks=500)"),
        (Nystroem(RBF("scale"), 8, per_fold=True), "Nystroem(RBF(gamma='scale'), n_landmarks=8, per_fold=True)"),
        (Nystroem(RBF(0.5), landmarks=X[:9].tolist()), "Nystroem(RBF(gamma=0.5), landmarks=<9 rows>)"),
        (Nystroem(RBF(0.5), 7, whiten=False).resolved(X), "Nystroem(RBF(gamma=0.5), landmarks=<7 rows>, whiten=False)"),
        (
            RandomFeatures(RBF(0.5), 8, random_state=3).resolved(X),
            "RandomFeatures(RBF(gamma=0.5), n_landmarks=8, random_state=3)",
        ),
    ],
    ids=str,
)
def test_the_representation_is_short(kernel, text):
    assert repr(kernel) == text


def test_clones_have_a_generator_of_their_own():
    kernel = Nystroem(RBF(0.3), 5, landmarks="uniform", random_state=np.random.RandomState(0))
    first, second = (clone(kernel).resolved(X).landmarks for _ in range(2))
    assert_array_equal(first, second)


def test_a_class_in_the_place_of_a_kernel_is_told():
    with pytest.raises(ValueError, match=r"kernel=Nystroem is a class; give an object, for instance Nystroem\(kernel="):
        LSSVC(Nystroem).fit(X, np.arange(60) % 2)


def test_float32_rows_have_float32_features():
    found = Nystroem(RBF(0.3), 12).resolved(X.astype(np.float32))
    exact = Nystroem(RBF(0.3), landmarks=found.landmarks).resolved(X)
    assert found.features(X.astype(np.float32)).dtype == np.float32
    assert_allclose(found.gram(X.astype(np.float32)), exact.gram(X), atol=1e-3)
