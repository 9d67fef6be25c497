"""What the cluster says of a pod group: how many members it needs, how long it may take, and who they are."""

from collections.abc import Callable

from msgspec import Struct

from lamina.control.stages import Stage, pod_state
from lamina.dialects import parse
from lamina.dialects.config import Config
from lamina.dialects.groups import GROUP_LABEL, SCHEDULER_PLUGINS, GroupName, group_of
from lamina.errors import BadInput
from lamina.ports.kube import PLUGIN_POD_GROUPS, PODS, VOLCANO_POD_GROUPS, Kube, NotFound, Object

_FRESH_S = 1.0
"""The members of a group ask one after the other; what the first read serves the others."""
_TIMEOUT_S = 60.0
_LONGEST_S = 900.0
"""A group holds places no longer, whatever it asks: as kube-scheduler lets pods wait for permission."""


class PodGroup(Struct, frozen=True):
    """`needed` members have to hold GPUs together; `bound` have a node, `waiting` have none, by UID."""

    needed: int
    timeout_s: float
    bound: frozenset[str]
    waiting: dict[str, Object]


class PodGroups:
    """Reads groups and their members. `now` is a monotonic clock."""

    def __init__(self, kube: Kube, *, now: Callable[[], float]) -> None:
        self._kube = kube
        self._now = now
        self._read: dict[GroupName, tuple[float, PodGroup]] = {}

    async def read(self, name: GroupName, config: Config) -> PodGroup:
        """Raises BadInput where there is no such group or it does not say how large it is; Outside."""
        now = self._now()
        self._read = {key: each for key, each in self._read.items() if each[0] + _FRESH_S > now}
        if name not in self._read:
            self._read[name] = now, await self._ask(name, config)
        return self._read[name][1]

    async def _ask(self, name: GroupName, config: Config) -> PodGroup:
        plugins = name.api == SCHEDULER_PLUGINS
        resource = PLUGIN_POD_GROUPS if plugins else VOLCANO_POD_GROUPS
        try:
            spec = (await self._kube.get(resource, name.name, namespace=name.namespace)).get("spec") or {}
        except NotFound as error:
            raise BadInput(f"{name} ({resource.api_version}) does not exist") from error
        minimum, timeout = spec.get("minMember"), spec.get("scheduleTimeoutSeconds") or _TIMEOUT_S
        if not isinstance(minimum, int) or minimum < 1:
            raise BadInput(f"{name} has the minMember {minimum!r}; allowed is a whole number from 1")
        if not isinstance(timeout, int | float) or timeout < 0:
            raise BadInput(f"{name} has the scheduleTimeoutSeconds {timeout!r}; allowed are seconds, 0 or more")
        labels = f"{GROUP_LABEL}={name.name}" if plugins else ""
        pods = (await self._kube.list(PODS, namespace=name.namespace, labels=labels)).items
        return _sorted(minimum, min(float(timeout), _LONGEST_S), [pod for pod in pods if group_of(pod) == name], config)


def _sorted(minimum: int, timeout_s: float, pods: list[Object], config: Config) -> PodGroup:
    bound: set[str] = set()
    waiting: dict[str, Object] = {}
    others = 0
    for pod in pods:
        stage = pod_state(pod).stage
        if stage is Stage.FINISHED or (stage is Stage.PENDING and pod["metadata"].get("deletionTimestamp")):
            continue
        if not _asks(pod, config):
            others += 1
        elif stage is Stage.BOUND:
            bound.add(pod["metadata"]["uid"])
        else:
            waiting[pod["metadata"]["uid"]] = pod
    # Members without GPUs are somebody else's to place: they count as there.
    return PodGroup(max(0, minimum - others), timeout_s, frozenset(bound), waiting)


def _asks(pod: Object, config: Config) -> bool:
    try:
        return parse(pod, config) is not None
    except BadInput:
        return False
