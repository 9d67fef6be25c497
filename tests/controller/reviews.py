"""The verdict on a new pod, with what a cluster says to it: as admission decides."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from lamina.admission import review as parts
from lamina.admission.review import Verdict
from lamina.configuration import Config


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
