"""Never two modes at once: a GPU on which containers have MIG instances, or are clients of MPS, has no other users, and
the other way round.

The same applies to GPUs with granted shares and GPUs with native devices. What the node advertises says so too, but the
scheduler and kubelet may act on what was advertised a moment ago.
"""

from collections.abc import Collection

from lamina.agent.devices.native_devices import all_native
from lamina.agent.state.holdings import Bound, Holding
from lamina.core.gpus import Mode
from lamina.errors import NotYet


def check_modes(starting: Collection[Bound], others: Collection[Holding], *, native: bool = False) -> None:
    """Raises NotYet if a starting container would use a GPU in another mode, or an instance of another pod.

    `others` are the names of all other containers; those prepared and not yet released count. `native` is whether the
    starting containers have native devices.
    """
    for other in others:
        if other.bound is not None:
            other_is_native = all_native(other.tickets)
            for container in starting:
                _check_pair(container, other.bound, mixed=native != other_is_native)


def _differ(mode: Mode | None, other: Mode) -> bool:
    """Whether a GPU cannot be in both modes at a time. By quota, whole and by turns are the same to it."""
    return mode is not other and not {mode, other}.isdisjoint({Mode.MIG, Mode.MPS})


def _check_pair(container: Bound, other: Bound, *, mixed: bool) -> None:
    pod = f"{other.namespace}/{other.pod}"
    for gpu in set(container.gpus) & set(other.gpus):
        if other.mode is not None and (mixed or _differ(container.mode, other.mode)):
            how = ", one with a grant and the other without" if mixed else ""
            raise NotYet(
                f"{gpu} is in mode {other.mode} as long as pod {pod} uses it, and the container needs it in mode "
                f"{container.mode}{how}"
            )
    for instance in set(container.instances) & set(other.instances) if container.pod_uid != other.pod_uid else ():
        raise NotYet(f"{instance.profile} at {instance.start} of {instance.gpu} is in use by pod {pod}")
