"""Metadata: which parameters of a call go to the splitter, to ``fit`` and to the scorers."""

from typing import NamedTuple

import sklearn
from sklearn.metrics import check_scoring
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing


class Metadata(NamedTuple):
    """Parameters of the splitter, of ``fit`` and (with metadata routing only) of the scorers."""

    split: dict
    fit: dict
    score: dict | None


def route_metadata(owner, estimator, cv, params, groups, scoring):
    """The :class:`Metadata` of a call of ``owner``, with or without scikit-learn's metadata routing."""
    if not sklearn.get_config().get("enable_metadata_routing", False):
        return Metadata({"groups": groups}, params, None)
    if groups is not None:
        raise ValueError(
            "`groups` can only be passed if metadata routing is not enabled; pass params={'groups': groups}."
        )
    router = MetadataRouter(owner=owner)
    router.add(splitter=cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
    router.add(estimator=estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
    for_scorers = {}
    if owner == "cross_validate":
        scorers = check_scoring(estimator, scoring=scoring)
        router.add(scorer=scorers, method_mapping=MethodMapping().add(caller="fit", callee="score"))
        wanted = get_routing_for_object(scorers).consumes("score", params.keys())
        for_scorers = {name: params[name] for name in wanted}
    routed = process_routing(router, "fit", **params)
    return Metadata(routed.splitter.split, routed.estimator.fit, for_scorers or None)
