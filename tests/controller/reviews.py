"""The verdict on a new pod, with what a cluster says to it: as the admission process and the controller decide."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from lamina.configuration import Config
from lamina.controller.admission import review as parts
from lamina.controller.admission.review import Verdict


def review(
    pod: Mapping[str, Any],
    config: Config,
    *,
    ready: bool = True,
    offered: Callable[[Collection[str]], bool] = lambda resources: False,
) -> Verdict:
    verdict, demand = parts.review(pod, config)
    if demand is None:
        return verdict
    refusal = parts.refusal_of(demand, ready=ready, offered=offered)
    return parts.refused(refusal) if refusal else verdict
