"""``steps=``: whether the first steps of a pipeline are fitted on each training part, or once on all rows.

"each" is what scikit-learn does, and what a pipeline is for. "once" fits steps that never see y on all rows, so that
one P serves all training parts. Held-out rows then have a say in means and scales (as they have in ``gamma="scale"``),
never their labels: what is tested by permutation or by held-out labels stays honest.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import sklearn
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

from foldless.bridge.pipelines import check_steps, split_steps
from foldless.bridge.route import NoClosedForm
from foldless.estimators.checks import check_option

StepsLike: TypeAlias = Literal["each", "once"]


@dataclass(frozen=True)
class Front:
    """What is cross-validated: the estimator, X and parameters as they were given, or those behind fitted steps."""

    estimator: Any
    X: Any
    params: dict
    fitted: Pipeline | None = None  # the steps, fitted on all rows
    name: str = ""  # of the last step

    def whole(self, estimator):
        """A fitted last step as the pipeline that was given."""
        return estimator if self.fitted is None else Pipeline([*self.fitted.steps, (self.name, estimator)])

    def route(self, route):
        """The route of a call, with the steps in front."""
        if self.fitted is None:
            return route
        names = ", ".join(type(step).__name__ for _, step in self.fitted.steps)
        return replace(route, reason=f"{names} fitted once on all rows, labels unseen; {route.reason}")


def front_of(estimator, X, params, steps):
    """The :class:`Front` of a call with ``steps="each"`` or ``"once"``."""
    check_option("steps", steps, ("each", "once"))
    params, taken = params or {}, split_steps(estimator)
    if steps == "each" or taken.first is None:
        return Front(estimator, X, params)
    try:
        check_steps(taken.first)
    except NoClosedForm as obstacle:
        raise ValueError(
            f"steps='once': {obstacle}, and would be shown the labels of held-out rows. Use steps='each'."
        ) from None
    mine, others = _split_params(taken, params)
    fitted = clone(taken.first).fit(X, None, **mine)
    return Front(taken.last, fitted.transform(X), others, fitted, taken.name)


def _split_params(taken, params):
    """Parameters of ``fit`` of the first steps, and the rest as the last step calls them."""
    if sklearn.get_config().get("enable_metadata_routing", False):
        consumed = get_routing_for_object(taken.first).consumes("fit", params)
        only = set(consumed) - set(get_routing_for_object(taken.last).consumes("fit", params))
        return {name: params[name] for name in consumed}, {k: v for k, v in params.items() if k not in only}
    names = {name for name, _ in taken.first.steps}
    mine = {key: value for key, value in params.items() if key.partition("__")[0] in names}
    return mine, taken.fit_params_of_last({key: value for key, value in params.items() if key not in mine})
