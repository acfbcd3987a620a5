"""X, y and weights that cannot be fitted are refused with an error that names the argument."""

import numpy as np
import pytest
import scipy.sparse as sp

from foldless import LSSVC, LSSVR, AdaptiveKDA, FoldlessSearchCV
from foldless.model_selection import (
    cross_val_predict,
    cross_val_score,
    nested_cross_validate,
    permutation_test_score,
)
from support.bad_input import D, N, data, every_classifier, every_kind, with_value

# -- X and y -----------------------------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(("value", "found"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_x_that_is_not_finite_is_refused_in_fit_and_predict(kind, form, value, found):
    X, y = data(kind)
    with pytest.raises(ValueError, match=f"X contains {found}"):
        kind().fit(form(with_value(X, value)), y)
    with pytest.raises(ValueError, match=f"X contains {found}"):
        kind().fit(X, y).predict(form(with_value(X, value)))


@every_kind
@pytest.mark.parametrize(("value", "found"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_y_that_is_not_finite_is_refused(kind, value, found):
    X, y = data(kind)
    with pytest.raises(ValueError, match=f"y contains {found}"):
        kind().fit(X, with_value(y, value))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_targets_that_are_not_finite_are_refused_as_python_objects_too(value):
    X, y = data(LSSVR)
    with pytest.raises(ValueError, match=r"\by\b.*(infinity|finite)"):
        LSSVR().fit(X, np.array(list(with_value(y, value)), dtype=object))


def test_targets_that_are_words_are_refused_by_name():
    X, _ = data(LSSVR)
    with pytest.raises(ValueError, match=r"\by\b"):
        LSSVR().fit(X, np.array(["low", "high"] * (N // 2)))


def test_targets_too_large_for_the_precision_of_x_are_refused_by_name():
    X, y = data(LSSVR)
    with pytest.raises(ValueError, match=r"\by\b.*float32"), np.errstate(over="ignore"):
        LSSVR().fit(X.astype(np.float32), y * 1e39)


@every_classifier
def test_continuous_labels_are_refused(kind):
    X, _ = data(kind)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        kind().fit(X, X[:, 0])


@every_kind
@pytest.mark.parametrize(
    ("shape", "message"),
    [((N,), "Expected 2D array, got 1D"), ((N, D, 1), "dim 3"), ((0, D), "0 sample"), ((N, 0), "0 feature")],
)
def test_x_of_wrong_shape_is_refused(kind, shape, message):
    with pytest.raises(ValueError, match=message):
        kind().fit(np.zeros(shape), data(kind)[1][: shape[0]])


@every_kind
def test_y_of_wrong_length_is_refused(kind):
    X, y = data(kind)
    with pytest.raises(ValueError, match=rf"inconsistent numbers of samples: \[{N}, {N - 1}\]"):
        kind().fit(X, y[:-1])


@every_kind
def test_missing_y_is_refused(kind):
    with pytest.raises(ValueError, match="requires y to be passed"):
        kind().fit(data(kind)[0], None)


@every_classifier
def test_labels_in_two_columns_are_refused(kind):
    X, y = data(kind)
    with pytest.raises(ValueError, match=rf"y should be a 1d array, got an array of shape \({N}, 2\)"):
        kind().fit(X, np.column_stack([y, y]))


def test_targets_in_three_dimensions_are_refused():
    with pytest.raises(ValueError, match="dim 3"):
        LSSVR().fit(data(LSSVR)[0], np.zeros((N, 2, 2)))


@every_classifier
@pytest.mark.parametrize("label", [0, "cat"])
def test_one_class_is_named_and_two_are_asked_for(kind, label):
    with pytest.raises(ValueError, match=f"one class only .*{label}.*needs at least two classes"):
        kind().fit(data(kind)[0], [label] * N)


@every_kind
def test_one_sample_is_too_few(kind):
    X, y = data(kind)
    with pytest.raises(ValueError, match="n_samples=1: at least two samples are needed"):
        kind().fit(X[:1], y[:1])


@every_kind
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_predict_with_another_number_of_features_is_refused(kind, kernel):
    X, y = data(kind)
    model = kind(kernel).fit(X, y)
    for method in ("predict", "decision_function", "transform", "predict_interval", "predict_set"):
        if hasattr(model, method):
            with pytest.raises(ValueError, match=f"X has {D - 1} features, but {kind.__name__} is expecting {D}"):
                getattr(model, method)(X[:, 1:])


# -- weights -----------------------------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (with_value(np.ones(N), -1.0), "Negative values in data passed to `sample_weight`"),
        (with_value(np.ones(N), np.nan), "sample_weight contains NaN"),
        (with_value(np.ones(N), np.inf), "sample_weight contains infinity"),
        (np.ones(N - 1), rf"sample_weight.shape == \({N - 1},\), expected \({N},\)"),
        (np.ones((N, 2)), "Sample weights must be 1D"),
        (np.zeros(N), "Sample weights must contain at least one non-zero|sample_weight leaves fewer than two rows"),
        (with_value(np.zeros(N), 1.0), "sample_weight leaves fewer than two rows with a positive weight"),
    ],
    ids=["negative", "nan", "inf", "short", "2d", "zero", "one row"],
)
def test_bad_sample_weights_are_refused(kind, weights, message):
    X, y = data(kind)
    with pytest.raises(ValueError, match=message):
        kind().fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match=message):
        cross_val_predict(kind(), X, y, params={"sample_weight": weights})


@every_classifier
def test_sample_weights_that_leave_one_class_are_refused(kind):
    X, y = data(kind)
    with pytest.raises(ValueError, match=r"sample_weight leaves one class only; at least two classes need rows"):
        kind().fit(X, y, sample_weight=(y == 1).astype(float))


@pytest.mark.parametrize("missing", [None, np.nan], ids=str)
@pytest.mark.parametrize(
    "call",
    [
        lambda X, y: LSSVC().fit(X, y),
        lambda X, y: AdaptiveKDA().fit(X, y),
        lambda X, y: FoldlessSearchCV(LSSVC()).fit(X, y),
        lambda X, y: cross_val_score(LSSVC(), X, y),
        lambda X, y: nested_cross_validate(FoldlessSearchCV(LSSVC()), X, y, cv=2),
        lambda X, y: permutation_test_score(LSSVC(), X, y),
    ],
    ids=["fit", "adaptive", "search", "scores", "nested", "permutation"],
)
def test_a_missing_label_is_told_with_its_row(call, missing):
    labels = np.array(["a", "b"] * 10, dtype=object)
    labels[7] = missing
    with pytest.raises(ValueError, match=f"y holds {missing} in row 7 .*a label is missing"):
        call(np.eye(20), labels)


def test_columns_of_texts_are_named():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"size": np.arange(20.0), "region": ["north", "south"] * 10})
    with pytest.raises(ValueError, match=r"X: column 'region' holds texts or categories.*OneHotEncoder"):
        LSSVC().fit(frame, np.arange(20) % 2)
    with pytest.raises(ValueError, match=r"X: column 1 \(the first is 0\) holds texts or categories"):
        LSSVC().fit(frame.to_numpy(), np.arange(20) % 2)


