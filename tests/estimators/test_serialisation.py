"""Models that are written and read again, by pickle, joblib and skops: they predict and leave out as before."""

import copy
import io
import pickle
import re

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

import foldless
from foldless import LSSVC, LSSVR
from foldless.estimators import versions
from foldless.kernels import RBF, Nystroem, RandomFeatures
from support.kinds_of_models import X, every_kernel, every_model, new, three, values
from support.tolerances import assert_close

sio = pytest.importorskip("skops.io", reason="skops is part of the extra cli")


def joblib_bytes(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    return file.getvalue()


def read_joblib(content):
    return joblib.load(io.BytesIO(content))


def read_skops(content):
    return sio.loads(content, trusted=sio.get_untrusted_types(data=content))


def with_skops(model):
    written = sio.dumps(model)
    types = sio.get_untrusted_types(data=written)
    known = r"(foldless|numpy|scipy|sklearn\.metrics)\." if hasattr(model, "scorer_") else r"(foldless|numpy|scipy)\."
    assert not [each for each in types if not re.match(known, each)]
    return sio.loads(written, trusted=types)


every_format = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "joblib": lambda model: read_joblib(joblib_bytes(model)),
    "skops": with_skops,
}
NUMBERS = ("decision_function", "predict", "predict_proba", "transform")
LEFT_OUT = ("loo_decision_function", "loo_predict", "forgetting_effects")


def outputs(model):
    """What the model says of new rows, and of its own without each."""
    rows = new > 0 if getattr(model, "kernel", None) == "boolean" else new
    rows = rbf_kernel(new, X) if getattr(model, "kernel", None) == "precomputed" else rows
    found = {name: getattr(model, name)(rows) for name in NUMBERS if hasattr(model, name)}
    found |= {name: getattr(model, name)() for name in LEFT_OUT if hasattr(model, name)}
    if hasattr(model, "loo_predict_proba") and len(model.classes_) == 2:
        found["loo_predict_proba"] = model.loo_predict_proba()
    for name in ("loo_score_", "stratified_loo_score_", "ids_", "residual_"):
        if hasattr(model, name):
            found[name] = getattr(model, name)
    table = getattr(model, "cv_results_", {})
    return found | {name: column for name, column in table.items() if name.startswith(("mean_test", "split"))}


