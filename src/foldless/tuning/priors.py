"""Priors of the scales of features, against over-fitting.

A criterion with one scale for every feature can be over-fitted. With a normal model of the held-out residuals
(precision zeta, Q half the sum of squares of N residuals), zeta integrated out under Jeffreys' prior,

    int zeta^(N/2 - 1) exp(-zeta Q) dzeta = Gamma(N/2) Q^(-N/2)      leaves  N/2 log Q - log p(theta)

to be minimised in the place of Q, and there are two priors p of the d scales theta:

    bayes    normal of precision xi, that integrated out as zeta was: d/2 log Omega, Omega = |theta|^2 / 2 (Cawley &
             Talbot, JMLR 8, 2007). It draws all scales to 0, where it is minus infinity: only bounds and a local search
             keep it sensible.
    cauchy   on the logarithms about their mean: sum_k log(1 + u_k^2 / s^2), u = log theta - mean log theta, s = 0.3; a
             normal u_k with a precision of its own, integrated out under Gamma(1/2, s^2/2). Its mode is one gamma for
             all features, its tails let features leave, and it does not see the units of X.
"""

import numpy as np


def bayes(logs):
    """d/2 log(|theta|^2 / 2) and its derivatives by log theta."""
    top = logs.max()
    squares = np.exp(2 * (logs - top))
    d, total = len(logs), squares.sum()
    return d / 2 * (np.log(total / 2) + 2 * top), d * squares / total


def cauchy(logs, width=0.3):
    """sum_k log(1 + u_k^2 / width^2) and its derivatives by log theta."""
    u = logs - logs.mean()
    slope = 2 * u / (width**2 + u * u)
    return np.log1p(np.square(u / width)).sum(), slope - slope.mean()


PRIORS = {"bayes": bayes, "cauchy": cauchy}
