"""Numbers of many public calls beside those of an earlier commit: what a change of the code's shape must not change.

    python benchmarks/outputs.py REV [--only WORD] [--json FILE]          (make compare-outputs REV=...)

Both versions run their own copy of this file on their own ``src``, so that a call whose parameters were renamed is
written in the way of its version; calls are matched by name. A difference counts if it exceeds 1e-10 of the largest
value of the array (1e-4 in float32). The exit status is 1 if there is one, or if a call of the earlier version is
missing.
"""

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path

import numpy as np

RTOL, RTOL_SINGLE = 1e-10, 1e-4

# -- the calls ---------------------------------------------------------------------------------------------------------


class Data:
    """Rows, labels and what goes with them."""

    def __init__(self, n=72, d=4, seed=0):
        rng = np.random.default_rng(seed)
        self.n = n
        self.X, self.new = rng.normal(size=(n, d)), rng.normal(size=(7, d))
        noise = rng.normal(size=n)
        self.three = rng.permutation(np.arange(n) % 3)
        self.X[:, 0] += self.three
        self.two = (self.three > 0).astype(int)
        self.words = np.array(["no", "yes"])[self.two]
        self.rare = (rng.permutation(n) < 12).astype(int)
        self.values = np.sin(2 * self.X[:, 0]) + self.X[:, 1] + 0.3 * noise
        self.outputs = np.column_stack([self.values, self.X[:, 2] ** 2 + 0.1 * noise])
        self.weights = rng.uniform(0.3, 3.0, n)
        self.zeros = np.where(np.arange(n) % 9 == 4, 0.0, self.weights)
        self.confounds = rng.normal(size=(n, 2)) + 0.5 * self.X[:, :1]
        self.new_confounds = rng.normal(size=(7, 2))
        self.groups = rng.permutation(np.arange(n) % 12)
        self.strata = np.arange(n) % 2
        self.counts = rng.poisson(1.0, size=(n, 6)).astype(float)
        self.times = rng.normal(size=(n, 5, 6)) + 0.8 * self.two[:, None, None] * (np.arange(6) > 2)


def fitted_outputs(model, data, y, **fit_params):
    """What a fitted model answers."""
    confounds = {} if "confounds" not in fit_params else {"confounds": data.new_confounds}
    model.fit(data.X, y, **fit_params)
    results = {"loo": model.loo_predict(), "predict": model.predict(data.new, **confounds)}
    for name in ("decision_function", "predict_proba"):
        if hasattr(model, name):
            results[name] = getattr(model, name)(data.new, **confounds)
    for name in ("loo_decision_function", "loo_predict_proba", "forgetting_effects"):
        if hasattr(model, name):
            results[name] = getattr(model, name)()
    if hasattr(model, "transform"):
        results["transform"] = model.transform(data.new)
    if hasattr(model, "loo_score_"):
        results["loo_score_"] = model.loo_score_
    return results


