"""Interrupts at random moments of every long method leave a model that gives right numbers.

They are those of the model before the call or, where the signal arrives after the last step of an update, those of the
updated model: never a mixture. ``--interrupts 200`` takes more moments; benchmarks/interrupts.py does so at n = 9,000.
"""

import numpy as np
import pytest

from foldless import LSSVC, LSSVR, AdaptiveKDA, KernelFisherDiscriminant, SlidingWindow
from foldless._engine.linalg import numpy as verbs
from foldless._engine.linalg import panels, threads
from foldless.kernels import RBF, Nystroem
from support.interrupts import interrupt_after, seconds_of
from support.tolerances import assert_close

N = 300
rng = np.random.default_rng(5)
X, more = rng.normal(size=(N, 4)), rng.normal(size=(8, 4))
classes = (X[:, 0] + 0.5 * rng.normal(size=N) > 0).astype(int) + (X[:, 1] > 1)
values = np.sin(X[:, 0]) + 0.1 * rng.normal(size=N)

every_model = {
    "LSSVR": lambda: LSSVR(gamma=0.2, alpha=0.1).fit(X, values),
    "LSSVC": lambda: LSSVC(gamma=0.2, alpha=0.1).fit(X, classes),
    "calibrated": lambda: LSSVC(gamma=0.2, calibration="sigmoid").fit(X[:40], classes[:40]),
    "KFDA": lambda: KernelFisherDiscriminant(gamma=0.2, alpha=0.1).fit(X, classes),
    "KFDA coef": lambda: KernelFisherDiscriminant(gamma=0.2, penalty="coef").fit(X[:100], classes[:100]),
    "linear": lambda: LSSVR("linear").fit(X, values),
    "updated": lambda: LSSVR(gamma=0.2, alpha=0.1).fit(X, values).forget([3]).partial_fit(X[3:4], values[3:4]),
    "landmarks": lambda: LSSVC(Nystroem(RBF(0.2), n_landmarks=50, landmarks="uniform"), alpha=0.1).fit(X, classes),
    "adaptive": lambda: AdaptiveKDA(gamma=0.2).fit(X[:100], classes[:100]),
    "window": lambda: SlidingWindow(LSSVR(gamma=0.2), max_samples=200, drop="least").fit(X[:200], values[:200]),
}
every_call = {
    "loo_predict": lambda model: model.loo_predict(),
    "loo_score_": lambda model: model.loo_score_,
    "stratified_loo_score_": lambda model: model.stratified_loo_score_,
    "loo_predict_proba": lambda model: model.loo_predict_proba(),
    "predict_proba": lambda model: model.predict_proba(more),
    "predict_interval": lambda model: model.predict_interval(more),
    "forgetting_effects": lambda model: model.forgetting_effects(),
    "unlearning_certificate": lambda model: model.unlearning_certificate(),
    "partial_fit": lambda model: model.partial_fit(more, np.resize(labels_of(model), len(more))),
    "forget": lambda model: model.forget([2, 30, 31]),
    "fit": lambda model: model.fit(X[:60], labels_of(model)[:60]),
}
cases = [
    (kind, call)
    for kind in every_model
    for call in every_call
    if hasattr(type(every_model[kind]()), call)
    if not (call.endswith("proba") and kind != "calibrated")
]


def labels_of(model):
    return values if isinstance(model, LSSVR | SlidingWindow) else classes


def outputs(model):
    model = getattr(model, "estimator_", model)
    found = {"loo": model.loo_predict(), "rows": model.X_fit_}
    for name in ("decision_function", "predict"):
        if hasattr(model, name):
            found[name] = getattr(model, name)(more)
    return found


@pytest.mark.filterwarnings("ignore:Exception ignored in. <_io:pytest.PytestUnraisableExceptionWarning")  # open files
@pytest.mark.parametrize("width", [None, 32], ids=["whole", "panels"])
@pytest.mark.parametrize(("kind", "name"), cases, ids=[" ".join(case) for case in cases])
def test_an_interrupted_call_leaves_a_whole_model(kind, name, width, monkeypatch, request):
    if width is not None:
        monkeypatch.setattr(verbs, "LARGE", 2 * width)
        monkeypatch.setattr(panels, "WIDTH", width)
    make, call = every_model[kind], every_call[name]
    changed = make()
    longest = seconds_of(lambda: call(changed))
    expected = [outputs(model) for model in (make(), changed)]
    moments, n_interrupted = np.random.default_rng(len(name)), 0
    while n_interrupted < request.config.getoption("--interrupts"):
        model = make()
        if not interrupt_after(longest * moments.uniform(), lambda model=model: call(model)):
            longest *= 0.9  # the first call took longer
        else:
            n_interrupted += 1
            after = outputs(model)
            complete = np.array_equal(after["rows"], expected[1]["rows"])
            for key, value in expected[complete].items():
                assert_close(after[key], value, rtol=1e-7)
    assert not threads._blocks
