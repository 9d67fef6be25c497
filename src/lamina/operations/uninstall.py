"""The steps of `lamina uninstall`. Each can be repeated, and looks up what exists: components may have died, and half
of the objects may be gone.

What acts goes first: agents and controller are disabled, the webhook goes, then the deployments that would write any
of it again. Then nodes are cleaned, which needs Lamina's image once more, and finally everything else is removed. The
record of the installation goes last, because a repeated uninstallation finds the namespace by it.

A namespace is deleted if it was created for Lamina and has nothing of others. Any other one is only left without
Lamina's objects.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

from lamina import configuration
from lamina.configuration import Config
from lamina.core.component_names import WEBHOOKS
from lamina.core.definitions import custom_resource_definitions
from lamina.dialects import resource_names
from lamina.errors import BadInput
from lamina.install.cleaner import CLEANER, cleaner
from lamina.install.names import AGENT, CONTROLLER, INSTANCE, MANAGER, MPS, SCHEDULER, TEST, chosen, labels
from lamina.ledger.ledger import Ledger
from lamina.operations.installed import is_ours
from lamina.operations.namespace_content import WITHIN, objects_of_others
from lamina.operations.reset import Reset, refuse_users
from lamina.ports.clock import Clock
from lamina.ports.kube import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DEVICE_CLASSES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NODES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SECURITY_CONTEXT_CONSTRAINTS,
    Kube,
    NotFound,
    Object,
    Resource,
)
from lamina.report import cluster_reader, cluster_view

_LOOK_S = 1.0
ROUND_S = 1.0
"""How often a cleaner looks for what remains."""
KUBELET_S = 420.0
"""Kubelet reports the resources of a plugin for five minutes after the plugin is gone."""
FORGOTTEN_S = 25.0
"""A kubelet that still counts them would have reported them by then."""
_OURS = ",".join(f"{key}={value}" for key, value in labels().items())
"""What others make for Lamina, such as a role for their own team, may be part of it, and has another name."""
_OUTSIDE_NAMESPACE = (
    ADMISSION_POLICY_BINDINGS,
    ADMISSION_POLICIES,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    MUTATING_WEBHOOKS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEVICE_CLASSES,
    SECURITY_CONTEXT_CONSTRAINTS,
)
"""Kinds of objects that an installation creates outside its namespace."""


class Uninstall:
    """One uninstallation of one cluster."""

    def __init__(self, kube: Kube, clock: Clock, *, patience_s: float) -> None:
        self._kube = kube
        self._namespace = kube.lamina_namespace
        self._clock = clock
        self._patience_s = patience_s
        self._reset = Reset(kube, clock, patience_s=patience_s)
        self._config: Config = configuration.DEFAULT
        self._not_cleaned: list[str] = []
        self._kept = ""
        """Why the namespace stays."""

    async def run(self, *, force: bool, kubelets: bool) -> AsyncIterator[str]:
        """Yields a sentence after each step. Raises BadInput while pods use GPUs, and names them; Outside."""
        cluster, installed = await self._read()
        self._config = cluster.config
        await self._refuse_lab()
        if not force:
            refuse_users(cluster, "uninstall again, or use --force")
        if installed and await self._present(NAMESPACES, self._namespace):
            async for step in self._reset.withdraw(cluster.config):
                yield step
        for part in (CONTROLLER, SCHEDULER):
            await self._remove(DEPLOYMENTS, part, self._namespace)
            await self._until(lambda part=part: self._no_pods(part))  # type: ignore[misc]
        await self._remove(MUTATING_WEBHOOKS, WEBHOOKS)
        yield "Removed the controller, the scheduler and the webhook."
        yield await self._clean_nodes()
        # Agents that could not be disabled have restored their labels until now.
        await self._reset.clean(self._config)
        for resource in _OUTSIDE_NAMESPACE:
            await self._remove_ours(resource)
        yield f"Removed service accounts, roles and CRDs; {await self._remove_namespace()}."
        await self._remove(CLUSTER_ROLE_BINDINGS, CONTROLLER)
        if kubelets and await self._counting():
            yield "Waiting for kubelets to drop the resources, which takes them five minutes."
            await self._until_forgotten()

    async def _remove_namespace(self) -> str:
        """Remove everything of ours in it, and itself if it is ours. Returns what became of it."""
        release = await self._release()
        for resource in WITHIN:
            await self._remove_ours(resource, self._namespace)
        await self._remove(PODS, TEST, self._namespace)
        for record in await self._listed(SECRETS, f"owner=helm,name={release}", self._namespace) if release else ():
            await self._remove(SECRETS, record["metadata"]["name"], self._namespace)
        await self._reset.remove_all()
        try:
            namespace = await self._kube.get(NAMESPACES, self._namespace)
        except NotFound:
            return "the namespace is gone"
        others = await objects_of_others(self._kube, self._namespace)
        if others:
            self._kept = f"it has objects of others: {', '.join(others)}"
        elif not is_ours(namespace):
            self._kept = "it was not created for Lamina"
        if self._kept:
            return f"the namespace {self._namespace} stays, because {self._kept}"
        await self._remove(NAMESPACES, self._namespace)
        gone = await self._until(self._no_namespace)
        return f"the namespace is {'gone' if gone else 'still terminating'}"

    async def _release(self) -> str:
        """The name of Helm's release; empty where Lamina was not installed by Helm."""
        try:
            record = await self._kube.get(CLUSTER_ROLE_BINDINGS, CONTROLLER)
        except NotFound:
            return ""
        found = record["metadata"].get("labels") or {}
        return str(found[INSTANCE]) if found.get(MANAGER) == "Helm" and INSTANCE in found else ""

    async def _refuse_lab(self) -> None:
        """Raises BadInput for a lab, whose Lamina is not installed from manifests."""
        for node in (await self._kube.list(NODES)).items:
            info = (node.get("status") or {}).get("nodeInfo") or {}
            if str(info.get("containerRuntimeVersion", "")).startswith("lamina://"):
                raise BadInput("this cluster is a lab; `lamina lab down` removes it")

    async def left(self) -> list[str]:
        """What an installation created and still exists."""
        names = [definition["metadata"]["name"] for definition in custom_resource_definitions()]
        wanted = [] if self._kept else [(NAMESPACES, self._namespace)]
        wanted += [(MUTATING_WEBHOOKS, WEBHOOKS), (CLUSTER_ROLE_BINDINGS, CONTROLLER)]
        wanted += [(CUSTOM_RESOURCE_DEFINITIONS, name) for name in names]
        found = [f"{resource.kind} {name}" for resource, name in wanted if await self._present(resource, name)]
        for resource in _OUTSIDE_NAMESPACE:
            found += [f"{resource.kind} {each['metadata']['name']}" for each in await self._ours(resource)]
        for resource in WITHIN if self._kept else ():
            left = await self._ours(resource, self._namespace)
            found += [f"{resource.kind} {each['metadata']['name']}" for each in left]
        found += [f"{amount} on node {node}" for node, amount in await self._counting()]
        found += [f"files of the agent on node {node}" for node in self._not_cleaned]
        found += [f"on node {sentence}" for sentence in self._reset.undone]
        return list(dict.fromkeys(found))

    async def _read(self) -> tuple[cluster_view.ClusterView, bool]:
        """The cluster, or only its pods where the CRDs or a valid configuration are missing; and whether the CRDs
        exist, without which no agent reports anything."""
        try:
            return await cluster_reader.read(self._kube), True
        except BadInput:
            pods = (await self._kube.list(PODS)).items
            kinds = [definition["metadata"]["name"] for definition in custom_resource_definitions()]
            there = all([await self._present(CUSTOM_RESOURCE_DEFINITIONS, name) for name in kinds])
            return cluster_view.ClusterView(self._config, pods, grants={}, inventories={}, ledger=Ledger()), there

    async def _clean_nodes(self) -> str:
        """Run a pod on each node with an agent that removes the agent's files. Returns a sentence with the result."""
        agents = await self._daemon_sets(AGENT)
        if not agents and not await self._daemon_sets(CLEANER):
            return "No DaemonSet of agents exists, so no node was cleaned; run `lamina clean-node` on each node."
        for each in agents:
            also = await self._reset.left() if each["metadata"]["name"] == AGENT else ()
            manifest = cleaner(each, also=also)
            await self._remove(DAEMON_SETS, manifest["metadata"]["name"], self._namespace)
            await self._kube.create(DAEMON_SETS, manifest, namespace=self._namespace)
            await self._remove(DAEMON_SETS, each["metadata"]["name"], self._namespace)
        await self._remove(DAEMON_SETS, MPS, self._namespace)
        cleaned = await self._until(self._all_clean)
        self._not_cleaned = [] if cleaned else await self._dirty() or ["nodes without a cleaner pod"]
        # The last agent may have ended a moment ago; the cleaner's next round removes what it wrote.
        await self._clock.sleep(2 * ROUND_S)
        for each in await self._daemon_sets(CLEANER):
            await self._remove(DAEMON_SETS, each["metadata"]["name"], self._namespace)
        await self._until(lambda: self._no_pods(CLEANER))
        if cleaned:
            return "Removed the agents and their files on nodes."
        return f"Not cleaned: {', '.join(self._not_cleaned)}; run `lamina clean-node` on them."

    async def _all_clean(self) -> bool:
        ready = all(_all_ready(each) for each in await self._daemon_sets(CLEANER))
        return ready and await self._no_pods(AGENT) and await self._no_pods(MPS)

    async def _daemon_sets(self, part: str) -> list[Object]:
        """One, and one for each pool of nodes."""
        return list((await self._kube.list(DAEMON_SETS, namespace=self._namespace, labels=_selecting(part))).items)

    async def _dirty(self) -> list[str]:
        pods = (await self._kube.list(PODS, namespace=self._namespace, labels=_selecting(CLEANER))).items
        return sorted(str(pod["spec"].get("nodeName")) for pod in pods if not _ready(pod))

    async def _no_pods(self, part: str) -> bool:
        return not (await self._kube.list(PODS, namespace=self._namespace, labels=_selecting(part))).items

    async def _no_namespace(self) -> bool:
        return not await self._present(NAMESPACES, self._namespace)

    async def _until(self, condition: Callable[[], Awaitable[bool]]) -> bool:
        """Whether the condition became true within the patience."""
        end = self._clock.monotonic() + self._patience_s
        while not await condition():
            if self._clock.monotonic() >= end:
                return False
            await self._clock.sleep(_LOOK_S)
        return True

    async def _until_forgotten(self) -> None:
        """Remove the resources from nodes until kubelets no longer report them."""
        end = self._clock.monotonic() + KUBELET_S
        absent_since = self._clock.monotonic()
        while self._clock.monotonic() < min(end, absent_since + FORGOTTEN_S):
            if await self._counting():
                await self._reset.clean(self._config)
                absent_since = self._clock.monotonic()
            await self._clock.sleep(_LOOK_S)

    async def _counting(self) -> list[tuple[str, str]]:
        """Nodes with their resources of Lamina. NVIDIA's plugin may offer those that are named nvidia.com."""
        offered = {names.ticket for names in resource_names(self._config)}
        nodes = (await self._kube.list(NODES)).items
        return [
            (node["metadata"]["name"], f"{name}: {amount}")
            for node in nodes
            if not self._reset.is_others(node)
            for name, amount in sorted(((node.get("status") or {}).get("capacity") or {}).items())
            if name in offered and (amount == "0" or not name.startswith("nvidia.com/"))
        ]

    async def _ours(self, resource: Resource, namespace: str = "") -> list[Object]:
        """Objects with the label of Lamina, except the record of the installation until everything else is gone."""
        found = await self._listed(resource, _OURS, namespace)
        return [each for each in found if (resource, each["metadata"]["name"]) != (CLUSTER_ROLE_BINDINGS, CONTROLLER)]

    async def _listed(self, resource: Resource, labels: str, namespace: str = "") -> list[Object]:
        """None of a kind that the server does not know."""
        try:
            return list((await self._kube.list(resource, namespace=namespace, labels=labels)).items)
        except NotFound:
            return []

    async def _remove_ours(self, resource: Resource, namespace: str = "") -> None:
        for each in await self._ours(resource, namespace):
            meta = each["metadata"]
            await self._remove(resource, meta["name"], meta.get("namespace", ""))

    async def _remove(self, resource: Resource, name: str, namespace: str = "") -> None:
        try:
            await self._kube.delete(resource, name, namespace=namespace)
        except NotFound:
            return

    async def _present(self, resource: Resource, name: str, namespace: str = "") -> bool:
        try:
            await self._kube.get(resource, name, namespace=namespace)
        except NotFound:
            return False
        return True


def _selecting(part: str) -> str:
    return ",".join(f"{key}={value}" for key, value in chosen(part).items())


def _all_ready(daemon_set: Object) -> bool:
    status = daemon_set.get("status") or {}
    observed, wanted = status.get("observedGeneration", 0) > 0, status.get("desiredNumberScheduled", 0)
    return bool(observed and status.get("numberReady", 0) >= wanted)


def _ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
