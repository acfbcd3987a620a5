"""Threads that read one freshly fitted model together."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np

from foldless import LSSVC, LSSVR, AdaptiveKDA, FoldlessSearchCV, KernelFisherDiscriminant, SlidingWindow
from foldless.kernels import RBF, Nystroem

N_THREADS = 4
rng = np.random.default_rng(3)
X, new = rng.normal(size=(90, 3)), rng.normal(size=(5, 3))
values = np.sin(X[:, 0]) + 0.1 * rng.normal(size=len(X))
labels = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)

REGRESSION = ["loo_predict", "predict", "predict_interval", "loo_score_", "forgetting_effects"]
CLASSES = ["loo_predict", "loo_decision_function", "predict", "loo_score_", "stratified_loo_score_", "predict_set"]
OTHERS = ["loo_predict", "predict", "loo_score_"]


def fitted(**options):
    return LSSVR(gamma=0.3, alpha=0.1, **options).fit(X, values)


every_reader = {
    "LSSVR": (fitted, REGRESSION),
    "linear": (lambda: LSSVR("linear").fit(X, values), REGRESSION),
    "landmarks": (lambda: LSSVR(Nystroem(RBF(0.3), n_landmarks=20)).fit(X, values), REGRESSION),
    "updated": (lambda: fitted().forget([3]), REGRESSION),
    "unpickled": (lambda: pickle.loads(pickle.dumps(fitted())), REGRESSION),
    "LSSVC": (lambda: LSSVC(gamma=0.3).fit(X, labels), CLASSES),
    "calibrated": (lambda: LSSVC(gamma=0.3, calibration="sigmoid").fit(X, labels), [*CLASSES, "predict_proba"]),
    "KFDA": (lambda: KernelFisherDiscriminant(gamma=0.3).fit(X, labels), [*CLASSES, "transform"]),
    "KFDA coef": (lambda: KernelFisherDiscriminant(gamma=0.3, penalty="coef").fit(X, labels), CLASSES[:-1]),
    "AdaptiveKDA": (lambda: AdaptiveKDA(gamma=0.3).fit(X, labels), OTHERS),
    "window": (lambda: SlidingWindow(LSSVC(gamma=0.3), 60).fit(X, labels), OTHERS[1:]),
    "search": (lambda: FoldlessSearchCV(LSSVC(gamma=0.3), {"alpha": [0.1, 1.0]}).fit(X, labels), OTHERS),
}


def read(model, name):
    """The value of an attribute, or what a method returns, as an array."""
    value = getattr(model, name)
    if callable(value):
        value = value(new) if name.startswith(("predict", "transform")) else value()
    return np.asarray(value, float)


def read_together(make, names, n_runs):
    """(name, value) of all that threads read from each of so many models; half of them go the other way round."""
    with ThreadPoolExecutor(N_THREADS) as pool:
        for _ in range(n_runs):
            model, start = make(), Barrier(N_THREADS)

            def job(number, model=model, start=start):
                start.wait()
                return {name: read(model, name) for name in (names if number % 2 else names[::-1])}

            for result in pool.map(job, range(N_THREADS)):
                yield from result.items()
