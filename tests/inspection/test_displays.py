"""Displays: what is drawn are the numbers of the result."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_equal

from foldless.inspection import GeneralisationDisplay, PatternDisplay, PermutationDisplay, TimeCourseDisplay
from foldless.inspection._canvas import p_label

# Old versions of matplotlib call deprecated names of their own dependencies.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:matplotlib")


class Result(tuple):
    """Three values with attributes, as permutation tests return them."""


def permutation_result(score, null, scoring="accuracy", greater_is_better=True):
    """p-values by definition: the share of permutations (the true labels among them) that are at least as good."""
    score, null = np.asarray(score, dtype=float), np.asarray(null, dtype=float)
    better = np.greater_equal if greater_is_better else np.less_equal
    best = np.nanmax if greater_is_better else np.nanmin
    m = len(null)
    pvalue = np.where(np.isnan(score), np.nan, (1 + sum(better(row, score) for row in null)) / (m + 1))
    result = Result((score, null, pvalue))
    result.scoring, result.greater_is_better = scoring, greater_is_better
    result.pvalue_fwe = result.max_scores = None
    if score.ndim:
        result.max_scores = np.array([best(row) for row in null])
        b = sum(better(value, score) for value in result.max_scores)
        result.pvalue_fwe = np.where(np.isnan(score), np.nan, (1 + b) / (m + 1))
    return result


def family(greater_is_better=True, m=199, k=12):
    rng = np.random.default_rng(3)
    null = rng.normal(0.5, 0.05, (m, k))
    score = rng.normal(0.5, 0.05, k)
    score[[2, 3, 4, 9]] += 0.3 if greater_is_better else -0.3
    return permutation_result(score, null, "roc_auc" if greater_is_better else "error", greater_is_better)


def generalisation(greater_is_better=True, m=49, k=7):
    rng = np.random.default_rng(4)
    score = rng.normal(0.5, 0.02, (k, k))
    score[2:5, 3:6] += 0.4 if greater_is_better else -0.4
    score[3, 4] = 0.5  # a hole
    score[0, 6] += 0.4 if greater_is_better else -0.4
    return permutation_result(score, rng.normal(0.5, 0.02, (m, k, k)), "score", greater_is_better)


def patterns(k=3, d=5):
    rng = np.random.default_rng(5)
    values = {name: rng.normal(size=(k, d)) for name in ("weights", "patterns")}
    names = ("pvalue", "pvalue_fwe", "weights_pvalue", "weights_pvalue_fwe")
    pvalues = {name: rng.choice([0.01, 0.04, 0.2, 0.9], size=(k, d)) for name in names}
    return SimpleNamespace(
        **values,
        **pvalues,
        outputs=["hand", "foot", "tongue"][:k],
        feature_names=list("abcdefgh"[:d]),
        n_permutations=99,
    )


# The null distribution


def test_histogram_counts_every_permutation_in_bins_of_whole_steps(plt):
    hits = np.random.default_rng(0).binomial(200, 0.5, 999)
    display = PermutationDisplay.from_result(permutation_result(0.6, hits / 200))
    counted, steps = 0, set()
    for bar in display.bars_:
        low, high = bar.get_x() * 200, (bar.get_x() + bar.get_width()) * 200
        inside = [h for h in range(201) if low < h < high]
        steps.add(len(inside))
        assert abs(low - round(low)) == pytest.approx(0.5)
        assert bar.get_height() == np.isin(hits, inside).sum()
        counted += bar.get_height()
    assert counted == 999
    assert len(steps) == 1
    assert len(display.bars_) > 5


@pytest.mark.parametrize(
    "null", [np.full(20, 0.5), np.linspace(0, 1e-12, 50), np.r_[0.1, 0.4, np.nan], np.full(9, np.nan)]
)
def test_histogram_of_odd_nulls_counts_what_is_finite(plt, null):
    display = PermutationDisplay(score=0.3, permutation_scores=null, pvalue=0.5).plot()
    assert sum(bar.get_height() for bar in display.bars_) == np.isfinite(null).sum()
    display.figure_.canvas.draw()


def test_histogram_takes_bins(plt):
    display = PermutationDisplay.from_result(permutation_result(0.6, np.linspace(0, 1, 40)), bins=[0, 0.25, 1])
    assert [bar.get_height() for bar in display.bars_] == [10, 30]


def test_observed_line_and_words(plt):
    null = np.linspace(0.3, 0.62, 99)
    display = PermutationDisplay.from_result(permutation_result(0.6, null, "balanced_accuracy"))
    assert_allclose(display.line_.get_xdata(), 0.6)
    b = sum(null >= 0.6)
    assert display.line_.get_label() == f"balanced accuracy 0.6, p = {(b + 1) / 100:g}"
    assert display.ax_.get_xlabel() == "balanced accuracy"
    assert display.line_.get_label() in [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_loss_says_that_lower_is_better(plt):
    display = PermutationDisplay.from_result(permutation_result(0.2, np.linspace(0.3, 0.6, 99), "error", False))
    assert display.line_.get_label() == "error 0.2, p = 0.01"
    assert display.ax_.get_xlabel() == "error (lower is better)"


@pytest.mark.parametrize(
    ("pvalue", "label"),
    [
        (1.0, "p = 1"),
        (0.0504, "p = 0.0504"),
        (1 / 100, "p = 0.01"),
        (1 / 1000, "p = 0.001"),
        (1 / 1001, "p < 0.001"),
        (1 / 5000, "p < 0.001"),
        (1 / 10001, "p < 0.0001"),
        (1 / 1000001, "p < 0.000001"),
    ],
)
def test_p_values_are_never_written_as_zero(pvalue, label):
    assert p_label(pvalue) == label


@pytest.mark.parametrize(
    ("result", "member"), [(family(), 0), (family(), -3), (generalisation(), (2, 5)), (generalisation(), (1, 2))]
)
def test_member_of_a_family(plt, result, member):
    index = np.index_exp[member]
    display = PermutationDisplay.from_result(result, member=member)
    score, null, pvalue = result
    assert_equal(display.permutation_scores, null[(slice(None), *index)])
    assert_allclose(display.line_.get_xdata(), score[index])
    assert display.pvalue == pvalue[index]
    assert f"\nfamily-wise {p_label(result.pvalue_fwe[index])}" in display.line_.get_label()


@pytest.mark.parametrize(("result", "member"), [(family(), 12), (family(), (1, 2)), (generalisation(), 2)])
def test_member_outside_the_family(result, member):
    with pytest.raises(ValueError, match="none of the tests of a family of shape"):
        PermutationDisplay.from_result(result, member=member)


def test_three_plain_values_are_enough(plt):
    display = PermutationDisplay.from_result((0.9, np.linspace(0, 1, 11), 0.25))
    assert display.line_.get_label() == "score 0.9, p = 0.25"


# The time course


@pytest.mark.parametrize("greater_is_better", [True, False])
def test_time_course_draws_score_and_null(plt, greater_is_better):
    result = family(greater_is_better)
    score, null, _ = result
    times = np.linspace(-0.2, 0.9, 12)
    display = TimeCourseDisplay.from_result(result, times=times, unit="s")
    assert_equal(display.line_.get_xydata(), np.column_stack([times, score]))
    assert_allclose(display.chance_.get_xydata(), np.column_stack([times, null.mean(axis=0)]))
    (band,) = display.band_.get_paths()
    low, high = np.quantile(null, 0.05, axis=0), np.quantile(null, 0.95, axis=0)
    for t, pair in zip(times, np.column_stack([low, high]), strict=True):
        assert_allclose(np.unique(band.vertices[band.vertices[:, 0] == t, 1]), pair)
    assert display.ax_.get_xlabel() == "time (s)"
    words = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert words == ["null, 5 to 95 %", "family-wise p = 0.05", "significant at 0.05"]
    assert display.ax_.get_ylabel() == ("roc auc" if greater_is_better else "error (lower is better)")


@pytest.mark.parametrize("greater_is_better", [True, False])
@pytest.mark.parametrize("level", [0.01, 0.05, 0.29, 0.5])
@pytest.mark.parametrize("m", [99, 100])
def test_threshold_divides_as_the_family_wise_p_values_do(plt, greater_is_better, level, m):
    null = np.random.default_rng(6).normal(size=(m, 3))
    best = null.max(axis=1) if greater_is_better else null.min(axis=1)
    score = np.concatenate([best, best + 1e-9, best - 1e-9])  # ties are the hard case
    b = np.array([sum(best >= s) if greater_is_better else sum(best <= s) for s in score])
    pvalue_fwe = (b + 1) / (m + 1)
    display = TimeCourseDisplay(
        score=score,
        permutation_scores=np.zeros((m, 3 * m)),
        pvalue_fwe=pvalue_fwe,
        max_scores=best,
        greater_is_better=greater_is_better,
    )
    threshold = display.plot(level=level).threshold_.get_ydata()[0]
    beyond = score > threshold if greater_is_better else score < threshold
    assert_equal(beyond, pvalue_fwe <= level)
    assert beyond.any()


def test_bars_cover_significant_members_and_no_others(plt):
    result = family()
    times = np.cumsum(1 + np.arange(12.0) % 3)  # uneven
    for level in (0.9, 0.05):
        display = TimeCourseDisplay.from_result(result, times=times, level=level)
        low, high, gap = display.significant_.get_xdata().reshape(-1, 3).T
        assert np.isnan(gap).all()
        covered = [any((low <= t) & (t <= high)) for t in times]
        assert_equal(covered, result.pvalue_fwe <= level)
    assert len(low) == 2
    assert low[0] == (times[1] + times[2]) / 2
    assert high[0] == (times[4] + times[5]) / 2
    assert_equal(display.significant_.get_ydata(), 0)
    assert "significant at 0.05" in [text.get_text() for text in display.ax_.get_legend().get_texts()]
    display.figure_.canvas.draw()
    bottom = display.ax_.get_ylim()[0]
    drawn = display.significant_.get_transform().transform([[0, 0]])[0, 1]
    assert drawn == pytest.approx(display.ax_.transData.transform([[0, bottom]])[0, 1])


def test_no_significant_member_no_bar(plt):
    rng = np.random.default_rng(0)
    result = permutation_result(np.full(4, 0.5), rng.normal(0.5, 0.1, (99, 4)))
    display = TimeCourseDisplay.from_result(result)
    assert len(display.significant_.get_xdata()) == 0
    assert not any("significant" in text.get_text() for text in display.ax_.get_legend().get_texts())
    assert display.ax_.get_xlabel() == "member"
    display.figure_.canvas.draw()
    assert_equal(display.ax_.get_xticks() % 1, 0)


def test_clusters_have_bars_and_no_threshold(plt):
    """What is significant is a cluster, whatever the scores of its members."""
    result = permutation_result(np.linspace(0.9, 0.4, 8), np.random.default_rng(0).normal(0.5, 0.05, (99, 8)))
    result.max_scores, result.pvalue_fwe = None, np.where(np.arange(8) < 3, 1.0, 0.01)
    display = TimeCourseDisplay.from_result(result)
    assert display.threshold_ is None
    assert_allclose(display.significant_.get_xdata()[:2], [2.5, 7.5])


def test_level_out_of_reach_is_said(plt):
    worst = TimeCourseDisplay(
        score=[0.5], permutation_scores=np.full((19, 1), np.nan), pvalue_fwe=[0.05], max_scores=np.full(19, -np.inf)
    )
    assert worst.plot().threshold_ is None
    worst.figure_.canvas.draw()
    with pytest.warns(UserWarning, match="no p-value of 10 permutations reaches level=0.05; take at least 19"):
        display = TimeCourseDisplay.from_result(family(m=10))
    assert display.threshold_ is None
    assert TimeCourseDisplay.from_result(family(m=19)).threshold_ is not None


@pytest.mark.parametrize("times", [np.arange(11), np.zeros(12), np.arange(12)[::-1], np.zeros((12, 1))])
def test_times_must_fit(plt, times):
    with pytest.raises(ValueError, match="times must be 12 increasing numbers"):
        TimeCourseDisplay.from_result(family(), times=times)


# Generalisation over time


@pytest.mark.parametrize("greater_is_better", [True, False])
def test_image_has_training_time_upwards_and_warm_colours_for_better(plt, greater_is_better):
    result = generalisation(greater_is_better)
    score, null, _ = result
    times = np.array([0.0, 1, 2, 4, 8, 16, 32])
    display = GeneralisationDisplay.from_result(result, times=times, unit="ms")
    assert_equal(np.asarray(display.image_.get_array()).reshape(7, 7), score)
    assert display.image_.norm.vcenter == pytest.approx(null.mean())
    red, _, blue, _ = display.image_.to_rgba(score[2, 5])
    assert red > blue
    corners = display.image_.get_coordinates()
    for train in range(7):
        for test in range(7):
            (x0, y0), (x1, y1) = corners[train, test], corners[train + 1, test + 1]
            assert x0 < times[test] < x1
            assert y0 < times[train] < y1
    assert_equal(display.diagonal_.get_xdata(), display.diagonal_.get_ydata())
    assert display.ax_.get_xlabel() == "test time (ms)"
    assert display.ax_.get_ylabel() == "training time (ms)"
    assert display.colorbar_.ax.get_ylabel() == ("score" if greater_is_better else "score (lower is better)")


def test_outline_encloses_the_significant_cells(plt):
    result = generalisation()
    display = GeneralisationDisplay.from_result(result)
    segments = display.outline_.get_path().vertices.reshape(-1, 2, 2)
    inside = result.pvalue_fwe <= 0.05
    assert inside.sum() == 9
    for axis in (0, 1):  # a point is inside if an odd number of borders lies on its way out, either way
        across = segments[segments[:, 0, axis] == segments[:, 1, axis]]
        for train in range(7):
            for test in range(7):
                along, level = (test, train) if axis == 0 else (train, test)
                between = across[:, :, 1 - axis]
                crossed = (across[:, 0, axis] < along) & (between.min(axis=1) < level) & (level < between.max(axis=1))
                assert crossed.sum() % 2 == inside[train, test]


# Patterns


@pytest.mark.parametrize("kind", ["patterns", "weights"])
@pytest.mark.parametrize("level", [0.02, 0.05])
def test_stems_draw_one_output_and_mark_significant_features(plt, kind, level):
    result = patterns()
    display = PatternDisplay.from_result(result, output="foot", kind=kind, level=level)
    values = getattr(result, kind)[1]
    pvalue = result.pvalue_fwe[1] if kind == "patterns" else result.weights_pvalue_fwe[1]
    points = np.column_stack([np.arange(5), values])
    assert_allclose(display.points_.get_offsets(), points)
    assert_allclose(display.marked_.get_offsets(), points[pvalue <= level])
    assert_allclose(display.stems_.get_segments(), [[[i, 0], [i, v]] for i, v in points])
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == result.feature_names
    assert display.ax_.get_ylabel() == f"{kind[:-1]} for foot"
    colours = [tuple(colour) for colour in display.stems_.get_colors()]
    assert_equal([colour == tuple(display.marked_.get_facecolor()[0]) for colour in colours], pvalue <= level)


def test_map_colours_sensors_and_rings_significant_ones(plt):
    result = patterns()
    positions = np.random.default_rng(0).normal(size=(5, 2))
    display = PatternDisplay.from_result(result, output="hand", positions=positions)
    assert_allclose(display.points_.get_offsets(), positions)
    assert_allclose(display.points_.get_array(), result.patterns[0])
    assert display.points_.norm.vcenter == 0
    assert_allclose(display.marked_.get_offsets(), positions[result.pvalue_fwe[0] <= 0.05])
    assert len(display.marked_.get_facecolor()) == 0
    assert display.colorbar_.ax.get_ylabel() == "pattern for hand"
    with pytest.raises(ValueError, match=r"positions must have shape \(5, 2\)"):
        PatternDisplay.from_result(result, output="hand", positions=positions[:4])


def test_the_only_output_needs_no_name(plt):
    result = patterns(k=1)
    result.feature_names = None
    display = PatternDisplay.from_result(result)
    assert display.label == "pattern for hand"
    assert display.ax_.get_xlabel() == "feature"


@pytest.mark.parametrize(
    ("kw", "message"),
    [
        ({"output": "nose"}, r"output must be one of \['hand', 'foot', 'tongue'\], got 'nose'"),
        ({"output": "hand", "kind": "maps"}, "kind must be .* got 'maps'"),
    ],
)
def test_unknown_outputs_and_kinds(kw, message):
    with pytest.raises(ValueError, match=message):
        PatternDisplay.from_result(patterns(), **kw)


@pytest.mark.parametrize("positions", [None, np.random.default_rng(0).normal(size=(5, 2))], ids=["stems", "map"])
def test_several_outputs_are_drawn_side_by_side(plt, positions):
    result = patterns()
    display = PatternDisplay.from_result(result, positions=positions)
    assert display.displays_[0] is display
    assert [each.label for each in display.displays_] == [f"pattern for {name}" for name in result.outputs]
    assert len({each.ax_ for each in display.displays_}) == 3
    assert len({each.figure_ for each in display.displays_}) == 1
    for each, values in zip(display.displays_, result.patterns, strict=True):
        assert_equal(each.values, values)


@pytest.mark.parametrize("result", [(1, 2, 3), (0.5, [], 0.1), (0.5, [[0.1, 0.2]], 0.1), (0.5, [0.1], [0.1])])
def test_three_numbers_that_are_no_permutation_test_are_refused(result):
    with pytest.raises(ValueError, match="their shapes are"):
        PermutationDisplay.from_result(result)


# All of them

SINGLE = permutation_result(0.6, np.linspace(0.3, 0.7, 99))
DRAWN = [
    (PermutationDisplay, SINGLE, {}),
    (TimeCourseDisplay, family(), {}),
    (GeneralisationDisplay, generalisation(), {}),
    (PatternDisplay, patterns(), {"output": "foot"}),
    (PatternDisplay, patterns(), {"output": "foot", "positions": np.arange(10).reshape(5, 2)}),
]
NAMES = ["null", "course", "generalisation", "stems", "map"]


@pytest.mark.parametrize(
    ("display", "result", "right"),
    [
        (PermutationDisplay, family(), "TimeCourseDisplay, or one of them with PermutationDisplay and member="),
        (PermutationDisplay, generalisation(), "GeneralisationDisplay"),
        (PermutationDisplay, patterns(), "PatternDisplay"),
        (TimeCourseDisplay, SINGLE, "PermutationDisplay"),
        (TimeCourseDisplay, generalisation(), "GeneralisationDisplay"),
        (TimeCourseDisplay, patterns(), "PatternDisplay"),
        (GeneralisationDisplay, SINGLE, "PermutationDisplay"),
        (GeneralisationDisplay, family(), "TimeCourseDisplay"),
        (GeneralisationDisplay, patterns(), "PatternDisplay"),
        (PatternDisplay, SINGLE, "PermutationDisplay, TimeCourseDisplay or GeneralisationDisplay"),
        (TimeCourseDisplay, 3.0, "permutation_test_score"),
        (PermutationDisplay, (1.0, 2.0), "permutation_test_score"),
    ],
    ids=range(12),
)
def test_wrong_results_name_the_right_display(display, result, right):
    with pytest.raises(ValueError, match=right):
        display.from_result(result)


@pytest.mark.parametrize(("display", "result", "kw"), DRAWN, ids=NAMES)
def test_given_axes_are_used_and_kept(plt, display, result, kw):
    figure, ax = plt.subplots()
    drawn = display.from_result(result, ax=ax, **kw)
    assert drawn.ax_ is ax
    assert drawn.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    assert ax.spines["top"].get_visible()
    again = drawn.plot()
    assert again is drawn
    assert drawn.figure_ is not figure


@pytest.mark.parametrize(
    ("display", "result", "kw", "artist", "look", "expected"),
    [
        (PermutationDisplay, SINGLE, "line_kw", "line_", {"lw": 7, "color": "red"}, {"linewidth": 7, "color": "red"}),
        (TimeCourseDisplay, family(), "line_kw", "line_", {"lw": 7, "c": "red"}, {"linewidth": 7, "color": "red"}),
        (TimeCourseDisplay, family(), "band_kw", "band_", {"alpha": 0.3}, {"alpha": 0.3}),
        (GeneralisationDisplay, generalisation(), "outline_kw", "outline_", {"lw": 7}, {"linewidth": 7}),
        (GeneralisationDisplay, generalisation(), "image_kw", "image_", {"vmin": -3, "vmax": 4}, {"clim": (-3, 4)}),
        (
            PatternDisplay,
            patterns(k=1),
            "marked_kw",
            "marked_",
            {"lw": 7, "label": "here"},
            {"linewidth": [7], "label": "here"},
        ),
        (PatternDisplay, patterns(k=1), "point_kw", "points_", {"color": "red"}, {"facecolor": [[1, 0, 0, 1]]}),
    ],
)
def test_keywords_reach_the_artists_under_any_alias(plt, display, result, kw, artist, look, expected):
    drawn = getattr(display.from_result(result, **{kw: look}), artist)
    for name, value in expected.items():
        assert_equal(getattr(drawn, f"get_{name}")(), value)


def test_histogram_takes_one_colour_for_all(plt):
    display = PermutationDisplay.from_result(SINGLE, hist_kw={"color": "red"})
    assert display.bars_[0].get_facecolor() == (1, 0, 0, 1)


def holes(result, *cells):
    """The same result with nan where it could not be computed."""
    score, null, _ = result
    score, null = score.copy(), null.copy()
    null[3] = np.nan
    null[4, ..., 1] = np.nan
    for cell in cells:
        score[cell] = null[(slice(None), *cell)] = np.nan
    with np.errstate(all="ignore"):
        null[3, ..., -1] = 0.5
        return permutation_result(score, null, greater_is_better=result.greater_is_better)


def test_nan_leaves_gaps(plt):
    result = holes(family(), (4,))
    display = TimeCourseDisplay.from_result(result)
    drawn = display.line_.get_ydata()
    assert np.isnan(drawn[4])
    assert np.isfinite(np.delete(drawn, 4)).all()
    assert np.isfinite(np.delete(display.chance_.get_ydata(), 4)).all()
    low, high, _ = display.significant_.get_xdata().reshape(-1, 3).T
    assert_equal(np.column_stack([low, high]), [[1.5, 3.5], [8.5, 9.5]])
    display.figure_.canvas.draw()

    display = GeneralisationDisplay.from_result(holes(generalisation(), (0, 6), (1, 1)))
    assert_equal(np.ma.getmaskarray(display.image_.get_array()).reshape(7, 7)[[0, 1], [6, 1]], True)
    assert display.chance == pytest.approx(0.5, abs=0.01)
    display.figure_.canvas.draw()

    PermutationDisplay(score=np.nan, permutation_scores=[0.1, np.nan], pvalue=np.nan).plot().figure_.canvas.draw()
    PatternDisplay(values=[np.nan, 1.0], pvalue_fwe=[np.nan, 0.9]).plot().figure_.canvas.draw()


def test_constant_scores_are_drawn(plt):
    score, pvalue = np.full((3, 3), 0.5), np.ones((3, 3))
    GeneralisationDisplay(score=score, chance=0.5, pvalue_fwe=pvalue).plot().figure_.canvas.draw()
    GeneralisationDisplay(score=score[:1, :1], chance=0.4, pvalue_fwe=pvalue[:1, :1]).plot().figure_.canvas.draw()


@pytest.mark.parametrize(("display", "result", "kw"), DRAWN, ids=NAMES)
def test_without_matplotlib_the_error_names_the_display(monkeypatch, display, result, kw):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=rf"{display.__name__}.plot requires matplotlib"):
        display.from_result(result, **kw)


def test_matplotlib_is_imported_only_to_draw():
    code = "import sys, foldless.inspection; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
