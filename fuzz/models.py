"""Random estimators, as Python text and as the plain problems they stand for."""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from foldless.kernels import Boolean
from fuzz.data import Data, pick
from fuzz.discriminants import Discriminant
from fuzz.oracles import LD, Problem, Refit, kernel_matrix, kernel_rounding

FOLDLESS_ESTIMATORS = {"LSSVR": False, "LSSVC": True, "KernelFisherDiscriminant": True}
THEIRS = {"Ridge": False, "RidgeClassifier": True, "KernelRidge": False}


@dataclass
class Model:
    """An estimator by its class name and parameters."""

    name: str
    kernel: dict
    alpha: float
    options: dict = field(default_factory=dict)

    @property
    def classifies(self):
        """Whether y holds labels."""
        return {**FOLDLESS_ESTIMATORS, **THEIRS}[self.name]

    @property
    def text(self):
        """The call that makes it."""
        parameters = as_arguments(self.kernel)
        if self.name in ("Ridge", "RidgeClassifier"):
            parameters = {}
        parameters = {"alpha": self.alpha, **parameters, **self.options}
        parameters = {k: (v.tolist() if isinstance(v, np.ndarray) else v) for k, v in parameters.items()}
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in parameters.items())})"

    @property
    def label(self):
        """What findings of the same kind share."""
        extra = [self.kernel["kernel"], self.options.get("penalty", ""), self.options.get("threshold", "")]
        return " ".join([self.name, *[each for each in extra if each]])

    def option(self, name, default=None):
        """A parameter with its default."""
        return self.options.get(name, default)

    @property
    def intercept(self):
        """Whether a constant is fitted."""
        return self.name != "KernelRidge" and self.option("fit_intercept", True)

    def class_factors(self, data):
        """The factor of each class by class_weight, and the priors that come with it."""
        c = len(data.classes)
        given = self.option("class_weight")
        if given is None:
            return np.ones(c, LD), None
        factors = np.array([given.get(label, 1.0) for label in data.classes.tolist()], LD)
        if self.name == "KernelFisherDiscriminant":
            factors = factors / factors.mean()
            return factors, factors / factors.sum()
        return factors, None

    def problem(self, data: Data, X=None, alpha=None, kernel=None, C=None):
        """The plain problem of the rows of data (and of further rows X, which have weight 0)."""
        kernel = self.kernel if kernel is None else kernel
        dense = data.dense if X is None else np.vstack([data.dense, X])
        more = len(dense) - data.n
        w = data.w
        if self.classifies:
            w = w * self.class_factors(data)[0][data.codes]
            c = len(data.classes)
            Y = np.eye(c, dtype=LD)[data.codes]
            if self.name != "KernelFisherDiscriminant":
                Y = 2 * Y - 1 if c > 2 else 2 * Y[:, 1:] - 1
        else:
            Y = data.Y
        return Problem(
            kernel_matrix(kernel, dense, dense),
            np.vstack([Y, np.zeros((more, Y.shape[1]), LD) + Y[:1]]),
            np.concatenate([w, np.zeros(more, LD)]),
            self.alpha if alpha is None else alpha,
            self.intercept,
            self.option("penalty", "rkhs"),
            C,
            data.dtype,
            kernel_rounding(kernel, dense, not sp.issparse(data.X)),
        )

    def refit(self, problem, data, train):
        """The refitted model: a function from rows to predictions or decisions."""
        if self.name == "KernelFisherDiscriminant":
            priors = self.option("priors")
            if priors is None:
                priors = self.class_factors(data)[1]
            codes = np.concatenate([data.codes, np.zeros(len(problem.K) - data.n, int)])
            parts = (codes, len(data.classes), self.option("threshold", "pm1"), priors, self.option("n_components"))
            return Discriminant(problem, train, *parts).decisions
        refit = Refit(problem, train)
        if not self.classifies:
            return refit.at
        return (lambda rows: refit.at(rows).column(0)) if len(data.classes) == 2 else refit.at


def as_arguments(kernel):
    """A kernel as arguments of an estimator."""
    if kernel["kernel"] == "boolean":
        return {"kernel": Boolean(kernel["eta"])}
    return dict(kernel)


def draw_kernel(rng, names=None):
    """A kernel with numbers for its parameters, from far too wide to far too narrow."""
    name = pick(rng, *(names or ("rbf", "rbf", "linear", "linear", "poly", "laplacian", "boolean", "cosine")))
    gamma = float(pick(rng, 1e-6, 1e-3, 0.1, 0.1, 0.5, 0.5, 1.0, 3.0, 50.0, 1000.0))
    if name in ("rbf", "laplacian"):
        return {"kernel": name, "gamma": gamma}
    if name == "poly":
        gamma = float(pick(rng, 0.1, 0.5, 1.0))
        return {"kernel": name, "gamma": gamma, "degree": int(rng.integers(1, 4)), "coef0": float(pick(rng, 0, 1, 1))}
    if name == "boolean":
        return {"kernel": name, "eta": float(pick(rng, 0.1, 1.0))}
    return {"kernel": name}


def draw_alpha(rng):
    """A penalty, mostly moderate."""
    if rng.random() < 0.55:
        return float(pick(rng, 1e-3, 1e-2, 0.1, 1.0, 10.0))
    return float(10.0 ** rng.integers(-8, 9))


def draw_own(rng, name, c=None, *, kernels=None, simple=False, loo_cut=True):
    """One of the library's estimators."""
    kernel, alpha, options = draw_kernel(rng, kernels), draw_alpha(rng), {}
    if not simple and rng.random() < 0.25:
        options["penalty"] = "coef"
    if rng.random() < 0.2:
        options["fit_intercept"] = False
    if name == "KernelFisherDiscriminant":
        if c == 2:
            options["threshold"] = pick(rng, *(("fisher", "pm1", "centroid") + (("loo",) if loo_cut else ())))
        if rng.random() < 0.25 and (c > 2 or options["threshold"] == "centroid"):
            options["priors"] = rng.dirichlet(np.full(c, 5.0)).tolist()
        if c > 2 and rng.random() < 0.2:
            options["n_components"] = int(rng.integers(1, c))
    return Model(name, kernel, alpha, options)


def with_class_weight(rng, model, data, chance=0.3):
    """Sometimes a weight for some of the classes."""
    if model.classifies and rng.random() < chance:
        least = len(data.classes) if model.name == "RidgeClassifier" else 1  # which must name them all
        some = rng.choice(len(data.classes), int(rng.integers(least, len(data.classes) + 1)), replace=False)
        model.options["class_weight"] = {data.classes[k].item(): float(pick(rng, 10, 0.1, 2.5)) for k in sorted(some)}
    return model


def draw_their(rng, name, kernels=("linear", "rbf", "poly", "laplacian", "cosine")):
    """One of scikit-learn's estimators that are accelerated as they are."""
    kernel = draw_kernel(rng, kernels) if name == "KernelRidge" else {"kernel": "linear"}
    options = {"fit_intercept": False} if name != "KernelRidge" and rng.random() < 0.25 else {}
    return Model(name, kernel, draw_alpha(rng), options)
