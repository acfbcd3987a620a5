"""A sliding window is a fit on the rows it holds."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from foldless import LSSVC, LSSVR
from foldless._engine import linalg
from foldless._engine.precision import growing
from foldless.estimators import SlidingWindow
from foldless.estimators.adaptive import AdaptiveKDA
from support.online import (
    COPIES,
    IDS,
    LABELS,
    NAMES,
    VALUES,
    X_NEW,
    C,
    D,
    N,
    W,
    X,
    all_outputs,
    assert_same,
    effects_of_refits,
    every_classifier,
    every_kind,
    fitted_on,
    gram,
    interrupted_add,
    regression_targets,
    targets,
    traces,
    traces_in_pickle,
)
from support.tolerances import assert_close


@pytest.mark.many_cases
@every_kind
@pytest.mark.parametrize("step", [1, 3, 20])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_window_of_the_newest_equals_fit_on_the_last_rows(kind, step, kernel):
    window = SlidingWindow(kind(kernel, gamma=0.2, alpha=0.3), max_samples=16)
    for start in range(0, N, step):
        some = range(start, min(start + step, N))
        window.partial_fit(X[some], targets(kind, some), **({} if kind is LSSVR else {"classes": np.unique(LABELS[3])}))
        last = range(max(0, some[-1] + 1 - 16), some[-1] + 1)
        assert window.n_samples_ == len(last)
        if len(last) > 8:
            expected = fitted_on(kind, last, kernel=kernel)
            assert_same(all_outputs(window.estimator_), all_outputs(expected))
            np.testing.assert_array_equal(window.predict(X_NEW), window.estimator_.predict(X_NEW))
            assert window.loo_score_ == pytest.approx(expected.loo_score_)
            assert window.score(X, targets(kind)) == pytest.approx(expected.score(X, targets(kind)))
    assert window.estimator_.unlearning_certificate().holds


@pytest.mark.many_cases
@every_kind
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.filterwarnings("ignore:penalty=.coef. is resolved from the 12 rows")
def test_window_by_effect_forgets_the_row_of_least_effect(kind, penalty):
    given = {"gamma": 0.2, "alpha": 0.3, "penalty": penalty}
    window = SlidingWindow(kind(**given), max_samples=12, drop="least").fit(X[:12], targets(kind, range(12)))
    rows = first = list(range(12))
    for new in ([12], [13, 14, 15]):
        window.partial_fit(X[new], targets(kind, new))
        rows = [*rows, *new]
        while len(rows) > 12:
            effects = effects_of_refits(
                X[rows], regression_targets(kind, targets(kind, rows)), np.ones(len(rows)), first=X[first], **given
            )
            del rows[int(np.argmin(effects))]
        np.testing.assert_array_equal(window.estimator_.X_fit_, X[rows])
        assert_same(all_outputs(window.estimator_), all_outputs(fitted_on(kind, rows, first=first, penalty=penalty)))


@every_classifier
def test_classes_stay_when_they_leave_the_window(kind):
    y = np.array(list("abc" * 4 + "ab" * 10))
    window = SlidingWindow(kind(gamma=0.2), max_samples=8)
    for row in range(12, 32):
        if row == 12:
            window.fit(X[:12], y[:12])
            np.testing.assert_array_equal(window.classes_, list("abc"))
        window.partial_fit(X[[row]], y[[row]])
    np.testing.assert_array_equal(window.classes_, list("abc"))
    assert window.decision_function(X).shape == (N, 3)
    assert set(window.predict(X)) <= {"a", "b"}
    window.partial_fit(X[32:34], ["d", "a"], classes=["e", "d", "a"])
    np.testing.assert_array_equal(window.classes_, list("abcde"))
    np.testing.assert_array_equal(window.fit(X[:8], y[12:20]).classes_, list("ab"))


def test_a_window_may_start_with_one_row_of_one_class():
    window = SlidingWindow(LSSVC(gamma=0.2), max_samples=5)
    with pytest.raises(ValueError, match=r"one class only.*classes="):
        window.partial_fit(X[:1], ["a"])
    assert not hasattr(window, "estimator_")
    for row in range(9):
        window.partial_fit(X[[row]], ["a" if row < 7 else "b"], classes=["a", "b"] if row == 0 else None)
    np.testing.assert_array_equal(window.estimator_.X_fit_, X[4:9])


def test_weights_confounds_and_ids_pass_through_a_window():
    window = SlidingWindow(LSSVR(gamma=0.2, alpha=0.3), max_samples=10)
    ids = IDS["strings"]
    for start in range(0, 24, 4):
        some = slice(start, start + 4)
        window.partial_fit(X[some], VALUES[some], sample_weight=W[some], confounds=C[some], ids=ids[some])
    assert window.estimator_.ids_ == ids[14:24]
    expected = LSSVR(gamma=0.2, alpha=0.3).fit(X[14:24], VALUES[14:24], sample_weight=W[14:24], confounds=C[14:24])
    assert_same(all_outputs(window.estimator_) | {"ids_": None}, all_outputs(expected))
    with pytest.raises(TypeError, match="colour"):
        window.partial_fit(X[:1], VALUES[:1], colour="red")
    assert window.n_samples_ == 10


def test_window_has_the_methods_of_its_estimator():
    plain, calibrated = (SlidingWindow(LSSVC(gamma=0.2, calibration=c), 30) for c in (None, "sigmoid"))
    assert not hasattr(plain, "predict_proba")
    assert calibrated.fit(X, LABELS[3]).predict_proba(X).shape == (N, 3)
    assert not hasattr(SlidingWindow(LSSVR()), "decision_function")
    assert clone(calibrated).set_params(estimator__alpha=3.0, max_samples=7).estimator.alpha == 3.0
    assert calibrated.estimator.alpha == 1.0
    assert not hasattr(calibrated.estimator, "classes_")  # it is cloned
    assert calibrated.n_features_in_ == D
    assert not hasattr(calibrated, "feature_names_in_")
    named = SlidingWindow(LSSVR(gamma=0.2)).fit(pd.DataFrame(X, columns=NAMES), VALUES)
    assert list(named.feature_names_in_) == NAMES
    with pytest.raises(NotFittedError):
        plain.predict(X)
    with pytest.raises(NotFittedError):
        _ = plain.n_samples_


def test_windows_of_precomputed_kernels():
    window = SlidingWindow(LSSVC("precomputed", alpha=0.3), 16)
    for start in range(0, N, 4):
        known = np.arange(max(0, start - 16), start + 4)
        window.partial_fit(gram(X[start : start + 4], X[known]), LABELS[2][start : start + 4], classes=["ash", "beech"])
    assert window.n_features_in_ == 16
    assert_close(
        window.decision_function(gram(X_NEW, X[-16:])), fitted_on(LSSVC, range(N - 16, N), 2).decision_function(X_NEW)
    )
    scores = skl.cross_val_score(SlidingWindow(LSSVC("precomputed")), gram(X, X), LABELS[2], cv=3)
    np.testing.assert_array_equal(scores, skl.cross_val_score(LSSVC(gamma=0.2), X, LABELS[2], cv=3))


def test_a_window_can_be_made_smaller():
    window = SlidingWindow(LSSVR(gamma=0.2, alpha=0.3), 20).fit(X[:20], VALUES[:20, 0])
    window.set_params(max_samples=9).partial_fit(X[20:21], VALUES[20:21, 0])
    assert_same(all_outputs(window.estimator_), all_outputs(fitted_on(LSSVR, range(12, 21))))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop": "newest"}, "drop='newest' is unknown; use one of 'oldest', 'least'"),
        ({"max_samples": 1}, "max_samples=1 must be an integer of at least 2"),
        ({"max_samples": 10.0}, "max_samples=10.0 must be an integer"),
        ({"max_samples": None}, "max_samples=None must be an integer"),
        ({"drop": "least", "estimator": AdaptiveKDA()}, "drop='least' needs forgetting_effects, which AdaptiveKDA"),
    ],
)
def test_windows_refuse_what_they_cannot_do(options, message):
    window = SlidingWindow(LSSVC(gamma=0.2)).set_params(**options)
    for verb in (window.fit, window.partial_fit):
        with pytest.raises(ValueError, match=message):
            verb(X, LABELS[3])
    assert not hasattr(window, "estimator_")


def sliding(forget="oldest", **options):
    window = SlidingWindow(LSSVC(**{"gamma": 0.2, "alpha": 0.3} | options), max_samples=12, drop=forget)
    return window.partial_fit(X[:12], LABELS[2][:12]).partial_fit(X[12:14], LABELS[2][12:14])


@pytest.mark.parametrize("forget", ["oldest", "least"])
def test_window_keeps_its_rows_when_an_update_is_interrupted(forget, monkeypatch):
    for when in range(2 if forget == "oldest" else 3):  # learning, and each time it forgets
        window, twin, calls = sliding(forget), sliding(forget), iter(range(9))

        def broken(*args, calls=calls, when=when):
            return interrupted_add(*args) if next(calls) == when else linalg.add_signed_(*args)

        with monkeypatch.context() as patch:
            patch.setattr(growing, "add_signed_", broken)
            with pytest.raises(KeyboardInterrupt):
                window.partial_fit(X[14:16], LABELS[2][14:16])
        assert pickle.dumps(window) == pickle.dumps(twin)
        assert_same(all_outputs(window.estimator_), all_outputs(twin.estimator_))
        for each in (window, twin):
            each.partial_fit(X[14:16], LABELS[2][14:16])
        assert_same(all_outputs(window.estimator_), all_outputs(twin.estimator_))


def test_window_that_cannot_forget_does_not_learn_either():
    """Of its first rows one alone tells the coefficient of a confound."""
    confound = (np.arange(N) == 2).astype(float)

    def make():
        return SlidingWindow(LSSVR(gamma=0.2), 12).fit(X[:12], VALUES[:12], confounds=confound[:12])

    window = make()
    with pytest.raises(ValueError, match="confounds: column 0"):
        window.partial_fit(X[12:16], VALUES[12:16], confounds=confound[12:16])
    assert pickle.dumps(window) == pickle.dumps(make())
    window.partial_fit(X[12:14], VALUES[12:14], confounds=confound[12:14])
    np.testing.assert_array_equal(window.estimator_.X_fit_, X[2:14])


@pytest.mark.parametrize("forget", ["oldest", "least"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_rows_that_left_a_window_leave_no_trace(forget, kernel):
    window = SlidingWindow(LSSVR(kernel, gamma=0.2), 10, drop=forget)
    for row in range(16):
        window.partial_fit(X[[row]], VALUES[[row], 0], sample_weight=W[[row]], ids=[f"patient {row:02}"])
        if row == 5:
            wanted = {"row": X[2], "target": VALUES[2, 0], "weight": W[2], "id": "patient 02"}
            assert traces(window, wanted) == wanted.keys() == traces_in_pickle(window, wanted)
    gone = set(range(16)) - {int(each[-2:]) for each in window.estimator_.ids_}
    assert len(gone) == 6
    for row in gone:
        wanted = {
            "row": X[row],
            "target": VALUES[row, 0],
            "weight": W[row],
            "root": np.sqrt(W[row]),
            "id": f"patient {row:02}",
        }
        wanted["length"] = X[row] @ X[row]
        assert not traces(window, wanted)
        assert not traces_in_pickle(window, wanted)


@pytest.mark.parametrize("case_name", ["deepcopy", "pickle"])
def test_copies_of_windows_are_independent(case_name):
    window = sliding()
    other = COPIES[case_name](window)
    other.partial_fit(X[14:17], LABELS[2][14:17])
    assert_same(all_outputs(window.estimator_), all_outputs(sliding().estimator_))
    window.partial_fit(X[20:22], LABELS[2][20:22])
    assert_same(
        all_outputs(other.estimator_), all_outputs(sliding().partial_fit(X[14:17], LABELS[2][14:17]).estimator_)
    )
    assert not hasattr(clone(window), "estimator_")


WINDOWS = [SlidingWindow(LSSVC(gamma=0.1)), SlidingWindow(LSSVR(gamma=0.1), 30, drop="least")]
CHECKS = [pair for window in WINDOWS for pair in estimator_checks_generator(window)]


@pytest.mark.parametrize(
    ("window", "check"),
    CHECKS,
    ids=[f"{type(w.estimator).__name__} {getattr(c, 'func', c).__name__}" for w, c in CHECKS],
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks_of_windows(window, check):
    check(window)


def test_a_window_forgets_on_request():
    window = SlidingWindow(LSSVC(gamma=0.2, alpha=0.3), max_samples=12)
    window.partial_fit(X[:14], LABELS[2][:14], ids=range(14)).forget(ids=[5]).forget([0])
    kept = [3, 4, 6, 7, 8, 9, 10, 11, 12, 13]
    assert window.estimator_.ids_ == kept
    again = LSSVC(gamma=0.2, alpha=0.3).fit(X[kept], LABELS[2][kept], ids=kept)
    assert_same(all_outputs(window.estimator_), all_outputs(again))
    assert window.unlearning_certificate().holds
    assert not hasattr(SlidingWindow(AdaptiveKDA()), "unlearning_certificate")


def test_a_window_refuses_an_estimator_changed_behind_its_back():
    window = sliding()
    before = pickle.dumps(window.estimator_)
    window.set_params(estimator__alpha=7.0)
    with pytest.raises(ValueError, match="alpha: changed since the model was fitted"):
        window.partial_fit(X[14:16], LABELS[2][14:16])
    assert pickle.dumps(window.estimator_) == before
    assert window.fit(X[:12], LABELS[2][:12]).estimator_.alpha == 7.0


def test_a_window_needs_an_estimator_that_learns_and_forgets():
    with pytest.raises(
        ValueError, match=r"estimator=StandardScaler\(\) cannot learn and forget rows; use one of LSSVC"
    ):
        SlidingWindow(StandardScaler()).partial_fit(X, LABELS[2])


def test_two_rows_are_the_smallest_window():
    window = SlidingWindow(LSSVR(gamma=0.2), max_samples=2).fit(X, VALUES)
    assert window.n_samples_ == 2
    np.testing.assert_array_equal(window.estimator_.X_fit_, X[-2:])
