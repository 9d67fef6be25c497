"""What became of a request for another size, as a pod's status says it, and what is said of pods without a grant.

Every request is answered: a pod that can have no other size is refused, by the command where it knows that, and by the
controller otherwise.
"""

from typing import NamedTuple

from lamina.core.gpus import Inventory
from lamina.dra.containers import uses_by_container
from lamina.ledger.pods import ParsedPod

DONE, WAITING, REFUSED = "done", "waiting", "refused"
ENDED = "the pod has ended"
NOT_PLACED = "the pod is not on a node yet"
NO_GRANT = "the pod has no grant yet"
NOT_APPLIED = "the agent has not applied it yet"
BY_CLAIM = "shares of ResourceClaims cannot be resized, because no claim can change; create the pod again"
_BY_KUBELET = "kubelet allocates its devices by itself, which cannot be resized"


class ResizeAnswer(NamedTuple):
    """`state` is done, waiting or refused."""

    state: str
    why: str = ""

    def written(self, request: str) -> str:
        """As the status of a pod that asks for `request`."""
        return f"{self.state} {request}{': ' if self.why else ''}{self.why}"


def read_answer(status: str, request: str) -> ResizeAnswer | None:
    """What the status says of this request; None where it says nothing of it, such as of one before."""
    for state in (DONE, WAITING, REFUSED):
        if status == f"{state} {request}":
            return ResizeAnswer(state)
        if status.startswith(f"{state} {request}: "):
            return ResizeAnswer(state, status.removeprefix(f"{state} {request}: "))
    return None


def without_grant(pod: ParsedPod, inventory: Inventory | None) -> ResizeAnswer:
    """The answer to a pod that is on a node without a grant, or waits for a node. `inventory` is that of its node."""
    if why := no_share(pod):
        return ResizeAnswer(REFUSED, why)
    if not pod.obj["spec"].get("nodeName"):
        return ResizeAnswer(WAITING, NOT_PLACED)
    if inventory and pod.request and inventory.offers_native_devices(pod.request.native_devices):
        return ResizeAnswer(REFUSED, _BY_KUBELET)
    return ResizeAnswer(WAITING, NO_GRANT)


def no_share(pod: ParsedPod, container: str = "") -> str:
    """Why the pod, or this container of it, can have no share by a grant; empty where it can."""
    claiming = uses_by_container(pod.obj)
    if pod.problem:
        return f"its request cannot be read: {pod.problem}"
    if pod.request is None:
        return BY_CLAIM if claiming or pod.served_by_claim else "it requests no share of a GPU"
    if container and container not in [each.container for each in pod.request.containers]:
        why = BY_CLAIM if container in claiming else "it requests no share of a GPU"
        return f"container {container}: {why}"
    return ""
