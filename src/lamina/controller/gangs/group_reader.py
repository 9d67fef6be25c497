"""Reads pod groups and their members from the API server: one read serves members that are filtered together."""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from lamina.controller.context import Context
from lamina.controller.tasks import PodLocks
from lamina.dialects.groups import GroupName, group_of
from lamina.errors import BadInput
from lamina.ledger.pod_groups import MAX_MEMBERS, PodGroup, group_of_members, members_needed, read_spec
from lamina.ledger.pods import ParsedPod
from lamina.ports.kube import PODS, Object

_MAX_PODS = 5 * MAX_MEMBERS
"""The most pods that may belong to it."""
_FRESH_S = 1.0
"""The members of a group are filtered one after another; one read of the group serves all of them."""
_READING_PART = 0.1
"""The part of the time that may be spent reading a group. A large one is read less often."""
_PARSED_TOGETHER = 50
"""Pods that are parsed before other tasks get their turn."""
_TIMEOUT_S = 60.0
_MAX_TIMEOUT_S = 900.0
"""A group holds places no longer than this, whatever it requests; kube-scheduler has the same limit for permits."""


class _Reading(NamedTuple):
    minimum: int
    group: PodGroup
    fresh_until: float
    members: dict[str, ParsedPod]
    """By UID. Those that have not changed are not parsed again."""

    def with_member(self, member: ParsedPod) -> "_Reading":
        """The same after one more pod was created."""
        members = self.members | {member.uid: member}
        return self._replace(
            group=group_of_members(self.minimum, self.group.timeout_s, members.values()), members=members
        )


class GroupReader:
    """Reads groups and their members."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._readings: dict[GroupName, _Reading] = {}
        self._locks = PodLocks()

    async def read(self, name: GroupName, member: ParsedPod) -> PodGroup:
        """The group with at least this member.

        Raises BadInput where there is no such group or it does not say how large it is; Outside.
        """
        name.check()
        async with self._locks.of(str(name)):  # many members may be bound at the same moment
            started = self._context.now()
            reading = self._readings.get(name)
            if reading is None or started >= reading.fresh_until:
                reading = await self._read(name, reading.members if reading else {}, started)
                self._forget(started)
                self._readings[name] = reading
            elif reading.group.incomplete and member.uid not in reading.members:
                reading = reading.with_member(member)
                self._readings[name] = reading
            return reading.group

    async def _read(self, name: GroupName, known: dict[str, ParsedPod], started: float) -> _Reading:
        kube = self._context.kube
        spec = await read_spec(kube, name)
        minimum, timeout = members_needed(name, spec), spec.get("scheduleTimeoutSeconds") or _TIMEOUT_S
        if not isinstance(timeout, int | float) or timeout < 0:
            raise BadInput(f"{name}: scheduleTimeoutSeconds must be a number of seconds from 0, got {timeout!r}")
        if minimum == 0:
            return _Reading(0, group_of_members(0, _TIMEOUT_S, ()), self._context.now() + _FRESH_S, {})
        listed = (await kube.list(PODS, namespace=name.namespace, labels=name.selector)).items
        config = self._context.configuration.value
        pods = [pod for pod in listed if group_of(pod, config) == name]
        if len(pods) > _MAX_PODS:
            raise BadInput(f"{name} has {len(pods)} pods; it may have at most {_MAX_PODS}")
        members = {pod.uid: pod for pod in await self._parse(pods, known)}
        timeout_s = min(float(timeout), _MAX_TIMEOUT_S)
        group = group_of_members(minimum, timeout_s, members.values())
        now = self._context.now()
        return _Reading(minimum, group, now + max(_FRESH_S, (now - started) / _READING_PART), members)

    async def _parse(self, pods: Iterable[Object], known: dict[str, ParsedPod]) -> list[ParsedPod]:
        members, parsed = [], 0
        for obj in pods:
            member = known.get(obj["metadata"]["uid"])
            if member is None or not self._is_current(member, obj):
                member, parsed = self._context.parse(obj), parsed + 1
                if parsed % _PARSED_TOGETHER == 0:
                    await asyncio.sleep(0)
            members.append(member)
        return members

    def _is_current(self, member: ParsedPod, obj: Object) -> bool:
        same_version = member.metadata.get("resourceVersion") == obj["metadata"].get("resourceVersion")
        return same_version and member.config is self._context.configuration.value

    def _forget(self, now: float) -> None:
        """Forget what has not been read for a while."""
        self._readings = {
            name: reading for name, reading in self._readings.items() if now < reading.fresh_until + _TIMEOUT_S
        }