def estimator_calls():
    """Fits of every estimator over kernels and options."""
    from foldless import LSSVC, LSSVR, AdaptiveKDA, KernelFisherDiscriminant
    from foldless.kernels import RBF, Boolean, Linear, Nystroem, Poly, RandomFeatures

    data = Data()
    machines = {
        "LSSVC": (partial(LSSVC, gamma=0.3, alpha=0.2), data.three),
        "LSSVC two": (partial(LSSVC, gamma=0.3, alpha=0.2), data.words),
        "LSSVR": (partial(LSSVR, gamma=0.3, alpha=0.2), data.values),
        "KFDA": (partial(KernelFisherDiscriminant, gamma=0.3, alpha=0.2), data.three),
        "KFD": (partial(KernelFisherDiscriminant, gamma=0.3, alpha=0.2), data.two),
    }
    options = {
        "plain": {},
        "linear": {"kernel": "linear"},
        "poly": {"kernel": "poly", "degree": 2},
        "laplacian": {"kernel": "laplacian"},
        "cosine": {"kernel": "cosine"},
        "scale": {"gamma": "scale"},
        "widths": {"gamma": [0.1, 0.2, 0.3, 0.4]},
        "no intercept": {"fit_intercept": False},
        "standardize": {"standardize": True},
        "coef": {"penalty": "coef"},
        "coef linear": {"penalty": "coef", "kernel": "linear"},
        "nystroem": {"kernel": Nystroem("rbf", 20)},
        "rff": {"kernel": RandomFeatures("rbf", 30)},
        "sum": {"kernel": RBF(0.2) + Linear()},
        "product": {"kernel": RBF(0.2) * Poly(degree=2)},
        "small alpha": {"alpha": 1e-8},
        "large alpha": {"alpha": 1e4},
    }
    calls = {}
    for name, (make, y) in machines.items():
        for option, parameters in options.items():
            calls[f"fit {name} {option}"] = lambda make=make, y=y, parameters=parameters: fitted_outputs(
                make(**parameters), data, y
            )
        calls[f"fit {name} weights"] = lambda make=make, y=y: fitted_outputs(make(), data, y, sample_weight=data.zeros)
        calls[f"fit {name} confounds"] = lambda make=make, y=y: fitted_outputs(
            make(), data, y, confounds=data.confounds
        )
    several = {
        "LSSVC balanced": (LSSVC(gamma=0.3, class_weight="balanced"), data.rare),
        "LSSVC sigmoid": (LSSVC(gamma=0.3, calibration="sigmoid"), data.three),
        "LSSVC isotonic": (LSSVC(gamma=0.3, calibration="isotonic"), data.two),
        "KFDA priors": (KernelFisherDiscriminant(gamma=0.3, priors=[0.2, 0.3, 0.5]), data.three),
        "KFDA components": (KernelFisherDiscriminant(gamma=0.3, n_components=1), data.three),
        "KFDA sigmoid": (KernelFisherDiscriminant(gamma=0.3, calibration="sigmoid"), data.three),
        "LSSVR outputs": (LSSVR(gamma=0.3), data.outputs),
        "AdaptiveKDA": (AdaptiveKDA(gamma=0.3, alpha=0.1), data.two),
        "AdaptiveKDA fisher": (AdaptiveKDA(gamma=0.3, alpha=0.1, targets="fisher"), data.three),
    }
    for threshold in ("fisher", "pm1", "centroid", "loo"):
        model = KernelFisherDiscriminant(gamma=0.3, alpha=0.2, threshold=threshold)
        calls[f"fit KFD threshold {threshold}"] = lambda model=model: model.fit(data.X, data.two).decision_function(
            data.new
        )
    for name, (model, y) in several.items():
        calls[f"fit {name}"] = lambda model=model, y=y: fitted_outputs(model, data, y)
    single = Data()
    single.X, single.new = single.X.astype(np.float32), single.new.astype(np.float32)
    calls["fit LSSVC float32"] = lambda: fitted_outputs(LSSVC(gamma=0.3), single, data.three)
    calls["fit LSSVR float32 linear"] = lambda: fitted_outputs(LSSVR("linear"), single, single.values.astype("f4"))
    calls["fit LSSVC boolean"] = lambda: LSSVC(Boolean(0.5)).fit(data.X > 0, data.three).loo_decision_function()
    calls["fit LSSVC precomputed"] = lambda: (
        LSSVC("precomputed").fit(data.X @ data.X.T, data.three).loo_decision_function()
    )
    calls["fit LSSVC sparse"] = lambda: _sparse_fit(data)
    return calls


def _sparse_fit(data):
    from scipy.sparse import csr_array

    from foldless import LSSVC

    model = LSSVC(gamma=0.1, standardize=True).fit(csr_array(data.counts), data.three)
    return model.loo_decision_function(), model.decision_function(csr_array(data.counts[:5]))


