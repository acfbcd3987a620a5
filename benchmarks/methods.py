"""The models that ``peers.py`` compares: how each is made, and the packages that it needs.

Packages beyond those of foldless are optional: lightgbm, xgboost, catboost, xrfm (it needs torch) and pytabkit.
Classes are the numbers 0, 1, ...; features and the targets of regressions are standardised on the training rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from scipy.stats import loguniform
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegressionCV, RidgeClassifierCV, RidgeCV
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, train_test_split
from sklearn.svm import SVC, SVR

from common import svc_grid
from foldless import LSSVC, LSSVR, FoldlessSearchCV

BOOSTING_SPACE = {
    "learning_rate": loguniform(0.01, 0.3),
    "max_iter": [100, 200, 400],
    "max_leaf_nodes": [7, 15, 31, 63],
    "min_samples_leaf": [5, 10, 20, 40],
    "l2_regularization": loguniform(1e-3, 10),
    "max_features": [0.3, 0.5, 1.0],
}
LAPLACIAN_GAMMAS = (0.03, 0.1, 0.3, 1.0)  # times the number of features
N_DRAWS = 12  # settings of a tuned model


@dataclass(frozen=True)
class Method:
    """A model of training features X on some threads, and the packages that it needs beyond scikit-learn."""

    make: Callable
    packages: tuple[str, ...] = ()

    @property
    def missing(self):
        """Packages that are not installed."""
        return [package for package in self.packages if find_spec(package) is None]


class LaplacianGrid(BaseEstimator):
    """A grid of C and gamma of an SVC or SVR with the kernel exp(-gamma |x - z|_1), by five folds."""

    def __init__(self, svm):
        self.svm = svm

    def fit(self, X, y):
        distances = manhattan_distances(X)
        searches = {
            gamma: GridSearchCV(self.svm, {"C": [1.0, 10.0, 100.0]}, cv=5).fit(np.exp(-gamma * distances), y)
            for gamma in np.array(LAPLACIAN_GAMMAS) / X.shape[1]
        }
        self.gamma_ = max(searches, key=lambda gamma: searches[gamma].best_score_)
        self.search_, self.X_ = searches[self.gamma_], X
        return self

    def predict(self, X):
        return self.search_.predict(np.exp(-self.gamma_ * manhattan_distances(X, self.X_)))


class FeatureMachine(BaseEstimator):
    """xRFM on 80 % of the rows; the others stop its iterations and choose among ``n_draws`` settings, if any.

    Settings are drawn from the space of its authors' tuner: bandwidth, penalty, exponent, kernel, diagonal metric.
    """

    def __init__(self, task, n_draws=0, threads=1):
        self.task, self.n_draws, self.threads = task, n_draws, threads

    def fit(self, X, y):
        counts = np.bincount(y) if self.task == "classification" else [0]
        classes = y if min(counts) > 1 else None
        train, held_out = train_test_split(np.arange(len(y)), test_size=0.2, random_state=0, stratify=classes)
        rng = np.random.default_rng(0)
        settings = [_drawn_setting(rng) for _ in range(self.n_draws)] or [None]
        models = [self._fitted(setting, X[train], y[train], X[held_out], y[held_out]) for setting in settings]
        losses = [self._loss(model, X[held_out], y[held_out]) for model in models] if len(models) > 1 else [0.0]
        self.model_ = models[int(np.argmin(losses))]
        return self

    def _fitted(self, setting, *data):
        from xrfm import xRFM

        model = xRFM(rfm_params=setting, device="cpu", n_threads=self.threads, random_state=0, verbose=False)
        return model.fit(*data)

    def _loss(self, model, X, y):
        """Squared error of probabilities or predictions."""
        if self.task == "regression":
            return np.mean((model.predict(X).ravel() - y) ** 2)
        probabilities = model.predict_proba(X)
        return np.mean((probabilities - np.eye(probabilities.shape[1])[y]) ** 2)

    def predict(self, X):
        return self.model_.predict(X).ravel()

    @property
    def predict_proba(self):
        if self.task == "regression":
            raise AttributeError("predict_proba")
        return self.model_.predict_proba


def _drawn_setting(rng):
    exponent, kernel = rng.uniform(0.7, 1.4), rng.choice(["lpq", "l2"], p=[0.8, 0.2])
    model = {
        "kernel": str(kernel),
        "bandwidth": float(np.exp(rng.uniform(np.log(0.5), np.log(200)))),
        "exponent": exponent,
        "norm_p": exponent + (2 - exponent) * rng.uniform(0, 0.8),
        "diag": bool(rng.integers(2)),
        "bandwidth_mode": "constant",
    }
    fit = {"reg": float(np.exp(rng.uniform(np.log(1e-6), np.log(10)))), "iters": 5, "early_stop_rfm": True}
    return {"model": model, "fit": {**fit, "verbose": False}}


def _imported(module, name, **options):
    """A model of an optional package, which is imported when the model is made."""
    return getattr(import_module(module), name)(**options)


def _foldless(kernel, standardize):
    return Method(lambda X, threads: FoldlessSearchCV(_ls_svm(LSSVC, kernel, standardize, calibration="sigmoid")))


def _foldless_regression(kernel, standardize):
    return Method(lambda X, threads: FoldlessSearchCV(_ls_svm(LSSVR, kernel, standardize)))


def _ls_svm(model, kernel, standardize, **options):
    return model(kernel, standardize=standardize, **options)


def _tuned(model, threads):
    return RandomizedSearchCV(model, BOOSTING_SPACE, n_iter=N_DRAWS, cv=3, random_state=0, n_jobs=threads)


def _svm_grid(svm):
    return Method(lambda X, threads: GridSearchCV(svm, svc_grid(X), cv=5, n_jobs=threads))


def _boosting_packages(suffix):
    """LightGBM, CatBoost and XGBoost as they come; CatBoost writes no files."""
    return {
        "LightGBM": Method(
            lambda X, threads: _imported("lightgbm", f"LGBM{suffix}", n_jobs=threads, random_state=0, verbose=-1),
            ("lightgbm",),
        ),
        "CatBoost": Method(
            lambda X, threads: _imported(
                "catboost",
                f"CatBoost{suffix}",
                **{"thread_count": threads, "random_seed": 0, "verbose": False, "allow_writing_files": False},
            ),
            ("catboost",),
        ),
        "XGBoost": Method(
            lambda X, threads: _imported("xgboost", f"XGB{suffix}", n_jobs=threads, random_state=0), ("xgboost",)
        ),
    }


def _networks(task, suffix):
    return {
        "xRFM": Method(lambda X, threads: FeatureMachine(task, threads=threads), ("xrfm", "torch")),
        "xRFM tuned": Method(lambda X, threads: FeatureMachine(task, N_DRAWS, threads), ("xrfm", "torch")),
        "RealMLP": Method(
            lambda X, threads: _imported(
                "pytabkit", f"RealMLP_TD_{suffix}", device="cpu", n_threads=threads, random_state=0
            ),
            ("pytabkit", "torch", "pytorch_lightning"),
        ),
    }


CLASSIFIERS = {
    "foldless auto": _foldless("auto", True),
    "foldless robust": _foldless("auto", "robust"),
    "foldless rbf": _foldless("rbf", True),
    "SVC rbf": _svm_grid(SVC()),
    "SVC laplacian": Method(lambda X, threads: LaplacianGrid(SVC(kernel="precomputed"))),
    "HistGB": Method(lambda X, threads: HistGradientBoostingClassifier(random_state=0)),
    "HistGB tuned": Method(lambda X, threads: _tuned(HistGradientBoostingClassifier(random_state=0), threads)),
    "extra trees": Method(lambda X, threads: ExtraTreesClassifier(500, n_jobs=threads, random_state=0)),
    "random forest": Method(lambda X, threads: RandomForestClassifier(500, n_jobs=threads, random_state=0)),
    **_boosting_packages("Classifier"),
    **_networks("classification", "Classifier"),
    "logistic": Method(lambda X, threads: LogisticRegressionCV(Cs=10, cv=5, max_iter=1000, n_jobs=threads)),
    "ridge": Method(lambda X, threads: RidgeClassifierCV(np.logspace(-3, 3, 13))),
}
REGRESSORS = {
    "foldless auto": _foldless_regression("auto", True),
    "foldless robust": _foldless_regression("auto", "robust"),
    "foldless rbf": _foldless_regression("rbf", True),
    "SVR rbf": _svm_grid(SVR()),
    "SVR laplacian": Method(lambda X, threads: LaplacianGrid(SVR(kernel="precomputed"))),
    "HistGB": Method(lambda X, threads: HistGradientBoostingRegressor(random_state=0)),
    "HistGB tuned": Method(lambda X, threads: _tuned(HistGradientBoostingRegressor(random_state=0), threads)),
    "extra trees": Method(lambda X, threads: ExtraTreesRegressor(500, n_jobs=threads, random_state=0)),
    "random forest": Method(lambda X, threads: RandomForestRegressor(500, n_jobs=threads, random_state=0)),
    **_boosting_packages("Regressor"),
    **_networks("regression", "Regressor"),
    "ridge": Method(lambda X, threads: RidgeCV(np.logspace(-3, 3, 13))),
}
