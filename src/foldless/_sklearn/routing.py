"""Metadata: the parameters of a call that go to the splitter, to ``fit`` and to the scorers."""

from typing import NamedTuple

import sklearn
from sklearn.metrics import check_scoring
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing


class Metadata(NamedTuple):
    """Parameters of the splitter, of ``fit`` and (with metadata routing only) of the scorers."""

    split: dict
    fit: dict
    score: dict | None
    for_splitter: frozenset = frozenset()  # names of the caller's parameters that went to the splitter

    def but_splitter(self, params):
        """The caller's parameters without those of the splitter, once the splits are drawn."""
        if not self.for_splitter:
            return params
        return {name: value for name, value in params.items() if name not in self.for_splitter}


def check_groups(groups):
    """Refuse ``groups`` with metadata routing, where they belong into ``params``."""
    if groups is not None and sklearn.get_config().get("enable_metadata_routing", False):
        raise ValueError(
            "`groups` can only be passed if metadata routing is not enabled; pass params={'groups': groups}."
        )


def route_metadata(owner, estimator, cv, params, groups, scoring):
    """The :class:`Metadata` of a call of ``owner``, with or without scikit-learn's metadata routing."""
    if not sklearn.get_config().get("enable_metadata_routing", False):
        return Metadata({"groups": groups}, params, None)
    check_groups(groups)
    router = MetadataRouter(owner=owner)
    router.add(splitter=cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
    router.add(estimator=estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
    for_scorers = {}
    if owner == "cross_validate":
        scorers = check_scoring(estimator, scoring=scoring)
        router.add(scorer=scorers, method_mapping=MethodMapping().add(caller="fit", callee="score"))
        names = get_routing_for_object(scorers).consumes("score", params.keys())
        for_scorers = {name: params[name] for name in names}
    routed = process_routing(router, "fit", **params)
    for_splitter = frozenset(get_routing_for_object(cv).consumes("split", params.keys()))
    return Metadata(routed.splitter.split, routed.estimator.fit, for_scorers or None, for_splitter)