def update_calls():
    """Updates, certificates and windows."""
    from foldless import LSSVC, LSSVR, AdaptiveKDA, KernelFisherDiscriminant, SlidingWindow
    from foldless.kernels import Nystroem

    data = Data()
    X, new = data.X, data.new

    def stream(model, y, **more):
        fit_params = {name: value[:50] for name, value in more.items()}
        model.fit(X[:50], y[:50], **fit_params)
        for start in range(50, 70, 5):
            rows = slice(start, start + 5)
            model.partial_fit(X[rows], y[rows], **{name: value[rows] for name, value in more.items()})
        model.forget([0, 3, 51])
        results = [model.loo_predict(), model.predict(X[70:], **{k: v[70:] for k, v in more.items() if k[0] == "c"})]
        if hasattr(model, "decision_function"):
            results.append(model.decision_function(X[70:], **{k: v[70:] for k, v in more.items() if k[0] == "c"}))
        return results

    def certificate(model, y):
        model.fit(X, y).forget([1, 2])
        return model.unlearning_certificate().difference < 1e-8

    def window(drop):
        model = SlidingWindow(LSSVR(gamma=0.3), max_samples=30, drop=drop)
        for start in range(0, 70, 10):
            model.partial_fit(X[start : start + 10], data.values[start : start + 10])
        return model.predict(new)

    return {
        "updates LSSVC": lambda: stream(LSSVC(gamma=0.3), data.three),
        "updates LSSVR": lambda: stream(LSSVR(gamma=0.3), data.values),
        "updates LSSVR weights": lambda: stream(LSSVR(gamma=0.3), data.values, sample_weight=data.weights),
        "updates LSSVR confounds": lambda: stream(LSSVR(gamma=0.3), data.values, confounds=data.confounds),
        "updates LSSVR linear": lambda: stream(LSSVR("linear"), data.values),
        "updates LSSVR coef": lambda: stream(LSSVR(gamma=0.3, penalty="coef"), data.values),
        "updates KFDA": lambda: stream(KernelFisherDiscriminant(gamma=0.3), data.three),
        "updates AdaptiveKDA": lambda: stream(AdaptiveKDA(gamma=0.3), data.three),
        "updates LSSVR nystroem": lambda: stream(LSSVR(Nystroem("rbf", 20), gamma=0.3), data.values),
        "certificate LSSVR": lambda: certificate(LSSVR(gamma=0.3), data.values),
        "window oldest": lambda: window("oldest"),
        "window least": lambda: window("least"),
        "conformal set": lambda: LSSVC(gamma=0.3).fit(X, data.three).predict_set(new),
        "conformal p-values": lambda: LSSVC(gamma=0.3).fit(X, data.three).conformal_p_values(new),
        "conformal p-values KFDA": lambda: (
            KernelFisherDiscriminant(gamma=0.3).fit(X, data.three).conformal_p_values(new)
        ),
        "interval jackknife+": lambda: LSSVR(gamma=0.3).fit(X, data.values).predict_interval(new),
        "interval conformal": lambda: LSSVR(gamma=0.3).fit(X, data.values).predict_interval(new, method="conformal"),
        "interval studentised": lambda: (
            LSSVR(gamma=0.3).fit(X, data.values).predict_interval(new, method="studentised")
        ),
        "stratified loo score": lambda: LSSVC(gamma=0.3).fit(X, data.rare).stratified_loo_score_,
    }


