"""nested_cross_validate refuses what makes no sense, by name."""

import numpy as np
import pytest
from sklearn import model_selection as skl
from sklearn.svm import SVC

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless.model_selection import nested_cross_validate
from support.nested import BINARY, CODES, GRID, GROUPS, LABELS, ORDER, VALUES, WEIGHT, ZEROS, N, X

SHARES = pytest.mark.parametrize("share", ["all", "none"])


@pytest.mark.parametrize("given", [LSSVC(), skl.GridSearchCV(SVC(), {"C": [1.0]}), None, "search"], ids=str)
def test_what_is_no_search_of_this_package_is_refused(given):
    with pytest.raises(ValueError, match="must be a FoldlessSearchCV"):
        nested_cross_validate(given, X, LABELS)


def test_parameters_of_fits_other_than_weights_are_named():
    with pytest.raises(ValueError, match=r"params holds \['groups', 'sample_weights'\]; only sample_weight"):
        nested_cross_validate(FoldlessSearchCV(LSSVC()), X, LABELS, params={"sample_weights": WEIGHT, "groups": GROUPS})


@SHARES
@pytest.mark.parametrize("y", [LABELS, BINARY], ids=["3 classes", "2 classes"])
@pytest.mark.parametrize("by", ["rows", "weights"])
def test_a_training_part_that_lacks_a_class_is_refused_by_its_number(by, y, share):
    """A decision of fewer classes would be read as one of all."""
    lacking = y != np.unique(y)[-1]
    weight = np.ones(N)
    first = (ORDER[10:], ORDER[:10])
    second = (np.flatnonzero(lacking), np.flatnonzero(~lacking))
    if by == "weights":
        second = (ORDER[5:], ORDER[:5])
        weight[ORDER[5:][~lacking[ORDER[5:]]]] = 0.0
        first = (ORDER[:25], ORDER[25:])
    search = FoldlessSearchCV(LSSVC(), GRID, share=share)
    label = np.unique(y)[-1]
    with pytest.raises(ValueError, match=rf"cv: .*split 1 .*{label}"):
        nested_cross_validate(search, X, y, cv=[first, second], params={"sample_weight": weight})


@SHARES
def test_one_class_is_named_and_two_are_asked_for(share):
    with pytest.raises(ValueError, match=r"y holds one class only .*'ant'.* at least two classes"):
        nested_cross_validate(FoldlessSearchCV(LSSVC(), GRID, share=share), X, np.repeat("ant", N), cv=3)


@SHARES
@pytest.mark.parametrize("spoiled", ["X", "y", "sample_weight"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_named(value, spoiled, share):
    given = {"X": X.copy(), "y": CODES.astype(float), "sample_weight": WEIGHT.copy()}
    given[spoiled].flat[7] = value
    search = FoldlessSearchCV(LSSVC(), GRID, share=share)
    with pytest.raises(ValueError, match=rf"Input {spoiled} contains"):
        nested_cross_validate(
            search, given["X"], given["y"], cv=skl.KFold(3), params={"sample_weight": given["sample_weight"]}
        )


@SHARES
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (WEIGHT[:-1], "sample_weight.shape"),
        (np.r_[WEIGHT, 1.0], "sample_weight.shape"),
        (-WEIGHT, "[Nn]egative.*sample_weight"),
        (np.ones((N, 2)), "[Ss]ample.?weight"),
    ],
    ids=["short", "long", "negative", "two columns"],
)
def test_bad_weights_are_named(weight, message, share):
    search = FoldlessSearchCV(LSSVC(), GRID, share=share)
    with pytest.raises(ValueError, match=message):
        nested_cross_validate(search, X, LABELS, cv=3, params={"sample_weight": weight})


@SHARES
@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([(np.arange(25), np.arange(20, N))], "cv: split 0 tests rows that it trains on"),
        ([(ORDER[10:], ORDER[:10]), (np.r_[ORDER[10:], ORDER[12]], ORDER[:10])], r"cv: .*split 1 repeats rows"),
        ([], "cv holds no split"),
        ([(ORDER[10:], ORDER[:0])], "cv: split 0 trains on 20 rows and tests 0"),
        (1, "n_splits=2 or more"),
        ("5", "cv"),
    ],
    ids=["trained and tested", "repeated", "none", "nothing tested", "one fold", "a word"],
)
def test_bad_splits_are_refused(cv, message, share):
    search = FoldlessSearchCV(LSSVC(), GRID, share=share)
    with pytest.raises(ValueError, match=message):
        nested_cross_validate(search, X, LABELS, cv=cv)


@pytest.mark.parametrize("rows", [0, 1])
def test_training_parts_too_small_to_leave_a_row_out_are_refused(rows):
    cv = [(ORDER[10:], ORDER[:10]), (ORDER[:rows], ORDER[10:])]
    with pytest.raises(ValueError, match=r"(?s)cv.*split 1|fewer than two rows|too few"):
        nested_cross_validate(FoldlessSearchCV(LSSVR(), GRID), X, VALUES, cv=cv)


@SHARES
def test_inner_splits_must_be_drawn_anew_for_every_training_part(share):
    search = FoldlessSearchCV(LSSVC(), GRID, cv=[(np.arange(12), np.arange(10, 18))], share=share)
    with pytest.raises(ValueError, match="of the search must be a number or a splitter"):
        nested_cross_validate(search, X, LABELS, cv=3)


@SHARES
def test_y_is_required_and_as_long_as_X(share):
    search = FoldlessSearchCV(LSSVC(), GRID, share=share)
    with pytest.raises(ValueError, match="y=None"):
        nested_cross_validate(search, X, None, cv=3)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        nested_cross_validate(search, X, LABELS[:-1], cv=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "nonsense"}, "criterion='nonsense' is unknown"),
        ({"param_grid": {"alpha": [-1.0]}}, "alpha=-1.0 must be a finite number > 0"),
        ({"param_grid": {"alpha": []}}, "alpha|no candidate"),
        ({"param_grid": {"nonsense": [1.0]}}, "Invalid parameter 'nonsense'"),
        ({"method": "newton"}, "method='newton' is unknown"),
        ({"estimator": SVC()}, "estimator=SVC is not a least-squares model"),
    ],
)
def test_a_search_that_cannot_be_done_is_refused_as_by_fit(options, message):
    search = FoldlessSearchCV(LSSVC(), GRID).set_params(**options)
    with pytest.raises(ValueError, match=message):
        search.fit(X, LABELS)
    with pytest.raises(ValueError, match=message):
        nested_cross_validate(search, X, LABELS, cv=3)


def test_criterion_by_weight_is_nan_for_a_test_part_without_weight():
    """Row 4 counts for nothing: its criterion is not a number, and nothing warns."""
    search = FoldlessSearchCV(LSSVR(), GRID, criterion_weight="sample_weight")
    cv = [(np.setdiff1d(np.arange(N), [4, 18]), np.array([4, 18])), (ORDER[10:], ORDER[:10])]
    result = nested_cross_validate(search, X, VALUES, cv=cv, params={"sample_weight": ZEROS})
    np.testing.assert_array_equal(np.isnan(result.outer_criterion), [True, False])
    assert np.isfinite(result.test_score).all()
