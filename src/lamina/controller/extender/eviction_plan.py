"""What is to be evicted, and for whom."""

from typing import NamedTuple

from lamina.ledger.pods import ParsedPod
from lamina.ports.kube import Object


class EvictionPlan(NamedTuple):
    """Where pods are to go, and the pods to evict, by node. Pods may go to nodes where none is evicted."""

    places: list[tuple[ParsedPod, str]]
    victims: dict[str, list[Object]]
