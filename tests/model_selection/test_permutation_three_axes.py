"""Permutation tests of X with three axes: one test of the whole, or one for each time; steps that say they ignore y."""

import numpy as np
import pytest
from sklearn import model_selection as skl
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import VotingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from foldless import LSSVC, FoldlessSearchCV
from foldless._sklearn.families import axes_taken
from foldless._sklearn.pipelines import never_sees_y
from foldless.model_selection import RefitWarning, cross_val_score, explain, permutation_test_score
from support.families import BINARY, CV, MEMBERS, TIMES
from support.permutation import LABELS, X, check_scores


class Flat(TransformerMixin, BaseEstimator):
    """All features of a row side by side, whatever the number of axes; its tags say nothing of them."""

    label_blind = True

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X.reshape(len(X), -1)


class Whole(Flat):
    """The same with the tag of three axes."""

    def transform(self, X):
        assert X.ndim == 3, "a step of three axes was fed a slice"
        return super().transform(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def of_module(name, module):
    """A transformer as another library has it."""
    return type(name, (TransformerMixin, BaseEstimator), {"__module__": module, "transform": Flat.transform})()


def assert_one_test_of_the_whole(pipeline, **options):
    result = permutation_test_score(pipeline, TIMES, BINARY, cv=CV, n_permutations=3, **options)
    assert np.shape(result.score) == ()
    flat = TIMES.reshape(len(TIMES), -1)
    alone = permutation_test_score(pipeline[-1], flat, BINARY, cv=CV, n_permutations=3)
    np.testing.assert_allclose(result.permutation_scores, alone.permutation_scores)
    np.testing.assert_allclose(result.score, skl.cross_val_score(pipeline, TIMES, BINARY, cv=CV).mean())
    np.testing.assert_allclose(result.score, cross_val_score(pipeline, TIMES, BINARY, cv=CV).mean())


@pytest.mark.parametrize("options", [{}, {"steps": "once"}], ids=str)
def test_a_step_of_three_axes_takes_x_whole(options):
    assert_one_test_of_the_whole(make_pipeline(Whole(), LSSVC("linear")), **options)


def test_a_step_of_three_axes_is_not_fed_slices():
    with pytest.raises(ValueError, match=r"generalise=True tests Pipeline .* takes X with three axes"):
        permutation_test_score(make_pipeline(Whole(), LSSVC()), TIMES, BINARY, cv=CV, generalise=True)


def test_a_step_of_unknown_axes_is_told_what_to_give():
    pipeline = make_pipeline(Flat(), LSSVC("linear"))
    with pytest.raises(ValueError, match=r"whether Pipeline takes them whole.* a list of matrices.*three_d_array"):
        permutation_test_score(pipeline, TIMES, BINARY, cv=CV)
    matrices = [TIMES[:, :, time] for time in range(TIMES.shape[2])]
    times = permutation_test_score(pipeline, matrices, BINARY, cv=CV, n_permutations=3)
    plain = permutation_test_score(pipeline[-1], TIMES, BINARY, cv=CV, n_permutations=3)
    np.testing.assert_allclose(times.permutation_scores, plain.permutation_scores)
    everywhere = permutation_test_score(pipeline, TIMES, BINARY, cv=CV, n_permutations=3, generalise=True)
    assert everywhere.score.shape == (3, 3)


@pytest.mark.parametrize(
    ("estimator", "axes"),
    [
        (LSSVC(), 2),
        (SVC(), 2),
        (VotingClassifier([("one", SVC())]), 2),
        (make_pipeline("passthrough", StandardScaler(), LSSVC()), 2),
        (make_pipeline(make_union(StandardScaler(), SelectKBest()), LSSVC()), 2),
        (skl.GridSearchCV(make_pipeline(Whole(), LSSVC()), {}), 3),
        (make_pipeline(of_module("Vectorizer", "mne.decoding.transformer"), LSSVC()), 3),
        (make_pipeline(make_union(StandardScaler(), Whole()), LSSVC()), 3),
        (make_pipeline(FunctionTransformer(), FoldlessSearchCV(LSSVC())), None),
        (make_pipeline(of_module("Own", "own"), LSSVC()), None),
    ],
    ids=str,
)
def test_the_axes_an_estimator_takes(estimator, axes):
    assert axes_taken(estimator) == axes


def test_a_generator_of_matrices_is_a_family():
    options = {"cv": CV, "n_permutations": 3}
    result = permutation_test_score(LSSVC("linear"), (each for each in MEMBERS), BINARY, **options)
    expected = permutation_test_score(LSSVC("linear"), MEMBERS, BINARY, **options)
    np.testing.assert_array_equal(result.permutation_scores, expected.permutation_scores)


# -- steps that never see y --------------------------------------------------------------------------------------------


class Centred(TransformerMixin, BaseEstimator):
    """Features less their means, and a count of the fits."""

    fits = 0

    def fit(self, X, y=None):
        type(self).fits += 1
        self.mean_ = X.mean(0)
        return self

    def transform(self, X):
        return X - self.mean_


class BlindlyCentred(Centred):
    label_blind = True


def test_a_step_that_says_it_never_sees_y_is_fitted_once_a_split():
    pipeline = make_pipeline(BlindlyCentred(), LSSVC(gamma=0.1))
    check_scores(pipeline, X, LABELS, kind="one P per fold")
    BlindlyCentred.fits = 0
    permutation_test_score(pipeline, X, LABELS, cv=skl.KFold(4), n_permutations=50)
    assert BlindlyCentred.fits <= 5
    assert "BlindlyCentred fitted once on all rows" in explain(pipeline, X, LABELS, steps="once").reason


def test_a_step_that_does_not_say_so_is_fitted_for_every_permutation():
    pipeline = make_pipeline(Centred(), LSSVC(gamma=0.1))
    with pytest.warns(RefitWarning, match=r"'centred' \(Centred\) may learn from y \(it has no label_blind = True\)"):
        check_scores(pipeline, X, LABELS, m=2, kind="refit")


@pytest.mark.parametrize(("name", "blind"), [("Scaler", True), ("Vectorizer", True), ("CSP", False)])
def test_transformers_of_mne_that_never_see_y_are_known(name, blind):
    assert never_sees_y(of_module(name, "mne.decoding.transformer")) == blind
    assert not never_sees_y(of_module(name, "own"))