def cross_validation_calls():
    """Every splitter, scores, parameters, pipelines and the estimators of scikit-learn."""
    from sklearn import model_selection as splitters
    from sklearn.decomposition import PCA
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import Ridge, RidgeClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
    from foldless import model_selection as ms
    from foldless.kernels import Nystroem

    data = Data()
    X, machine, regression = data.X, LSSVC(gamma=0.3, alpha=0.2), LSSVR(gamma=0.3, alpha=0.2)
    fisher = KernelFisherDiscriminant(gamma=0.3, alpha=0.2)
    disjoint = {
        "k-fold": splitters.KFold(5),
        "stratified": splitters.StratifiedKFold(4, shuffle=True, random_state=1),
        "groups": splitters.GroupKFold(4),
        "leave one group out": splitters.LeaveOneGroupOut(),
        "leave-one-out": splitters.LeaveOneOut(),
        "predefined": splitters.PredefinedSplit(np.arange(data.n) % 7),
        "stratified leave-one-out": ms.StratifiedLeaveOneOut(),
    }
    overlapping = {
        "shuffled": splitters.ShuffleSplit(6, test_size=0.3, train_size=0.5, random_state=2),
        "time series": splitters.TimeSeriesSplit(4),
        "repeated": splitters.RepeatedStratifiedKFold(n_splits=4, n_repeats=2, random_state=3),
    }
    calls = {}
    for name, cv in disjoint.items():
        for label, model, y in (("LSSVC", machine, data.three), ("KFDA", fisher, data.three)):
            calls[f"cross_val_predict {label} {name}"] = lambda model=model, y=y, cv=cv: ms.cross_val_predict(
                model, X, y, cv=cv, groups=data.groups, method="decision_function"
            )
        if not name.startswith("stratified"):
            calls[f"cross_val_predict LSSVR {name}"] = lambda cv=cv: ms.cross_val_predict(
                regression, X, data.outputs, cv=cv, groups=data.groups, params={"sample_weight": data.zeros}
            )
    for name, cv in (disjoint | overlapping).items():
        if name in ("leave-one-out", "leave one group out", "stratified leave-one-out"):
            continue
        calls[f"cross_val_score LSSVC {name}"] = lambda cv=cv: ms.cross_val_score(
            machine, X, data.three, cv=cv, groups=data.groups
        )
    coef = LSSVC(gamma=0.3, alpha=0.2, penalty="coef")
    whole = {"return_train_score": True, "scoring": ["accuracy", "balanced_accuracy"], "cv": 4}
    scaled = make_pipeline(StandardScaler(), machine)
    components = make_pipeline(StandardScaler(), PCA(2), fisher)
    return calls | {
        "cross_validate train scores": lambda: _scores(ms.cross_validate(machine, X, data.three, **whole)),
        "cross_validate values": lambda: _scores(ms.cross_validate(regression, X, data.values, cv=5)),
        "cross_validate confounds": lambda: _scores(
            ms.cross_validate(regression, X, data.values, cv=5, confounds=data.confounds)
        ),
        "cross_validate confounds in score": lambda: _scores(
            ms.cross_validate(regression, X, data.values, cv=5, confounds=ms.Confounds(data.confounds, in_score=True))
        ),
        "cross_val_predict confounds": lambda: ms.cross_val_predict(
            machine, X, data.three, cv=4, confounds=data.confounds, method="decision_function"
        ),
        "cross_val_predict KFDA confounds": lambda: ms.cross_val_predict(
            fisher, X, data.three, cv=4, confounds=data.confounds, method="decision_function"
        ),
        "cross_val_predict coef": lambda: ms.cross_val_predict(coef, X, data.three, cv=4, method="decision_function"),
        "cross_val_predict probabilities": lambda: ms.cross_val_predict(
            LSSVC(gamma=0.3, calibration="sigmoid"), X, data.three, cv=4, method="predict_proba"
        ),
        "cross_val_predict threshold loo": lambda: ms.cross_val_predict(
            KernelFisherDiscriminant(gamma=0.3, threshold="loo"), X, data.two, cv=4, method="decision_function"
        ),
        "cross_val_predict standardize": lambda: ms.cross_val_predict(
            LSSVC(gamma=0.3, standardize=True), X, data.three, cv=4, method="decision_function"
        ),
        "cross_val_predict nystroem": lambda: ms.cross_val_predict(
            LSSVC(Nystroem("rbf", 20), gamma=0.3), X, data.three, cv=4, method="decision_function"
        ),
        "cross_val_predict pipeline": lambda: ms.cross_val_predict(
            scaled, X, data.three, cv=4, method="decision_function"
        ),
        "cross_val_predict pipeline once": lambda: ms.cross_val_predict(
            scaled, X, data.three, cv=4, method="decision_function", steps="once"
        ),
        "cross_val_predict PCA": lambda: ms.cross_val_predict(
            components, X, data.three, cv=4, method="decision_function"
        ),
        "cross_val_score balanced": lambda: ms.cross_val_score(
            LSSVC(gamma=0.3, class_weight="balanced"), X, data.rare, cv=4, scoring="balanced_accuracy"
        ),
        "cross_val_score roc_auc": lambda: ms.cross_val_score(machine, X, data.words, cv=4, scoring="roc_auc"),
        "cross_val_predict Ridge": lambda: ms.cross_val_predict(Ridge(0.5), X, data.values, cv=5),
        "cross_val_predict RidgeClassifier": lambda: ms.cross_val_predict(
            RidgeClassifier(class_weight="balanced"), X, data.three, cv=5, method="decision_function"
        ),
        "cross_val_predict KernelRidge": lambda: ms.cross_val_predict(
            KernelRidge(alpha=0.3, kernel="rbf", gamma=0.2), X, data.values, cv=5
        ),
        "explain": lambda: np.array([ms.explain(machine, X, data.three, cv=4).kind]),
        "leave_pair_out_auc": lambda: ms.leave_pair_out_auc(machine, X, data.two),
        "leave_pair_out_auc KFD": lambda: ms.leave_pair_out_auc(fisher, X, data.two),
        "leave_pair_out_auc confounds": lambda: ms.leave_pair_out_auc(machine, X, data.two, confounds=data.confounds),
        "score_interval nested": lambda: ms.score_interval(machine, X, data.two, n_repeats=3),
        "score_interval Nadeau-Bengio": lambda: ms.score_interval(
            regression, X, data.values, method="nadeau-bengio", scoring="neg_mean_squared_error", cv=5
        ),
        "compare": lambda: ms.compare(machine, fisher, X, data.two, n_repeats=3),
        "compare values": lambda: ms.compare(
            regression, LSSVR("linear"), X, data.values, scoring="neg_mean_squared_error", method="nadeau-bengio"
        ),
    }


def _scores(result):
    return {name: values for name, values in result.items() if "time" not in name and name != "estimator"}


