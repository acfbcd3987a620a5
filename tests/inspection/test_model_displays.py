"""Displays of a model and its rows: what is drawn are the library's held-out numbers, or those of plain refits."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_equal
from scipy import sparse
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.linear_model import Ridge, RidgeClassifier, SGDClassifier
from sklearn.metrics import recall_score
from sklearn.model_selection import KFold, LeaveOneOut, StratifiedShuffleSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC, LSSVR, FoldlessSearchCV, SlidingWindow
from foldless.inspection import (
    CalibrationDisplay,
    DecisionRegionsDisplay,
    InfluenceDisplay,
    LearningCurveDisplay,
    MarginsDisplay,
    StreamDisplay,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:matplotlib")


def data(classes=3, n=45):
    rng = np.random.default_rng(0)
    y = np.arange(n) % classes
    X = rng.normal(size=(n, 3))
    X[:, 0] += y
    return X, np.array(["<a>", "b", "c"])[y]


X, Y = data()
MODEL = LSSVC(gamma=0.5, alpha=0.3)


# Regions


def test_regions_are_predictions_and_rings_are_leave_one_out_errors():
    model = clone(MODEL).fit(X[:, :2], Y)
    display = DecisionRegionsDisplay.from_estimator(model, X[:, :2], Y, grid_resolution=7)
    across, up = np.meshgrid(display.x0, display.x1)
    said = model.predict(np.column_stack([across.ravel(), up.ravel()]))
    assert_equal(model.classes_[np.asarray(display.surface_.get_array(), int).ravel()], said)
    wrong = cross_val_predict(MODEL, X[:, :2], Y, cv=LeaveOneOut()) != Y
    assert wrong.any()
    assert_equal(np.asarray(display.wrong_.get_offsets()), X[wrong, :2])
    for label, points in zip(model.classes_, display.points_, strict=True):
        assert_equal(np.asarray(points.get_offsets()), X[label == Y, :2])
    assert f"leave-one-out errors ({wrong.sum()})" in [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_regions_of_two_features_have_the_others_at_their_medians():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["u", "v", "w"])
    search = FoldlessSearchCV(make_pipeline(StandardScaler(), MODEL), {"lssvc__alpha": [0.1, 1.0]}).fit(frame, Y)
    cv = KFold(5)
    display = DecisionRegionsDisplay.from_estimator(search, frame, Y, features=("w", "u"), cv=cv, grid_resolution=5)
    across, up = np.meshgrid(display.x0, display.x1)
    rows = np.column_stack([up.ravel(), np.full(25, np.median(X[:, 1])), across.ravel()])
    said = search.predict(pandas.DataFrame(rows, columns=frame.columns))
    assert_equal(search.classes_[display.response.ravel()], said)
    best = clone(search.best_estimator_).set_params(lssvc__gamma=0.5)
    assert_equal(display.wrong, cross_val_predict(best, frame, Y, cv=cv) != Y)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("w", "u")
    with pytest.raises(ValueError, match=r"features=\('w', 'x'\) must be two different names among \['u', 'v', 'w'\]"):
        DecisionRegionsDisplay.from_estimator(search, frame, Y, features=("w", "x"))


# Margins and influence


@pytest.mark.parametrize("classes", [2, 3])
def test_margins_are_own_minus_best_other_decision_of_refits(classes):
    X, y = data(classes)
    display = MarginsDisplay.from_estimator(MODEL, X, y)
    decision = cross_val_predict(MODEL, X, y, cv=LeaveOneOut(), method="decision_function")
    columns = np.column_stack([-decision / 2, decision / 2]) if classes == 2 else decision
    for code, line in enumerate(display.lines_):
        mine = columns[np.unique(y)[code] == y]
        margin = sorted(row[code] - max(np.delete(row, code)) for row in mine)
        assert_allclose(line.get_xdata(), margin, rtol=1e-8)
        assert_allclose(line.get_ydata(), np.arange(1, len(mine) + 1) / len(mine))
    recall = recall_score(y, cross_val_predict(MODEL, X, y, cv=LeaveOneOut()), average=None)
    for line, share in zip(display.lines_, recall, strict=True):
        assert line.get_label().endswith(f": {100 * (1 - share):.1f} % wrong")
    again = MarginsDisplay.from_predictions(y, decision)
    assert_allclose(again.margins, display.margins, rtol=1e-8)
    assert (display.ax_.get_xlabel(), again.ax_.get_xlabel()) == ("leave-one-out margin", "held-out margin")


def test_margins_need_all_classes():
    with pytest.raises(ValueError, match="decision is one of 2 classes, and y holds 3"):
        MarginsDisplay.from_predictions(Y, np.zeros(len(Y)))


def test_influence_is_what_forgetting_would_change():
    model = clone(MODEL).fit(X, Y)
    display = InfluenceDisplay.from_estimator(
        make_pipeline(StandardScaler(with_mean=False, with_std=False), MODEL), X, Y
    )
    effects, wrong = model.forgetting_effects(), model.loo_predict() != Y
    assert_allclose(display.points_.get_offsets()[:, 1], effects[~wrong])
    assert_allclose(display.wrong_.get_offsets()[:, 1], effects[wrong])
    assert (display.wrong_.get_offsets()[:, 0] < 0).all()
    assert [int(each.get_text()) for each in display.numbers_] == np.argsort(-effects)[:5].tolist()


def test_influence_on_values_is_drawn_against_residuals():
    y = X[:, 0] ** 2
    display = InfluenceDisplay.from_estimator(LSSVR(gamma=0.5), X, y)
    residual = y - cross_val_predict(LSSVR(gamma=0.5), X, y, cv=LeaveOneOut())
    assert_allclose(display.points_.get_offsets()[:, 0], residual, rtol=1e-8)
    assert display.wrong_ is None
    with pytest.raises(ValueError, match="needs forgetting_effects, which Ridge has not"):
        InfluenceDisplay.from_estimator(Ridge(), X, y)


def test_influence_of_predictions_is_that_of_the_estimator():
    model = clone(MODEL).fit(X, Y)
    display = InfluenceDisplay.from_estimator(MODEL, X, Y)
    again = InfluenceDisplay.from_predictions(Y, model.loo_decision_function(), model.forgetting_effects())
    assert_allclose(again.x, display.x)
    assert_equal(again.wrong, display.wrong)
    values = InfluenceDisplay.from_predictions([1.0, 2.5], [1.5, 2.0], [0.1, 0.2])
    assert_allclose(values.x, [-0.5, 0.5])
    with pytest.raises(ValueError, match="one entry for each row"):
        InfluenceDisplay.from_predictions([1.0, 2.5], [1.5, 2.0], [0.1])


def test_classes_are_taken_in_the_order_of_decisions():
    decision = np.array([[3.0, 1.0], [0.0, 2.0]])
    assert_allclose(MarginsDisplay.of(["b", "b"], decision, classes=["b", "a"]).margins, [2.0, -2.0])
    with pytest.raises(ValueError, match="lacks 'c', which y_true holds"):
        MarginsDisplay.of(["b", "c"], decision, classes=["b", "a"])


# Calibration


@pytest.mark.parametrize("classes", [2, 3])
def test_reliability_is_the_share_of_rows_in_bins_of_held_out_probabilities(classes):
    X, y = data(classes)
    model = LSSVC(gamma=0.5, calibration="sigmoid")
    cv = LeaveOneOut() if classes == 2 else KFold(3)
    display = CalibrationDisplay.from_estimator(model, X, y, n_bins=4, cv=None if classes == 2 else cv)
    prob = cross_val_predict(model, X, y, cv=cv, method="predict_proba")
    for number, line in enumerate(display.lines_):
        code = number if classes > 2 else 1
        order = np.argsort(prob[:, code], kind="stable")
        seen = 0
        for pred, true, count, interval in zip(
            *line.get_data(), display.counts[number], display.intervals_[number].get_segments(), strict=True
        ):
            rows = order[seen : seen + count]
            hits = np.unique(y)[code] == y[rows]
            assert_allclose([pred, true], [prob[rows, code].mean(), hits.mean()])
            expected = binomtest(int(hits.sum()), int(count)).proportion_ci(0.9, method="wilson")
            assert_allclose(interval[:, 1], expected, atol=1e-12)
            seen += count
        assert seen == len(y)
    assert len(display.lines_) == (1 if classes == 2 else 3)


def test_equal_probabilities_share_a_bin():
    display = CalibrationDisplay.from_predictions([0, 1, 1, 0, 1], [0.5, 0.5, 0.5, 0.5, 0.9], n_bins=3)
    assert_equal(display.counts[0], [4, 1])
    assert_allclose(display.lines_[0].get_ydata(), [0.5, 1.0])
    for wrong in ([0.5, 2.0], [[0.2, 0.3, 0.5]] * 2):
        with pytest.raises(ValueError, match="y_prob must hold numbers from 0 to 1 for 2 rows and 2 classes"):
            CalibrationDisplay.from_predictions([0, 1], wrong)


# Learning curve and streams


@pytest.mark.parametrize("model", [MODEL, make_pipeline(StandardScaler(), RidgeClassifier())])
def test_learning_curves_are_those_of_refits(model):
    display = LearningCurveDisplay.from_estimator(model, X, Y, train_sizes=[12, 22], n_repeats=3)
    for size, line, scores in zip((12, 22), display.line_.get_ydata(), display.test_scores, strict=True):
        splits = StratifiedShuffleSplit(3, train_size=size, test_size=45 - size, random_state=0).split(X, Y)
        plain = [clone(model).fit(X[train], Y[train]).score(X[test], Y[test]) for train, test in splits]
        assert_allclose(scores, plain)
        assert_allclose(line, np.mean(plain))
    assert_equal(display.line_.get_xdata(), [12, 22])
    assert display.ax_.get_ylabel() == "held-out accuracy"


def test_learning_curves_take_shares_of_the_rows():
    display = LearningCurveDisplay.from_estimator(LSSVR(), X, X[:, 0], train_sizes=(0.2, 0.5), n_repeats=2)
    assert_equal(display.train_sizes, [9, 22])
    assert display.ax_.get_ylabel() == "held-out R2"
    with pytest.raises(ValueError, match="must be from 2 to 43 of the 45 rows"):
        LearningCurveDisplay.from_estimator(LSSVR(), X, X[:, 0], train_sizes=[2, 44])


def test_learning_curves_may_have_scores_of_the_rows_learnt_from():
    display = LearningCurveDisplay(
        train_sizes=[5, 9], test_scores=[[0.5, 0.7], [0.8, 0.8]], train_scores=[[1.0], [0.9]]
    )
    assert display.plot().train_.get_ydata().tolist() == [1.0, 0.9]
    assert_allclose(display.band, [[0.52, 0.8], [0.68, 0.8]])


def test_a_stream_is_tested_before_it_is_learnt():
    model, right = SlidingWindow(MODEL, 20).partial_fit(X[:15], Y[:15], classes=["<a>", "b", "c"]), []
    loo = []
    for row in range(15, 45):
        right.append(float(model.predict(X[[row]])[0] == Y[row]))
        model.partial_fit(X[[row]], Y[[row]])
        loo.append(model.loo_score_)
    display = StreamDisplay.from_estimator(SlidingWindow(MODEL, 20), X, Y, start=15, window=6)
    assert_equal(display.outcome, right)
    means = [np.mean(right[max(0, end - 6) : end]) for end in range(1, 31)]
    assert_allclose(display.line_.get_ydata(), means, atol=1e-12)
    assert_equal(display.line_.get_xdata(), np.arange(15, 45))
    assert_equal(display.loo_.get_ydata(), loo)


def test_streams_of_others_and_of_values():
    said = StreamDisplay.from_predictions([1, 2, 2], [1, 1, 2], start=5, window=2)
    assert_allclose(said.line_.get_xydata(), [[5, 1.0], [6, 0.5], [7, 0.5]])
    assert said.loo_ is None
    values = StreamDisplay.from_estimator(LSSVR(gamma=0.5), X, X[:, 0], start=40)
    assert values.ax_.get_ylabel() == "mean absolute error"
    first = abs(LSSVR(gamma=0.5).fit(X[:40], X[:40, 0]).predict(X[40:41])[0] - X[40, 0])
    assert values.line_.get_ydata()[0] == pytest.approx(first)
    assert StreamDisplay.from_estimator(SGDClassifier(random_state=0), X, Y, start=40).loo_ is None
    with pytest.raises(ValueError, match="needs partial_fit, which Ridge has not"):
        StreamDisplay.from_estimator(Ridge(), X, X[:, 0])
    with pytest.raises(ValueError, match="start=45 must leave rows"):
        StreamDisplay.from_estimator(MODEL, X, Y, start=45)
    with pytest.raises(ValueError, match=r"y_true \(2\) as long as y_pred \(1\)"):
        StreamDisplay.from_predictions([1, 2], [1])


# All of them

GRID = np.linspace(0.0, 1.0, 3)
DRAWN = [
    DecisionRegionsDisplay(
        x0=GRID,
        x1=GRID,
        response=np.eye(3, dtype=int),
        X=X[:4, :2],
        codes=np.arange(4) % 2,
        wrong=X[:4, 0] > 0,
        classes="ab",
    ),
    MarginsDisplay(margins=[-1.0, 1.0, 2.0], codes=[0, 0, 2], classes="abc"),  # a class without rows
    InfluenceDisplay(x=[-1.0, 1.0], influence=[2.0, 1.0]),
    CalibrationDisplay(prob_pred=[GRID], prob_true=[GRID], counts=[np.full(3, 5)], labels=["a"]),
    LearningCurveDisplay(train_sizes=[10, 20], test_scores=[[0.5, 0.6], [0.7, 0.7]]),
    StreamDisplay(outcome=[0, 1, 1]),
]


@pytest.mark.parametrize("display", DRAWN, ids=lambda each: type(each).__name__)
def test_given_axes_are_used_and_keywords_reach_the_artists(plt, display):
    figure, ax = plt.subplots()
    rows = isinstance(display, DecisionRegionsDisplay | InfluenceDisplay)
    kw = {"scatter_kw": {"lw": 3}} if rows else {"line_kw": {"lw": 3}}
    assert display.plot(ax, **kw) is display
    assert display.ax_ is ax
    assert display.figure_ is figure
    artist = next(getattr(display, name) for name in ("points_", "lines_", "line_") if hasattr(display, name))
    assert np.ravel((artist[0] if isinstance(artist, list) else artist).get_linewidth())[0] == 3
    figure.canvas.draw()
    display.plot()
    assert display.figure_ is not figure


@pytest.mark.parametrize("display", DRAWN, ids=lambda each: type(each).__name__)
def test_without_matplotlib_the_error_says_so(monkeypatch, display):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=rf"{type(display).__name__}.plot requires matplotlib"):
        display.plot()


def test_what_cannot_be_drawn_is_named():
    values = LSSVR().fit(X, X[:, 0])
    for display in (DecisionRegionsDisplay, MarginsDisplay, CalibrationDisplay):
        with pytest.raises(ValueError, match=f"{display.__name__} draws classifiers; LSSVR is none"):
            display.from_estimator(values, X, X[:, 0])
    model = clone(MODEL).fit(X, Y)
    for features in ((0,), (1, 1), (0, 3), (0, -1)):
        with pytest.raises(ValueError, match="must be two different numbers from 0 to 2"):
            DecisionRegionsDisplay.from_estimator(model, X, Y, features=features)
    for asked in ({"n_repeats": 0}, {"scoring": ["accuracy"]}):
        with pytest.raises(ValueError, match=r"n_repeats=.* must be at least 1, and scoring=.* one score"):
            LearningCurveDisplay.from_estimator(MODEL, X, Y, **asked)


def test_regions_of_sparse_rows_are_those_of_dense_ones():
    rows = sparse.csr_array(X)
    dense, found = (
        DecisionRegionsDisplay.from_estimator(clone(MODEL).fit(each, Y), each, Y, grid_resolution=5)
        for each in (X, rows)
    )
    assert_equal(found.response, dense.response)
    assert_equal(found.wrong, dense.wrong)
