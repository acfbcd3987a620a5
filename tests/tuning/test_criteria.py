"""Selection criteria against plain loops and scikit-learn's metrics, their derivatives against central differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn import metrics

from foldless._engine import linalg
from foldless._engine.tuning import criteria
from foldless._engine.tuning.criteria import CRITERIA, balanced_halves, resolve, weights
from support.arrays import KINDS, Arrays
from support.tolerances import assert_close

COLUMNS = {name: each for name, each in CRITERIA.items() if not each.of_decisions}
SMOOTH = [name for name, each in COLUMNS.items() if each.smooth]
HARD = {"smooth_error": "error", "smooth_ber": "ber", "smooth_auc": "auc"}
SLOPES = [10.0, 1.5]
every_criterion = pytest.mark.parametrize("name", COLUMNS)
smooth_ones = pytest.mark.parametrize("name", SMOOTH)
weighted_or_not = pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
sixty_examples = settings(deadline=None, max_examples=80, derandomize=True)


def problem(n=23, weighted=False, seed=0, leading=()):
    """Fits, targets +-1 and weights of sum 1, rows along the last axis."""
    rng = np.random.default_rng(seed)
    f = rng.normal(size=(*leading, n))
    t = np.where(rng.uniform(size=(*leading, n)) < 0.4, 1.0, -1.0)
    t[..., :2] = 1.0, -1.0
    w = rng.uniform(0.1, 2.0, (*leading, n)) if weighted else np.ones((*leading, n))
    return f + 0.6 * t, t, w / w.sum(-1, keepdims=True)


def mean_over_pairs(f, t, w, loss):
    """Weighted mean of a loss over all pairs of a row above and a row below."""
    total = mass = 0.0
    for i in np.flatnonzero(t > 0):
        for j in np.flatnonzero(t < 0):
            total += w[i] * w[j] * loss(f[i] - f[j])
            mass += w[i] * w[j]
    return total / mass


def sum_over_rows(f, t, w, loss):
    """Weighted sum of a loss over all rows."""
    return sum(w[i] * loss(f[i], t[i]) for i in range(len(f)))


def mean_over_classes(f, t, w, loss):
    """Mean of the losses of both classes."""
    return np.mean([sum_over_rows(f[t == s], t[t == s], w[t == s], loss) / w[t == s].sum() for s in (1, -1)])


# One row or pair at a time; a new criterion needs a line here.
FORMULAS = {
    "press": lambda f, t, w, slope: sum_over_rows(f, t, w, lambda f, t: (t - f) ** 2),
    "error": lambda f, t, w, slope: sum_over_rows(f, t, w, lambda f, t: float(np.sign(f) != t)),
    "smooth_error": lambda f, t, w, slope: sum_over_rows(f, t, w, lambda f, t: (1 - t * np.tanh(slope * f)) / 2),
    "ber": lambda f, t, w, slope: mean_over_classes(f, t, w, lambda f, t: float(np.sign(f) != t)),
    "smooth_ber": lambda f, t, w, slope: mean_over_classes(f, t, w, lambda f, t: (1 - t * np.tanh(slope * f)) / 2),
    "hinge": lambda f, t, w, slope: sum_over_rows(f, t, w, lambda f, t: max(1 - t * f, 0)),
    "hinge2": lambda f, t, w, slope: sum_over_rows(f, t, w, lambda f, t: max(1 - t * f, 0) ** 2),
    "auc": lambda f, t, w, slope: mean_over_pairs(f, t, w, lambda gap: (1 - np.sign(gap)) / 2),
    "smooth_auc": lambda f, t, w, slope: mean_over_pairs(f, t, w, lambda gap: (1 - np.tanh(slope * gap)) / 2),
}


def loss(name, f, t, w, slope=10.0):
    return COLUMNS[name].with_slope(slope).function(f, t, w)


# -- values ------------------------------------------------------------------------------------------------------------


@every_criterion
@weighted_or_not
@pytest.mark.parametrize("tied", [False, True], ids=["", "ties"])
@pytest.mark.parametrize("slope", SLOPES)
def test_every_criterion_is_its_formula(name, weighted, tied, slope):
    f, t, w = problem(weighted=weighted)
    f = np.round(f, 0) if tied else f  # zeros among them, and many equal pairs
    assert name in FORMULAS, f"write the formula of {name} as a loop in FORMULAS"
    assert loss(name, f, t, w, slope)[0] == pytest.approx(FORMULAS[name](f, t, w, slope), rel=1e-12)


def test_default_slope_is_ten():
    f, t, w = problem(weighted=True)
    for name in HARD:
        assert COLUMNS[name].function(f, t, w)[0] == loss(name, f, t, w, 10.0)[0]
        assert loss(name, f, t, w, 2.0)[0] != loss(name, f, t, w, 10.0)[0]


def test_slopes_change_nothing_but_smooth_versions():
    for name in set(COLUMNS) - set(HARD):
        assert COLUMNS[name].with_slope(3.0) is COLUMNS[name]


@weighted_or_not
@pytest.mark.parametrize("tied", [False, True], ids=["", "ties"])
def test_losses_are_scikit_learns_metrics(weighted, tied):
    f, t, w = problem(60, weighted=weighted)
    f = np.round(f, 1) if tied else f
    f = np.where(f == 0, 0.05, f)  # a fit of 0 has no sign
    sign, options = np.where(f > 0, 1.0, -1.0), {"sample_weight": w}
    assert tied == (len(np.unique(f)) < 60)
    expected = {
        "press": metrics.mean_squared_error(t, f, **options),
        "error": metrics.zero_one_loss(t, sign, **options),
        "ber": 1 - metrics.balanced_accuracy_score(t, sign, **options),
        "hinge": metrics.hinge_loss(t, f, **options),
        "auc": 1 - metrics.roc_auc_score(t, f, **options),
    }
    for name, value in expected.items():
        assert loss(name, f, t, w)[0] == pytest.approx(value, rel=1e-12), name


@pytest.mark.parametrize(("name", "hard"), HARD.items())
def test_steep_smooth_criteria_become_the_hard_ones(name, hard):
    f, t, w = problem(weighted=True)
    f = np.round(f, 2) + 0.005 * (t > 0)  # nothing within 0.005 of a jump
    assert loss(name, f, t, w, 1e5)[0] == pytest.approx(loss(hard, f, t, w)[0], abs=1e-12)
    assert loss(name, f, t, w, 1e-9)[0] == pytest.approx(0.5)


def test_a_fit_of_exactly_zero_is_wrong():
    zero = np.zeros(4)
    t = np.array([1.0, -1.0, 1.0, -1.0])
    assert loss("error", zero, t, np.full(4, 0.25))[0] == 1.0
    assert loss("ber", zero, t, np.full(4, 0.25))[0] == 1.0
    assert loss("auc", zero, t, np.full(4, 0.25))[0] == 0.5


def test_perfect_and_reversed_fits_have_the_extreme_losses():
    _, t, w = problem(weighted=True)
    for name in ("error", "ber", "hinge", "hinge2", "auc", "press"):
        assert loss(name, t, t, w)[0] == 0.0, name
    for name in ("error", "ber", "auc"):
        assert loss(name, -t, t, w)[0] == pytest.approx(1.0), name


# -- derivatives -------------------------------------------------------------------------------------------------------


def differences(function, f, h=1e-5):
    """Central differences of a function of the whole vector f, one entry at a time."""
    return np.array([(function(f + h * e) - function(f - h * e)) / (2 * h) for e in np.eye(len(f))])


@smooth_ones
@weighted_or_not
@pytest.mark.parametrize("slope", SLOPES)
@pytest.mark.parametrize("seed", range(3))
def test_derivatives_equal_central_differences(name, weighted, slope, seed):
    f, t, w = problem(17, weighted, seed)
    value, derivative = loss(name, f, t, w, slope)
    assert np.ndim(value) == 0
    assert_close(derivative, differences(lambda f: loss(name, f, t, w, slope)[0], f), rtol=1e-7)


@every_criterion
def test_what_is_listed_as_smooth_has_a_derivative_and_the_rest_has_none(name):
    assert (loss(name, *problem())[1] is not None) == COLUMNS[name].smooth
    assert COLUMNS[name].has_slope == (name in HARD)


@pytest.mark.parametrize("slope", [-1.0, 0.0, np.nan, np.inf, None, "steep", [1.0, 2.0]])
def test_a_slope_is_a_finite_positive_number(slope):
    with pytest.raises(ValueError, match="must be a finite number > 0"):
        COLUMNS["smooth_error"].with_slope(slope)


def test_smooth_auc_in_blocks_equals_smooth_auc_at_once():
    f, t, w = problem(40, weighted=True)
    value, derivative = criteria.smooth_auc(f, t, w)
    for size in (1, 7, 50, 101):
        again, slopes = criteria.smooth_auc(f, t, w, together=size)
        assert again == pytest.approx(value, rel=1e-14)
        assert_close(slopes, derivative, rtol=1e-14)


# -- any shape, any weights --------------------------------------------------------------------------------------------


@every_criterion
@pytest.mark.parametrize("leading", [(3,), (2, 3), (1,), (2, 1)], ids=str)
def test_criteria_of_leading_axes_equal_those_of_each_problem(name, leading):
    f, t, w = problem(11, True, leading=leading)
    values, slopes = loss(name, f, t, w)
    assert np.shape(values) == leading
    assert slopes is None or slopes.shape == f.shape
    for place in np.ndindex(leading):
        value, slope = loss(name, f[place], t[place], w[place])
        assert values[place] == pytest.approx(value, rel=1e-14)
        assert slope is None or np.allclose(slopes[place], slope, rtol=1e-13, atol=0)


@every_criterion
def test_many_fits_share_targets_and_weights_by_broadcasting(name):
    f, t, w = problem(11, True, leading=(4,))
    values, slopes = loss(name, f, t[0], w[0])
    for k in range(4):
        value, slope = loss(name, f[k], t[0], w[0])
        assert values[k] == pytest.approx(value, rel=1e-14)
        assert slope is None or np.allclose(slopes[k], slope, rtol=1e-13, atol=0)


@every_criterion
def test_rows_of_weight_zero_do_not_count(name):
    f, t, w = problem(12, True)
    more = [np.r_[a, b] for a, b in zip((f, t, w), problem(5), strict=True)]
    more[2][12:] = 0.0
    value, slope = loss(name, f, t, w)
    again, slopes = loss(name, *more)
    assert again == pytest.approx(value, rel=1e-13)
    if slope is not None:
        assert_close(slopes, np.r_[slope, np.zeros(5)], rtol=1e-13)


@every_criterion
def test_integer_weights_equal_repeated_rows_in_any_order(name):
    f, t, _ = problem(12)
    times = np.arange(12) % 3 + 1
    again = np.random.default_rng(1).permutation(np.repeat(np.arange(12), times))
    value, slope = loss(name, f, t, times / times.sum())
    repeated, slopes = loss(name, f[again], t[again], np.full(len(again), 1 / len(again)))
    assert repeated == pytest.approx(value, rel=1e-13)
    if slope is not None:
        assert_close(np.bincount(again, slopes), slope, rtol=1e-13)


@every_criterion
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_missing_class_leaves_finite_losses(name, sign):
    """Pairs have nothing to say (one half); a balanced error leaves the half of the missing class out."""
    f, _, w = problem(9, True)
    value, slope = loss(name, f, np.full(9, sign), w)
    assert np.isfinite(value)
    assert slope is None or np.isfinite(slope).all()
    if name in ("auc", "smooth_auc"):
        assert value == 0.5
        assert slope is None or not slope.any()
    if name in ("ber", "smooth_ber"):
        whole = loss(name.replace("ber", "error"), f, np.full(9, sign), w)[0]
        assert value == pytest.approx(whole / 2)


@every_criterion
def test_single_precision_stays_single_and_near(name):
    f, t, w = problem(40, True)
    value, slope = loss(name, f, t, w)
    single, slopes = loss(name, *(a.astype(np.float32) for a in (f, t, w)))
    assert single == pytest.approx(value, rel=1e-5)
    if slope is not None:
        assert slopes.dtype == np.float32
        assert_close(slopes, slope.astype(np.float32), rtol=1e-4)


@every_criterion
def test_columns_of_several_classes_are_judged_one_by_one(name):
    f, t, w = problem(14, True, leading=(3,))
    values, slopes = COLUMNS[name](f.T, t.T, w.T)
    assert values.shape == (3,)
    assert slopes is None or slopes.shape == (14, 3)
    for k in range(3):
        value, slope = loss(name, f[k], t[k], w[k])
        assert values[k] == pytest.approx(value, rel=1e-14)
        assert slope is None or np.allclose(slopes[:, k], slope, rtol=1e-13, atol=0)


# -- theorems ----------------------------------------------------------------------------------------------------------


@st.composite
def classified(draw):
    """Fits of several classes, zeros and ties among them, and labels."""
    n, c = draw(st.integers(1, 12)), draw(st.integers(3, 6))
    F = draw(arrays.arrays(float, (n, c), elements=st.integers(-4, 4).map(lambda v: v / 2)))
    codes = draw(arrays.arrays(int, n, elements=st.integers(0, c - 1)))
    masses = draw(arrays.arrays(float, n, elements=st.floats(0.1, 5.0)))
    return F, codes, masses / masses.sum()


@given(classified())
@sixty_examples
def test_binary_errors_add_up_to_at_least_the_error_of_all_classes(drawn):
    """Theorem 1 of Bo, Wang and Jiao (2006): a wrong maximum has a wrong sign somewhere."""
    F, codes, w = drawn
    T = np.where(np.arange(F.shape[1]) == codes[:, None], 1.0, -1.0)
    binary = CRITERIA["error"](F, T, np.broadcast_to(w[:, None], F.shape))[0].sum()
    assert binary >= w @ (F.argmax(1) != codes) - 1e-12
    for name in ("hinge", "hinge2", "press"):  # and so do the bounds of the binary errors
        assert CRITERIA[name](F, T, np.broadcast_to(w[:, None], F.shape))[0].sum() >= binary - 1e-12


@given(classified())
@sixty_examples
def test_auc_depends_on_the_order_of_fits_only(drawn):
    F, codes, w = drawn
    t = np.where(codes == 0, 1.0, -1.0)
    for k in range(F.shape[1]):
        value = criteria.auc(F[:, k], t, w)[0]
        assert -1e-15 <= value <= 1 + 1e-15
        assert criteria.auc(np.exp(F[:, k]), t, w)[0] == pytest.approx(value, abs=1e-12)
        flipped = criteria.auc(-F[:, k], t, w)[0]
        assert value + flipped == pytest.approx(1.0)


# -- weights of rows ---------------------------------------------------------------------------------------------------


@weighted_or_not
def test_halved_weights_give_both_signs_one_half(weighted):
    _, t, w = problem(13, weighted, leading=(2, 4))
    both = balanced_halves(t, w)
    assert_close(np.where(t > 0, both, 0).sum(-1), np.full((2, 4), 0.5))
    assert_close(np.where(t < 0, both, 0).sum(-1), np.full((2, 4), 0.5))
    for sign in (1, -1):  # within a class nothing changes
        ratio = np.where(t == sign, both / w, np.nan)
        assert_close(np.nanmin(ratio, -1), np.nanmax(ratio, -1))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_halved_weights_of_one_sign_leave_the_other_half_out(sign):
    w = np.array([0.1, 0.2, 0.7])
    assert_close(balanced_halves(np.full(3, sign), w), w / 2)
    assert not balanced_halves(np.array([1.0, 1.0, -1.0]), np.array([0.5, 0.5, 0.0]))[2]


def test_every_kind_of_criterion_weight_equals_its_definition():
    """In proportion to what counts: rows that were left out but not tested count nothing, whatever the kind."""
    _, T, _ = problem(10, leading=(3,))
    T = T.T
    equal, some = np.ones(10), np.where(np.arange(10) == 4, 0.0, np.linspace(0.5, 2.0, 10))
    for kind in (None, "sample_weight"):
        assert_close(weights(kind, T, equal), np.full((10, 3), 0.1))
        assert_close(weights(kind, T, some), np.repeat(some[:, None] / some.sum(), 3, axis=1))
    for counted in (equal, some):
        balanced = weights("balanced", T, counted)
        for k in range(3):
            for side in (1, -1):
                mine = T[:, k] == side
                assert_close(balanced[mine, k], counted[mine] / (2 * counted[mine].sum()))
        for kind in criteria.WEIGHTS:
            assert_close(weights(kind, T, counted).sum(0), np.ones(3))


@pytest.mark.parametrize(("plain", "balanced"), [("error", "ber"), ("smooth_error", "smooth_ber")])
def test_balanced_weights_turn_errors_into_balanced_errors(plain, balanced):
    f, t, w = problem(30, leading=(3,))
    W = weights("balanced", t.T, np.ones(30))
    assert_close(CRITERIA[plain](f.T, t.T, W)[0], CRITERIA[balanced](f.T, t.T, w.T)[0])


# -- functions of users ------------------------------------------------------------------------------------------------


def absolute(f, t, w):
    """A loss without derivative."""
    return w @ np.abs(t - f)


def quartic(f, t, w):
    """A loss with one."""
    return w @ (t - f) ** 4, -4 * w * (t - f) ** 3


class Steep:
    """A function with a state."""

    def __init__(self, power):
        self.power = power

    def __call__(self, f, t, w):
        return float(w @ np.abs(t - f) ** self.power)


def test_functions_are_called_once_for_each_class():
    f, t, w = problem(8, True, leading=(3,))
    asked = []

    def remember(*arguments):
        asked.append(arguments)
        return absolute(*arguments)

    values, slopes = resolve(remember)(f.T, t.T, w.T)
    assert slopes is None
    assert values.shape == (3,)
    for k, (own, arguments) in enumerate(zip(zip(f, t, w, strict=True), asked, strict=True)):
        for ours, theirs in zip(own, arguments, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert values[k] == absolute(*own)


def test_functions_may_return_a_derivative():
    f, t, w = problem(8, True, leading=(3,))
    values, slopes = resolve(quartic)(f.T, t.T, w.T)
    for k in range(3):
        value, slope = quartic(f[k], t[k], w[k])
        assert values[k] == value
        np.testing.assert_array_equal(slopes[:, k], slope)


@pytest.mark.parametrize(
    "function",
    [
        Steep(1.5),
        lambda f, t, w: int(np.sum(t * f <= 0)),
        lambda f, t, w: np.array(w @ np.abs(t - f)),
        lambda f, t, w: np.float32(1.0),
        lambda f, t, w: (quartic(f, t, w)[0], quartic(f, t, w)[1].tolist()),
    ],
    ids=["object", "integer", "0-d array", "float32", "list of slopes"],
)
def test_functions_may_return_any_kind_of_number(function):
    f, t, w = problem(8, True, leading=(2,))
    values, slopes = resolve(function)(f.T, t.T, w.T)
    assert values.shape == (2,)
    assert values.dtype == float
    assert slopes is None or slopes.shape == (8, 2)


def test_functions_are_taken_for_smooth_criteria_of_values():
    chosen = resolve(absolute)
    assert chosen.user
    assert chosen.smooth  # until it turns out otherwise
    assert not chosen.labels
    assert not chosen.of_decisions
    assert chosen.with_slope(3.0) is chosen


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda f: np.nan, "returned .*nan.*finite"),
        (lambda f: np.inf, "returned .*inf.*finite"),
        (lambda f: (np.nan, np.zeros_like(f)), "returned .*nan.*finite"),
        (lambda f: None, "returned .*(nan|None)"),
        (lambda f: "small", "returned .*small"),
        (lambda f: np.abs(f), "must return one finite loss"),
        (lambda f: (1.0, np.zeros(7)), r"returned a derivative of shape \(.*7"),
        (lambda f: (1.0, np.zeros((8, 2))), r"returned a derivative of shape \(.*8"),
        (lambda f: (1.0, 2.0), r"returned a derivative of shape \(\)"),
        (lambda f: (1.0, np.full(8, np.nan)), "one finite number for each of the 8 fits"),
        (lambda f: (1.0, np.zeros(8), 3), "returned"),
    ],
    ids=["nan", "inf", "nan with slopes", "None", "word", "vector", "short", "matrix", "number", "nan slopes", "three"],
)
@pytest.mark.parametrize("classes", [1, 2])
def test_answers_that_cannot_be_used_name_the_criterion(answer, message, classes):
    f, t, w = problem(8, leading=(classes,))

    def mine(f, t, w):
        return answer(f)

    with pytest.raises(ValueError, match=message) as error:
        resolve(mine)(f.T, t.T, w.T)
    assert str(error.value).startswith("criterion=")
    assert "mine" in str(error.value)


@pytest.mark.parametrize("name", ["accuracy", "", None, 3, ["press"], {"press"}], ids=repr)
def test_unknown_criteria_are_told_the_known_ones(name):
    with pytest.raises(ValueError, match=r"criterion=.* is unknown; use one of .*'press'.* or a callable") as error:
        resolve(name)
    assert repr(name) in str(error.value)


def test_names_resolve_to_what_is_listed():
    for name, each in CRITERIA.items():
        assert resolve(name) is each
    assert CRITERIA["multiclass_error"].of_decisions


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("name", [*COLUMNS, "of a user"])
def test_criteria_of_other_kinds_of_arrays_are_those_of_numpy(name, kind):
    criterion = resolve(lambda f, t, w: (w @ (f - t) ** 2, 2 * w * (f - t))) if name == "of a user" else COLUMNS[name]
    F, T, W = (np.transpose(values) for values in problem(weighted=True, leading=(2,)))
    of_kind = Arrays.of(kind)
    loss, slopes = criterion(of_kind(F), of_kind(T), of_kind(W))
    expected, expected_slopes = criterion(F, T, W)
    assert_close(loss, expected)
    assert (slopes is None) is (expected_slopes is None)
    if slopes is not None:
        assert of_kind.are(slopes)
        assert_close(linalg.to_host(slopes), expected_slopes)
