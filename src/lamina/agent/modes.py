"""Never two modes at once: a GPU on which containers hold MIG instances holds nothing else, and the other way round.

The same goes for GPUs of which grants give shares and GPUs that kubelet gives out: what is offered says so too, but the
scheduler and kubelet may act by what was offered a moment ago.
"""

from collections.abc import Collection

from lamina.agent.plain import is_plain
from lamina.agent.record import Allocation, Bound
from lamina.errors import NotYet
from lamina.model.gpus import Mode


def check(starting: Collection[Bound], others: Collection[Allocation], *, plain: bool = False) -> None:
    """Raises NotYet where a starting container would have a GPU in another mode, or an instance of another pod.

    `others` are the names of all other containers; those count that were prepared and not released yet. `plain` is
    whether those that start have their GPUs by kubelet's choice.
    """
    for other in others:
        if other.bound is not None:
            plainly = all(map(is_plain, other.tickets))
            for one in starting:
                _check(one, other.bound, apart=plain != plainly)


def _check(one: Bound, other: Bound, *, apart: bool) -> None:
    name = f"{other.namespace}/{other.pod}"
    for gpu in set(one.gpus) & set(other.gpus):
        if other.mode is not None and (apart or (one.mode is Mode.MIG) != (other.mode is Mode.MIG)):
            raise NotYet(
                f"{gpu} is in mode {other.mode} as long as {name} uses it; the container needs it in mode {one.mode}"
                f"{', given out in another way' if apart else ''}"
            )
    for instance in set(one.instances) & set(other.instances) if one.pod_uid != other.pod_uid else ():
        raise NotYet(f"{instance.profile} at {instance.start} of {instance.gpu} is in use by {name}")