DAYS = np.datetime64("2020-01-01") + np.arange(20)
TIMES = {
    "dates": DAYS,
    "instants": DAYS.astype("datetime64[ms]"),
    "durations": (DAYS - DAYS[0]).astype("timedelta64[ms]"),
}


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_dates_are_named_in_fit_and_predict(library, times):
    frames = pytest.importorskip(library)
    y, size = np.arange(20) % 2, np.arange(20.0)
    objects = frames.Series("day", times.tolist()) if library == "polars" else frames.Series(times.astype(object))
    for day in (times, objects):
        frame = frames.DataFrame({"size": size, "day": day})
        for model in (LSSVC(), AdaptiveKDA(), FoldlessSearchCV(LSSVC())):
            with pytest.raises(ValueError, match=r"X: column 'day' holds dates or times.*days since the first date"):
                model.fit(frame, y)
        numbers = frames.DataFrame({"size": size, "day": size})
        with pytest.raises(ValueError, match=r"X: column 'day' holds dates or times"):
            LSSVC().fit(numbers, y).predict(frame)
        with pytest.raises(ValueError, match=r"X: column 'day' holds dates or times"):
            cross_val_score(LSSVC(), frame, y)


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_columns_of_dates_in_arrays_and_lists_are_numbered(times):
    y, size = np.arange(20) % 2, np.arange(20.0).astype(object)
    with pytest.raises(ValueError, match=r"X: column 0 \(the first is 0\) holds dates or times"):
        LSSVC().fit(times[:, None], y)
    mixed = np.column_stack([size, times.astype(object)])
    for table in (mixed, mixed.tolist()):
        with pytest.raises(ValueError, match=r"X: column 1 \(the first is 0\) holds dates or times"):
            LSSVC().fit(table, y)
    scalars = np.empty((20, 2), object)
    scalars[:, 0], scalars[:, 1] = size, list(times)  # objects of NumPy, which NumPy would make numbers of
    with pytest.raises(ValueError, match=r"X: column 1 \(the first is 0\) holds dates or times"):
        LSSVC().fit(scalars, y)


def test_numbers_of_any_type_are_taken_from_frames():
    pd = pytest.importorskip("pandas")
    X, y = np.arange(40).reshape(20, 2), np.arange(20) % 2
    expected = LSSVC().fit(X, y).decision_function(X)
    frame = pd.DataFrame({"a": pd.array(X[:, 0], dtype="Int64"), "b": X[:, 1].astype(str)}, dtype=None)
    np.testing.assert_array_equal(LSSVC().fit(frame, y).decision_function(frame), expected)


def test_names_that_are_nearly_right_are_suggested():
    with pytest.raises(ValueError, match=r"penalty='coeff' is unknown.*Did you mean 'coef'\?"):
        LSSVC(penalty="coeff").fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"kernel='RBF' is unknown.*Did you mean 'rbf'\?"):
        LSSVC("RBF").fit(np.eye(4), [0, 1, 0, 1])
