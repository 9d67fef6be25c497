"""Never two modes at once: a GPU on which containers hold MIG instances holds nothing else, and the other way round."""

from collections.abc import Collection

from lamina.agent.record import Bound
from lamina.errors import NotYet
from lamina.model.gpus import Mode


def check(starting: Collection[Bound], others: Collection[Bound]) -> None:
    """Raises NotYet where a starting container would have a GPU in another mode, or an instance of another pod.

    `others` are all containers that were prepared and not released yet.
    """
    for one in starting:
        for other in others:
            name = f"{other.namespace}/{other.pod}"
            for gpu in set(one.gpus) & set(other.gpus):
                if (one.mode is Mode.MIG) != (other.mode is Mode.MIG) and other.mode is not None:
                    raise NotYet(
                        f"{gpu} is in mode {other.mode} as long as {name} uses it; the container needs it in mode "
                        f"{one.mode}"
                    )
            for instance in set(one.instances) & set(other.instances) if one.pod_uid != other.pod_uid else ():
                raise NotYet(f"{instance.profile} at {instance.start} of {instance.gpu} is in use by {name}")
