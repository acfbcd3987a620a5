"""One model of every kind: estimators, kernels, options that change what a model holds."""

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC, LSSVR, AdaptiveKDA, FoldlessSearchCV, KernelFisherDiscriminant, SlidingWindow
from foldless.estimators import OneAgainstAllClassifier
from foldless.kernels import KERNELS, RBF, Laplacian, Linear, Nystroem, On, Poly, RandomFeatures
from foldless.model_selection import Optimizer

N = 48
rng = np.random.default_rng(8)
X, new = rng.normal(size=(N, 4)), rng.normal(size=(6, 4))
values = np.sin(X[:, 0]) + 0.1 * rng.normal(size=N)
two, three = (X[:, 0] > 0).astype(int), np.array(["ash", "beech", "cedar"])[(X[:, 0] > 0) + (X[:, 1] > 0.3).astype(int)]
weights, confounds = rng.uniform(0.5, 2.0, N), rng.normal(size=(N, 2))

every_kernel = {
    **{name: kind() for name, kind in KERNELS.items() if name not in ("precomputed", "boolean")},
    "widths": RBF(np.array([0.1, 0.2, 0.3, 0.0])),
    "sum": RBF(0.1) + 0.5 * Linear(),
    "product": (RBF(0.1) + Linear()) * Poly(degree=2),
    "columns": On([0, 2], RBF(0.2)) + On([1, 3], Linear()),
    "nystroem": Nystroem(RBF(0.2), n_landmarks=10),
    "nystroem without whitening": Nystroem(RBF(0.2), n_landmarks=10, whiten=False),
    "nystroem of each part": Nystroem(RBF("scale"), 10, landmarks="uniform", per_fold=True, random_state=3),
    "landmarks of the user": Nystroem(RBF(0.2) + Linear(), landmarks=X[:7]),
    "random features": RandomFeatures(Laplacian(0.2), n_landmarks=10),
}
every_model = {
    "LSSVC": lambda: LSSVC().fit(X, three),
    "LSSVC of two": lambda: LSSVC(class_weight={0: 2.0}).fit(X, two),
    "LSSVR": lambda: LSSVR().fit(X, values),
    "LSSVR of two outputs": lambda: LSSVR(standardize=True).fit(X, np.column_stack([values, X[:, 1]])),
    "weights": lambda: LSSVR(gamma=0.2).fit(X, values, sample_weight=weights),
    "confounds": lambda: LSSVR(gamma=0.2).fit(X, values, confounds=confounds),
    "ids": lambda: LSSVR(gamma=0.2).fit(X, values, ids=[f"p{i}" for i in range(N)]),
    "whole numbers as ids": lambda: LSSVR(gamma=0.2).fit(X, values, ids=range(N)),
    "float32": lambda: LSSVR(gamma=0.2).fit(X.astype(np.float32), values),
    "sparse": lambda: LSSVC("linear").fit(sp.csr_array(X), two),
    "precomputed": lambda: LSSVR("precomputed").fit(rbf_kernel(X), values),
    "boolean": lambda: LSSVC("boolean").fit(X > 0, three),
    "coefficients": lambda: LSSVC(penalty="coef").fit(X, three),
    "landmarks": lambda: LSSVC(Nystroem("rbf", n_landmarks=10, landmarks="uniform", per_fold=True)).fit(X, three),
    "sigmoid": lambda: LSSVC(gamma=0.2, calibration="sigmoid").fit(X, two),
    "sigmoid of three": lambda: LSSVC(gamma=0.2, calibration="sigmoid").fit(X[:24], three[:24]),
    "isotonic": lambda: LSSVC(gamma=0.2, calibration="isotonic").fit(X, two),
    "a class without rows": lambda: (
        LSSVC(gamma=0.2, calibration="sigmoid").partial_fit(X, two, classes=[0, 1, 2]).forget([0])
    ),
    "updated": lambda: LSSVC(gamma=0.2).fit(X[:40], three[:40]).partial_fit(X[40:], three[40:]).forget([3, 5]),
    "KFDA": lambda: KernelFisherDiscriminant().fit(X, three),
    "KFDA with a cut": lambda: KernelFisherDiscriminant(threshold="loo").fit(X, two),
    "KFDA with priors": lambda: KernelFisherDiscriminant(priors=[0.5, 0.2, 0.3]).fit(X, three),
    "KFDA updated": lambda: KernelFisherDiscriminant(gamma=0.2, penalty="coef").fit(X, three).forget([3]),
    "AdaptiveKDA": lambda: AdaptiveKDA().fit(X, three),
    "AdaptiveKDA updated": lambda: AdaptiveKDA(gamma=0.2).fit(X, three).forget([3]).partial_fit(X[3:4], three[3:4]),
    "window": lambda: SlidingWindow(LSSVC(gamma=0.2), 40).fit(X[:40], three[:40]).partial_fit(X[40:], three[40:]),
    "one against all": lambda: OneAgainstAllClassifier([(each, LSSVC(alpha=0.1)) for each in np.unique(three)]).fit(
        X, three
    ),
    "grid": lambda: FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0], "gamma": [0.1, 1.0]}).fit(X, three),
    "grid with folds": lambda: FoldlessSearchCV(
        LSSVC(calibration="sigmoid"), {"alpha": [0.1, 1.0]}, cv=3, scoring="roc_auc"
    ).fit(X, two),
    "gradient": lambda: FoldlessSearchCV(LSSVR(), method=Optimizer("gradient", max_iter=3, feature_scaling=True)).fit(
        X, values
    ),
    "search of a pipeline": lambda: FoldlessSearchCV(
        make_pipeline(StandardScaler(), LSSVC()), {"lssvc__alpha": [0.1, 1.0]}
    ).fit(X, three),
    "search of each class": lambda: FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]}, share="none").fit(X, three),
    "not fitted": lambda: LSSVC(RBF(0.2), alpha=0.1),
}