def permutation_calls():
    """Every null, metric and family."""
    from sklearn.linear_model import RidgeClassifier
    from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant, stats
    from foldless import model_selection as ms
    from foldless.kernels import Nystroem

    data = Data()
    X, machine, regression = data.X, LSSVC(gamma=0.3, alpha=0.2), LSSVR(gamma=0.3, alpha=0.2)
    fisher, linear = KernelFisherDiscriminant(gamma=0.3), KernelFisherDiscriminant("linear")
    grid = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0], "gamma": [0.1, 0.5]})
    plain = {"cv": KFold(4), "n_permutations": 30}

    def test(model, y, features=X, **options):
        return _test(ms.permutation_test_score(model, features, y, **(plain | options)))

    def run(summary, labels, **options):
        return summary(ms.permutation_test_score(linear, data.times, labels, **(plain | options)))

    subjects = range(3)
    orders = [np.random.default_rng(subject).permutation(data.n) for subject in subjects]

    def group(summary):
        return summary(
            [ms.permutation_test_score(linear, data.times[order], data.two[order], **plain) for order in orders]
        )

    return {
        "permutations LSSVC": lambda: test(machine, data.three),
        "permutations KFDA": lambda: test(fisher, data.three),
        "permutations LSSVR": lambda: test(regression, data.values),
        "permutations LSSVR outputs": lambda: test(regression, data.outputs),
        "permutations stratified splits": lambda: test(machine, data.three, cv=4),
        "permutations strata": lambda: test(machine, data.two, null=data.strata),
        "permutations groups": lambda: test(machine, data.two, groups=data.strata, cv=GroupKFold(2)),
        "permutations leave one group out": lambda: test(
            machine, data.two, groups=data.groups, cv=LeaveOneGroupOut(), null="free"
        ),
        "permutations resplit": lambda: test(machine, data.two, cv=4, null="resplit"),
        "permutations metrics": lambda: test(machine, data.two, scoring=["roc_auc", "ber", "balanced_accuracy"]),
        "permutations values metrics": lambda: test(
            regression, data.values, scoring=["r2", "r2_pooled", "neg_mean_squared_error", "correlation"]
        ),
        "permutations scorer": lambda: test(machine, data.three, scoring="f1_macro"),
        "permutations weights": lambda: test(machine, data.three, params={"sample_weight": data.weights}),
        "permutations fixed weights": lambda: test(machine, data.three, params={"sample_weight": data.weights}),
        "permutations class weights": lambda: test(LSSVC(gamma=0.3, class_weight="balanced"), data.rare),
        "permutations confounds": lambda: test(machine, data.two, confounds=data.confounds),
        "permutations values confounds": lambda: test(regression, data.values, confounds=data.confounds),
        "permutations nystroem": lambda: test(LSSVC(Nystroem("rbf", 20), gamma=0.3), data.three),
        "permutations coef": lambda: test(LSSVC(gamma=0.3, penalty="coef"), data.three),
        "permutations pipeline": lambda: test(make_pipeline(StandardScaler(), machine), data.three),
        "permutations RidgeClassifier": lambda: test(RidgeClassifier(), data.three),
        "permutations search": lambda: test(grid, data.two, n_permutations=10),
        "permutations search values": lambda: test(
            FoldlessSearchCV(LSSVR(), {"alpha": [0.1, 1.0], "gamma": [0.1, 0.5]}), data.values, n_permutations=10
        ),
        "permutations family": lambda: test(linear, data.two, data.times),
        "permutations family LSSVC": lambda: test(LSSVC("linear"), data.three, data.times),
        "permutations family values": lambda: test(LSSVR("linear"), data.values, data.times),
        "permutations generalisation": lambda: test(linear, data.two, data.times, generalise=True),
        "permutations confusion": lambda: (
            ms.permutation_test_score(machine, X, data.three, scoring=["accuracy", "confusion"], **plain).confusion
        ),
        "permutations none": lambda: test(machine, data.three, n_permutations=0),
        "pattern": lambda: ms.permutation_test_pattern(linear, X, data.two, n_permutations=30),
        "pattern values": lambda: ms.permutation_test_pattern(LSSVR("linear"), X, data.values, n_permutations=30),
        "clusters": lambda: run(lambda result: stats.cluster_test(result).pvalue, data.two),
        "clusters TFCE": lambda: run(lambda result: stats.cluster_test(result, statistic="tfce").pvalue, data.two),
        "step-down": lambda: run(stats.step_down, data.two),
        "prevalence": lambda: group(lambda results: stats.prevalence_test(results, n_permutations=50)),
        "sign flips": lambda: group(lambda results: _test(stats.sign_flip_test(results, n_permutations=50))),
        "combination": lambda: group(lambda results: _test(stats.combine(results))),
    }


