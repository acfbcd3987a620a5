"""Weights of the rows in the criterion of a search: by default those of the fit, class weights included."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import ParameterGrid

from foldless._sklearn.candidates import targets_of, with_params
from foldless._sklearn.pipelines import split_steps


def with_row_weights(spec, search, y, sample_weight):
    """The spec of a search with the weights of its rows in the criterion."""
    weighs = {"auto": _fit_weights, "sample_weight": lambda *_: sample_weight}.get(spec.criterion_weight)
    return replace(spec, row_weights=None if weighs is None else weighs(search, y, sample_weight))


def route_with_weights(route, search, spec):
    """The route of a search; its reason says so where class weights weigh the criterion."""
    weighs_criterion = spec.criterion_weight == "auto" and spec.row_weights is not None
    if not (weighs_criterion and is_classifier(search.estimator) and any(_class_weights(search))):
        return route
    return replace(route, reason=f"{route.reason}; class weights weigh the criterion as well (criterion_weight='auto')")


def _fit_weights(search, y, sample_weight):
    """Weights (n,) of the rows in the fits; without class weights where the candidates differ in these."""
    estimator = search.estimator
    if not is_classifier(estimator):
        return sample_weight
    class_weights = _class_weights(search)
    first = class_weights[0]
    if first is None or any(class_weight != first for class_weight in class_weights):
        return sample_weight
    candidate = with_params(estimator, next(_params_of_class_weights(search)))
    return np.square(targets_of(candidate, y, sample_weight).task.problem.root_w)


def _class_weights(search):
    """The class weights of all candidates of a search."""
    candidates = [with_params(search.estimator, params) for params in _params_of_class_weights(search)]
    return [getattr(split_steps(candidate).last, "class_weight", None) for candidate in candidates]


def _params_of_class_weights(search):
    """The parameters of the grid that set class weights, or the whole last step."""
    steps = split_steps(search.estimator)
    names = (f"{steps.prefix}class_weight", steps.name)
    grids = [search.param_grid] if isinstance(search.param_grid, Mapping) else search.param_grid or [{}]
    for grid in grids:
        yield from ParameterGrid({name: grid[name] for name in names if name in grid})
