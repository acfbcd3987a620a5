"""What an estimator does not have: unknown arguments and missing methods say what to write instead."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from foldless import LSSVC, LSSVR, AdaptiveKDA, FoldlessSearchCV, KernelFisherDiscriminant, SlidingWindow
from foldless.estimators import OneAgainstAllClassifier
from foldless.estimators.missing import COUNTERPARTS, UNNEEDED, parameter_hint
from foldless.kernels import Nystroem

X = np.random.default_rng(0).normal(size=(20, 2))
LABELS = np.arange(20) % 2
KINDS = {LSSVC: (), LSSVR: (), KernelFisherDiscriminant: (), AdaptiveKDA: ()}
MADE_OF_OTHERS = {
    FoldlessSearchCV: (LSSVC(),),
    SlidingWindow: (LSSVC(),),
    OneAgainstAllClassifier: ([(0, LSSVC())],),
}
every_kind = pytest.mark.parametrize("kind", [*KINDS, *MADE_OF_OTHERS], ids=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("C", r"Did you mean alpha = 1 / C\?"),
        ("gama", r"Did you mean 'gamma'\?"),
        ("Alpha", r"Did you mean 'alpha'\?"),
        ("max_iter", "Leave it out: the fit is solved directly"),
        ("n_jobs", "Leave it out: the linear algebra uses threads"),
        ("kernel_params", "Give gamma, degree or coef0 by name"),
        ("eta", r"Did you mean kernel=Boolean\(eta\)\?"),
        (
            "approximation",
            r"Write kernel=Nystroem\('rbf', n_landmarks=500.* or kernel=RandomFeatures\('rbf', n_landmarks",
        ),
        ("n_landmarks", r"Write kernel=Nystroem\('rbf', n_landmarks=500.*searched as kernel__n_landmarks"),
        ("landmarks", r"Write kernel=Nystroem\(.*, landmarks='kmeans'"),
        ("landmarks_per_fold", r"Write kernel=Nystroem\(.*, per_fold=False"),
        ("random_state", r"Leave it out: a fit draws nothing. .*kernel=Nystroem\('rbf', random_state=0\)"),
        ("feature_scaling", r"Write method=Optimizer\(feature_scaling=True\) of a search"),
    ],
)
def test_an_unknown_argument_is_named_with_what_to_write(kind, name, hint):
    message = rf"^{kind.__name__}\(\) got an unexpected keyword argument '{name}'\. {hint}"
    with pytest.raises(TypeError, match=message) as error:
        kind(**{name: 1.0})
    assert error.value.__suppress_context__


def test_set_params_has_the_hint_of_the_constructor():
    for model, params, hint in (
        (LSSVC(), {"C": 1.0}, r"Did you mean alpha = 1 / C\?$"),
        (LSSVC(), {"alpha": 2.0, "max_iter": 9}, "Leave it out: the fit is solved directly, without iterations.$"),
        (FoldlessSearchCV(LSSVC()), {"param_distributions": {}}, r"Did you mean param_grid\?$"),
        (FoldlessSearchCV(LSSVC()), {"estimator__C": 1.0}, r"Did you mean alpha = 1 / C\?$"),
        (LSSVC(), {"xyzzy": 1.0}, r"standardize'\]\.$"),
    ):
        with pytest.raises(ValueError, match=rf"^Invalid parameter .* {hint}|^Invalid parameter .*{hint}"):
            model.set_params(**params)
    assert LSSVC().set_params(alpha=2.0).alpha == 2.0


@every_kind
def test_an_argument_that_nothing_resembles_is_named_alone(kind):
    arguments = (KINDS | MADE_OF_OTHERS)[kind]
    message = rf"^{kind.__name__}\(\) got an unexpected keyword argument 'xyzzy'\.$"
    with pytest.raises(TypeError, match=message):
        kind(*arguments, xyzzy=1)


def test_probability_is_calibration_where_there_is_one():
    with pytest.raises(TypeError, match=r"'probability'. Did you mean calibration='sigmoid'\?"):
        LSSVC(probability=True)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'probability'\.$"):
        LSSVR(probability=True)


def test_a_parameter_of_the_estimator_is_not_one_of_the_search():
    with pytest.raises(TypeError, match=r"'calibration'. It is a parameter of the estimator: LSSVC\(calibration=...\)"):
        FoldlessSearchCV(LSSVC(), calibration="sigmoid")
    with pytest.raises(TypeError, match=r"'param_distributions'. Did you mean param_grid\?"):
        FoldlessSearchCV(LSSVC(), param_distributions={})


def test_arguments_that_moved_are_named_with_their_place():
    with pytest.raises(TypeError, match=r"'feature_scaling'. Write method=Optimizer\(feature_scaling=True\)"):
        FoldlessSearchCV(LSSVC(), feature_scaling=True)
    for kernel, hint in ((Nystroem("rbf"), r"Did you mean kernel__n_landmarks\?"), ("rbf", r"Write kernel=Nystroem\(")):
        with pytest.raises(ValueError, match=rf"'n_landmarks' for estimator LSSVC.* {hint}"):
            FoldlessSearchCV(LSSVC(kernel), {"n_landmarks": [5, 10]}).fit(X, LABELS)


def test_other_type_errors_are_pythons():
    with pytest.raises(TypeError, match="positional argument"):
        LSSVC("rbf", 1.0)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'estimator'"):
        FoldlessSearchCV()


@every_kind
def test_signatures_parameters_copies_and_pickles_stay(kind):
    model = kind(*(KINDS | MADE_OF_OTHERS)[kind])
    plain = inspect.signature(vars(kind)["__init__"].__wrapped__)
    own = [each for each in plain.parameters.values() if each.name != "self"]
    assert list(inspect.signature(kind).parameters.values()) == own
    assert list(model.get_params(deep=False)) == sorted(each.name for each in own)
    again = pickle.loads(pickle.dumps(clone(model)))
    assert type(again) is kind
    assert list(again.get_params()) == list(model.get_params())


def test_no_hint_is_about_a_parameter_of_the_estimators():
    known = set(LSSVC().get_params()) | set(KernelFisherDiscriminant().get_params())
    assert not known & (COUNTERPARTS.keys() | UNNEEDED.keys())
    assert all(parameter_hint(name, known) for name in [*COUNTERPARTS, *UNNEEDED] if name != "param_distributions")


@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
def test_probabilities_of_a_search_need_calibration_of_its_estimator(method):
    search = FoldlessSearchCV(LSSVC(), {"alpha": [1.0]})
    for each in (search, search.fit(X, LABELS), SlidingWindow(LSSVC())):
        if method == "predict_log_proba" and not isinstance(each, FoldlessSearchCV):
            continue
        assert not hasattr(each, method)
        with pytest.raises(
            AttributeError, match="Probabilities need calibration='sigmoid' or 'isotonic' of the estimator"
        ):
            getattr(each, method)
    assert hasattr(FoldlessSearchCV(LSSVC(calibration="sigmoid")), method)
    assert callable(getattr(FoldlessSearchCV, method))