def _test(result):
    results = getattr(result, "results", None) or {"": result}
    return {name: (one.score, one.permutation_scores, one.pvalue) for name, one in results.items()}


def search_calls():
    """Searches of every method, and what is nested around them."""
    from sklearn.linear_model import Ridge, RidgeClassifier
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
    from foldless import model_selection as ms
    from foldless.criteria import CRITERIA
    from foldless.kernels import Nystroem
    from foldless.model_selection import Optimizer

    data, large = Data(), Data(n=640, seed=3)
    X = data.X
    grid = {"alpha": [0.01, 0.1, 1.0], "gamma": [0.05, 0.2, 0.8]}

    def search(model, y, parameters=grid, fit_params=None, **options):
        found = FoldlessSearchCV(model, parameters, **options).fit(X, y, **(fit_params or {}))
        table = {name: found.cv_results_[name] for name in ("mean_test_score",) if name in found.cv_results_}
        best = {name: value for name, value in found.best_params_.items() if not isinstance(value, str)}
        return best, found.best_score_, table, found.predict(data.new)

    def nested(model, y, parameters=grid, options=None, **more):
        result = ms.nested_cross_validate(FoldlessSearchCV(model, parameters, **(options or {})), X, y, **more)
        return (
            result.test_score,
            result.inner_score,
            result.inner_criterion,
            result.outer_criterion,
            result.predictions,
            result.decision,
        )

    folds = KFold(4)
    calls = {
        f"search {criterion}": lambda criterion=criterion: search(LSSVC(), data.two, criterion=criterion)
        for criterion in ("press", "error", "smooth_error", "ber", "smooth_ber", "hinge", "hinge2", "auc", "smooth_auc")
    }
    return calls | {
        "search three classes": lambda: search(LSSVC(), data.three),
        "search KFDA": lambda: search(KernelFisherDiscriminant(), data.three),
        "search values": lambda: search(LSSVR(), data.values),
        "search outputs": lambda: search(LSSVR(), data.outputs),
        "search folds": lambda: search(LSSVC(), data.three, cv=folds),
        "search scoring": lambda: search(LSSVC(), data.three, scoring="balanced_accuracy", cv=folds),
        "search weights": lambda: search(LSSVC(), data.three, fit_params={"sample_weight": data.weights}),
        "search balanced criterion": lambda: search(LSSVC(), data.rare, criterion_weight="balanced"),
        "search confounds": lambda: _without_predict(
            FoldlessSearchCV(LSSVC(), grid).fit(X, data.three, confounds=data.confounds)
        ),
        "search coef": lambda: search(LSSVC(penalty="coef"), data.two),
        "search kernels": lambda: search(
            LSSVC(), data.two, [{"kernel": ["linear"], "alpha": [0.1, 1.0]}, {"kernel": ["rbf"], **grid}]
        ),
        "search default": lambda: search(LSSVC(), data.three, None),
        "search default values": lambda: search(LSSVR(), data.values, None),
        "search gradient": lambda: search(LSSVC(), data.two, None, method=Optimizer("gradient", max_iter=10)),
        "search simplex": lambda: search(LSSVR(), data.values, None, method=Optimizer("simplex", max_iter=15)),
        "search feature scales": lambda: search(
            LSSVC(), data.two, None, method=Optimizer("gradient", max_iter=6, feature_scaling=True)
        ),
        "search nystroem": lambda: search(LSSVC(Nystroem("rbf", 20)), data.three),
        "search standardize": lambda: search(LSSVC(standardize=True), data.three),
        "search Ridge": lambda: search(Ridge(), data.values, {"alpha": [0.1, 1.0, 10.0]}),
        "search pipeline": lambda: search(
            make_pipeline(StandardScaler(), LSSVC()),
            data.three,
            {f"lssvc__{name}": values for name, values in grid.items()},
        ),
        "search slope": lambda: search(LSSVC(), data.two, criterion=CRITERIA["smooth_error"].with_slope(3.0)),
        "search slope gradient": lambda: search(
            LSSVC(),
            data.two,
            None,
            method=Optimizer("gradient", max_iter=5),
            criterion=CRITERIA["smooth_ber"].with_slope(2.0),
        ),
        "search feature groups": lambda: search(
            LSSVC(),
            data.two,
            None,
            method=Optimizer("gradient", prior="bayes", max_iter=5, feature_scaling=[0, 0, 1, 1]),
        ),
        "search starts and bounds": lambda: search(
            LSSVR(),
            data.values,
            None,
            method=Optimizer("gradient", n_starts=2, bounds={"gamma": (0.05, 2.0)}, max_iter=5),
        ),
        "search fixed gamma": lambda: search(LSSVR(), data.values, None, method=Optimizer(bounds={"gamma": "fixed"})),
        "search by parts": lambda: _best_of(FoldlessSearchCV(LSSVC()).fit(large.X, large.three), large.new),
        "search by parts, feature scales": lambda: _best_of(
            FoldlessSearchCV(LSSVR(), method=Optimizer(max_iter=3, feature_scaling=True)).fit(large.X, large.values),
            large.new,
        ),
        "search landmarks": lambda: _best_of(
            FoldlessSearchCV(LSSVC(Nystroem("rbf", "auto"))).fit(large.X, large.two), large.new
        ),
        "search class by class": lambda: _best_of(
            FoldlessSearchCV(LSSVC(), grid, share="none").fit(X, data.three), data.new
        ),
        "search alphas by class": lambda: _best_of(
            FoldlessSearchCV(LSSVC(), method=Optimizer("gradient", max_iter=5), share="kernel").fit(X, data.three),
            data.new,
        ),
        "search Ridge probabilities": lambda: (
            FoldlessSearchCV(RidgeClassifier(), {"alpha": [0.1, 1.0, 10.0]}).fit(X, data.three).predict_proba(data.new)
        ),
        "search score interval": lambda: list(
            ms.score_interval(FoldlessSearchCV(LSSVC(), grid), X, data.two, cv=KFold(4), n_repeats=1)
        ),
        "nested loop": lambda: nested(
            LSSVC(), data.two, None, {"method": ms.Optimizer("gradient", max_iter=4)}, cv=folds
        ),
        "nested intervals": lambda: ms.nested_cross_validate(
            FoldlessSearchCV(LSSVR(), grid), X, data.values, cv=folds, return_estimator=True
        ).predict_interval(data.new, 0.8),
        "nested sets": lambda: ms.nested_cross_validate(
            FoldlessSearchCV(LSSVC(), grid), X, data.three, cv=folds, return_estimator=True
        ).conformal_p_values(data.new),
        "nested LSSVC": lambda: nested(LSSVC(), data.three, cv=folds),
        "nested KFDA": lambda: nested(KernelFisherDiscriminant(), data.three, cv=StratifiedKFold(3)),
        "nested values": lambda: nested(LSSVR(), data.values, cv=folds),
        "nested folds inside": lambda: nested(LSSVC(), data.three, options={"cv": KFold(3)}, cv=folds),
        "nested weights": lambda: nested(LSSVC(), data.three, cv=folds, params={"sample_weight": data.weights}),
        "nested confounds": lambda: nested(LSSVR(), data.values, cv=folds, confounds=data.confounds),
        "nested criterion": lambda: nested(LSSVC(), data.two, options={"criterion": "smooth_ber"}, cv=folds),
        "nested coef": lambda: nested(LSSVC(penalty="coef"), data.two, cv=folds),
        "nested standardize": lambda: nested(LSSVC(standardize=True), data.three, cv=folds),
        "nested default": lambda: nested(LSSVC(), data.three, None, cv=folds),
    }


