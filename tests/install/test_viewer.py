"""The cluster role `lamina-view` is enough for each command that only reads, and no part of it is spare."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.install.chart import objects
from lamina.install.values import Values, plain
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.feed import ClusterFeed
from lamina.ports.clock import FakeClock
from lamina.ports.kube import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    DEVICE_TAINT_RULES,
    JOBS,
    KUBERNETES_POD_GROUPS,
    NAMESPACES,
    PLUGIN_POD_GROUPS,
    VOLCANO_POD_GROUPS,
    Object,
    Refused,
    Resource,
)
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands
from tests.operations.agent_pages import agent_pod
from tests.waiting import until
from tests.worlds.clusters import cluster, container, grant, inventory, pod
from tests.worlds.workload_pods import SPECS, metadata_of

MADE = objects(plain(Values()), (1, 36, 0))
ROLE = next(each for each in MADE if each["metadata"]["name"] == "lamina-view")
MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: coming}
spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 1000}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: member, labels: {scheduling.x-k8s.io/pod-group: g}}
spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpumem: 1000}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: volcano, annotations: {scheduling.k8s.io/group-name: g}}
spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpumem: 1000}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: own}
spec:
  schedulingGroup: {podGroupName: g}
  containers: [{name: main, resources: {limits: {nvidia.com/gpumem: 1000}}}]
"""
COMMANDS = (
    *("gpus", "gpus -l team=a", "top --once", "pods -A", "pods -n empty", "why waits", "why runs", "why deploy/web"),
    *("why job/once", "why claims", "fits -f -", "quotas", "advise defrag", "mig list", "config show"),
)


def allowed(role: Object) -> set[tuple[str, str]]:
    """Resources, each with a verb that the role allows."""
    found = set()
    for rule in role["rules"]:
        for plural in rule["resources"]:
            group = "".join(f".{group}" for group in rule["apiGroups"] if group)
            found |= {(f"{plural}{group}", verb) for verb in rule["verbs"]}
    return found


class Restricted:
    """An API server that refuses what a role does not allow, and notes what it allowed."""

    def __init__(self, kube: FakeKube, rights: set[tuple[str, str]]) -> None:
        self._kube, self._rights = kube, rights
        self.used: set[tuple[str, str]] = set()

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def ask(resource: Resource, *arguments: Any, **named: Any) -> Any:
            kind = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
            right = (f"{kind}/proxy", "get") if verb == "proxied" else (kind, verb)
            if right not in self._rights:
                raise Refused(f"{right[0]} is forbidden: cannot {right[1]} it")
            self.used.add(right)
            return getattr(self._kube, verb)(resource, *arguments, **named)

        return getattr(self._kube, verb) if verb in ("close", "server") else ask


async def viewed() -> FakeKube:
    runs, waits = pod("runs", container(gpu=1, gpumem=1000), node="n"), pod("waits", container(gpu=1, gpumem=99999))
    claims = pod("claims", container())
    claims["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
    members = [pod(f"member-of-{kind.lower()}", container(gpu=1, gpumem=99999)) for kind in SPECS]
    for kind, member in zip(SPECS, members, strict=True):
        member["metadata"] |= metadata_of(kind, "w", 0)
    kube = await cluster(inventory("n"), runs, waits, claims, *members, grant(runs, "n", 1000), agent_pod("n"))
    rule = {"deviceSelector": {}, "taint": {"key": "repair", "effect": "NoExecute"}}
    await kube.create(DEVICE_TAINT_RULES, {"metadata": {"name": "repair"}, "spec": rule})
    spec = {"selector": {"matchLabels": {"app": "w"}}, "template": {"spec": {"containers": [container(gpu=1)]}}}
    for resource, name in ((DEPLOYMENTS, "web"), (JOBS, "once")):
        await kube.create(resource, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    for resource in (PLUGIN_POD_GROUPS, VOLCANO_POD_GROUPS):
        await kube.create(resource, {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 1}})
    spec = {"schedulingPolicy": {"basic": {}}}
    await kube.create(KUBERNETES_POD_GROUPS, {"metadata": {"name": "g", "namespace": "default"}, "spec": spec})
    await kube.create(NAMESPACES, {"metadata": {"name": "empty"}})
    await kube.create(CONFIG_MAPS, {"metadata": {"name": "lamina", "namespace": "lamina-system"}, "data": {}})
    return kube


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_command_that_reads_works_with_the_role_alone(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kube = Restricted(await viewed(), allowed(ROLE))
    ended = await Commands(monkeypatch, kube).run(*command.split(), answers=MANIFEST)  # type: ignore[arg-type]
    assert (ended.code, ended.error) == (1 if command in ("why waits", "why claims") else 0, ""), ended.output
    assert ended.output


async def followed(kube: Restricted) -> None:
    """The dashboard reads everything and goes on watching it."""
    clock, board = FakeClock(), Board()
    following = asyncio.ensure_future(ClusterFeed(kube, clock, board).run())
    try:
        watches = {right for right in allowed(ROLE) if right[1] == "watch"}
        await until(lambda: kube.used >= watches, task=following, clock=clock)
    finally:
        following.cancel()


def spare(used: set[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """What the role allows and no command uses; the kinds of workloads are all asked for alike."""
    alike = {right for right in allowed(ROLE) if right[0].endswith((".apps", ".batch"))}
    yield from allowed(ROLE) - used - alike


async def test_the_commands_use_all_of_the_role(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = Restricted(await viewed(), allowed(ROLE))
    for command in COMMANDS:
        await Commands(monkeypatch, kube).run(*command.split(), answers=MANIFEST)  # type: ignore[arg-type]
    await followed(kube)
    assert list(spare(kube.used)) == []


async def test_without_a_right_of_the_role_a_command_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kube = Restricted(await viewed(), allowed(ROLE) - {("grants.lamina.dev", "list")})
    ended = await Commands(monkeypatch, kube).run("pods")  # type: ignore[arg-type]
    assert (ended.code, ended.error) == (1, "grants.lamina.dev is forbidden: cannot list it")


def test_the_role_only_reads_and_is_part_of_view() -> None:
    assert {verb for _, verb in allowed(ROLE)} == {"get", "list", "watch"}
    assert not {resource for resource, _ in allowed(ROLE) if "secrets" in resource or "/" in resource}
    assert ROLE["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