def assert_alike(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if np.asarray(value).dtype.kind == "f":
            assert np.array_equal(np.isnan(found[name]), np.isnan(value))  # scores that were not wanted
            rtol = 1.0 if name == "residual_" else None  # rounding
            assert_close(np.nan_to_num(found[name]), np.nan_to_num(value), rtol=rtol)
        else:
            assert np.array_equal(found[name], value)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:calibration='isotonic'")
@pytest.mark.parametrize("case", every_model)
@pytest.mark.parametrize("written", every_format)
def test_a_model_that_is_read_again_is_the_same(written, case):
    model = every_model[case]()
    again = every_format[written](model)
    if case == "not fitted":
        model, again = model.fit(X, three), again.fit(X, three)
    assert type(again) is type(model)
    assert repr(again) == repr(model)
    assert_alike(outputs(again), outputs(model))


@pytest.mark.parametrize("case", every_kernel)
@pytest.mark.parametrize("written", every_format)
def test_kernels_can_be_written_alone_and_in_a_model(written, case):
    kernel = every_kernel[case].resolved(X)
    assert_close(every_format[written](kernel).gram(new, X), kernel.gram(new, X))
    model = LSSVR(every_kernel[case], alpha=0.5).fit(X, values)
    again = every_format[written](model)
    assert_alike(outputs(again), outputs(model))
    assert_alike(outputs(again.forget([3, 5])), outputs(model.forget([3, 5])))


APPROXIMATIONS = {
    "nystroem": Nystroem(RBF("scale"), 10, landmarks="uniform", per_fold=True, random_state=3, whiten=False),
    "by name": Nystroem("laplacian", n_landmarks="auto"),
    "landmarks of the user": Nystroem(RBF(0.2), landmarks=X[:7]),
    "random features": RandomFeatures("rbf", 12, random_state=4),
}


@pytest.mark.parametrize("case", APPROXIMATIONS)
@pytest.mark.parametrize("written", ["clone", *every_format])
def test_settings_of_approximations_come_back(written, case):
    copied = clone if written == "clone" else every_format[written]
    kernel = APPROXIMATIONS[case]
    for again in (copied(kernel), copied(LSSVC(kernel)).kernel):
        assert type(again) is type(kernel)
        assert repr(again) == repr(kernel)
        settings, expected = again.get_params(deep=False), kernel.get_params(deep=False)
        assert settings.keys() == expected.keys()
        for name, value in expected.items():
            assert np.array_equal(settings[name], value), name


@pytest.mark.parametrize("case", APPROXIMATIONS)
def test_settings_of_approximations_are_parameters_of_the_estimator(case):
    model = LSSVC(clone(APPROXIMATIONS[case]))
    for name, value in {"n_landmarks": 5, "random_state": 7, "kernel": RBF(0.5), "gamma": 0.3}.items():
        model.set_params(**{f"kernel__{name}": value})
        assert model.get_params()[f"kernel__{name}"] == value
    fitted = model.set_params(kernel__n_landmarks=6).fit(X, three)
    assert fitted.get_params()["kernel__n_landmarks"] == 6
    with pytest.raises(ValueError, match=r"kernel__n_landmarks: changed since the model was fitted"):
        fitted.set_params(kernel__n_landmarks=8).partial_fit(X, three)
    with pytest.raises(ValueError, match="Invalid parameter 'colour' for kernel"):
        model.set_params(kernel__colour=1)


@pytest.mark.parametrize("written", every_format)
def test_a_model_that_is_read_again_learns_and_forgets_as_before(written):
    model = LSSVC(gamma=0.2, calibration="sigmoid").fit(X[:20], three[:20], ids=range(20)).forget(ids=[3])
    again = every_format[written](model)
    for each in (model, again):
        each.partial_fit(X[20:30], three[20:30], ids=range(20, 30)).forget(ids=[5, 21])
    assert_alike(outputs(again), outputs(model))


# -- other versions ----------------------------------------------------------------------------------------------------

models_that_are_written = ("LSSVC", "AdaptiveKDA", "window", "one against all", "grid")


@pytest.mark.parametrize("case", models_that_are_written)
@pytest.mark.parametrize("written", every_format)
def test_a_model_of_another_layout_is_refused_with_both_versions(written, case, monkeypatch):
    model = every_model[case]()
    files = {
        "pickle": (pickle.dumps, pickle.loads),
        "joblib": (joblib_bytes, read_joblib),
        "skops": (sio.dumps, read_skops),
    }
    write, read = files[written]
    with monkeypatch.context() as patch:
        patch.setattr(versions, "LAYOUT", versions.LAYOUT - 1)
        patch.setattr(foldless, "__version__", "0.1.7")
        content = write(model)
    with pytest.raises(
        ValueError, match=rf"written by foldless 0\.1\.7.*foldless {re.escape(foldless.__version__)}.*Fit it"
    ):
        read(content)


def test_a_model_of_another_layout_is_refused_before_what_it_holds_is_looked_for(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(versions, "LAYOUT", versions.LAYOUT + 1)
        content = pickle.dumps(LSSVC().fit(X, three))
    assert b"foldless._engine.heldout.problem" in content
    with pytest.raises(ValueError, match="Fit it again"):
        pickle.loads(content.replace(b"foldless._engine.heldout.problem", b"foldless._engine.heldout.renamed"))


class OfEarlierVersions(LSSVC):
    """It is written as all were before versions were."""

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if not name.startswith("_foldless")}

    def __reduce__(self):
        return object.__new__, (OfEarlierVersions,), self.__getstate__()


def test_a_model_without_a_version_is_refused():
    content = pickle.dumps(OfEarlierVersions().fit(X, three))
    with pytest.raises(ValueError, match="an earlier version of foldless"):
        pickle.loads(content)


def test_the_version_is_no_field_of_a_model():
    model = LSSVC().fit(X, three)
    for again in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert vars(again).keys() == vars(model).keys()