def _best_of(search, new):
    """What a fitted search chose, and what it predicts."""
    params = search.best_params_ if isinstance(search.best_params_, list) else [search.best_params_]
    values = [[value for value in each.values() if not isinstance(value, str)] for each in params]
    return values, search.best_criterion_, search.best_score_, search.predict(new)


def _without_predict(search):
    return {name: search.best_params_[name] for name in ("alpha", "gamma")}, search.best_score_


def chunk_calls():
    """Rows in chunks."""
    from foldless import LSSVC, LSSVR, KernelFisherDiscriminant, chunked
    from foldless.kernels import Nystroem, RandomFeatures
    from foldless.reduction import reduce_instances

    data = Data(n=400, d=5)

    def run(model, y, **options):
        source = chunked.arrays(data.X, y, rows=90)
        result = chunked.cross_validate(model, source, **({"cv": 4, "verbose": 0} | options))
        return result.test_score, result.loo_score, result.estimator.predict(data.new)

    return {
        "chunks LSSVC": lambda: run(LSSVC("linear"), data.three),
        "chunks LSSVR": lambda: run(LSSVR("linear"), data.values),
        "chunks KFDA": lambda: run(KernelFisherDiscriminant("linear"), data.three),
        "chunks nystroem": lambda: run(LSSVC(Nystroem("rbf", 30)), data.three),
        "chunks alphas": lambda: run(LSSVR("linear"), data.values, alphas=[0.1, 10.0]),
        "chunks grid": lambda: run(LSSVC(RandomFeatures("rbf", 30)), data.two, param_grid={"gamma": [0.05, 0.2]}),
        "chunks probabilities": lambda: run(LSSVC("linear", calibration="sigmoid"), data.two),
        "reduction": lambda: reduce_instances(data.X, data.three, random_state=0),
    }


def all_calls():
    """{name: call}."""
    groups = (estimator_calls, update_calls, cross_validation_calls, permutation_calls, search_calls, chunk_calls)
    return {name: call for group in groups for name, call in group().items()}


# -- numbers of results ------------------------------------------------------------------------------------------------


def flattened(value):
    """The arrays in a result, in their order."""
    if isinstance(value, dict):
        return [array for key in value for array in flattened(value[key])]
    if is_dataclass(value):
        return flattened([getattr(value, field.name) for field in fields(value)])
    if isinstance(value, list | tuple):
        return [array for entry in value for array in flattened(entry)]
    if value is None or isinstance(value, str) or callable(value):  # words may change
        return []
    array = np.asarray(value)
    return [array.astype(str) if array.dtype == object else array]


def run_all(path, only):
    """Write the outputs of the calls whose names hold a word: arrays, or the error."""
    outputs = {}
    for name, call in all_calls().items():
        if only in name:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    outputs[name] = flattened(call())
                except Exception as error:
                    outputs[name] = f"{type(error).__name__}: {error}"
    Path(path).write_bytes(pickle.dumps(outputs))


def outputs_of(folder, only):
    """The outputs by the version whose tree lies in a folder."""
    path = Path(folder) / "outputs.pickle"
    environment = os.environ | {"PYTHONPATH": str(Path(folder) / "src"), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(folder) / "benchmarks" / "outputs.py"), "--write", str(path), "--only", only]
    subprocess.run(command, check=True, env=environment)
    outputs = pickle.loads(path.read_bytes())
    path.unlink()
    return outputs


def difference(then, now):
    """The largest difference in units of the tolerance, or words."""
    if isinstance(then, str) or isinstance(now, str):
        return None if then == now else f"{then if isinstance(then, str) else 'a result'} -> {now!r:.200}"
    if [array.shape for array in then] != [array.shape for array in now]:
        return f"shapes {[array.shape for array in then]} -> {[array.shape for array in now]}"
    worst = 0.0
    for before, after in zip(then, now, strict=True):
        if before.dtype.kind not in "fc":
            if not np.array_equal(before, after):
                return f"{np.sum(before != after)} of {before.size} values of type {before.dtype} differ"
            continue
        rtol = RTOL_SINGLE if before.dtype == np.float32 else RTOL
        finite = np.isfinite(before)
        if not np.array_equal(finite, np.isfinite(after)):
            return "other values are not finite"
        if finite.any():
            size = np.abs(before[finite]).max()
            worst = max(worst, np.abs(after[finite] - before[finite]).max() / (rtol * max(size, 1e-300)))
    return worst


def main():
    """Compare this tree with a commit."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("rev", nargs="?", help="the earlier commit")
    options.add_argument("--only", default="", help="calls whose name holds this word")
    options.add_argument("--json", type=Path, metavar="FILE")
    options.add_argument("--write", help=argparse.SUPPRESS)
    options = options.parse_args()
    if options.write:
        return run_all(options.write, options.only)
    root = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        paths = ["src", "benchmarks/outputs.py"]
        archive = subprocess.run(["git", "archive", options.rev, *paths], cwd=root, capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        then, now = outputs_of(folder, options.only), outputs_of(root, options.only)
    entries = {name: difference(then[name], now[name]) if name in now else "missing" for name in then}
    changed = {name: value for name, value in entries.items() if isinstance(value, str) or (value and value > 1)}
    failed = [name for name, value in then.items() if isinstance(value, str)]
    document = {"calls": len(then), "new": len(now.keys() - then.keys()), "errors_then": failed, "changed": changed}
    numbers = [value for value in entries.values() if isinstance(value, float)]
    document["largest_unchanged"] = max((value for value in numbers if value <= 1), default=0.0)
    text = json.dumps(document, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())
