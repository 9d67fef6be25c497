"""The steps of `lamina uninstall`. Each can be repeated, and finds what is there by itself: parts may be dead, and half
of the objects gone.

What acts goes first: agents and control part are told to withdraw, the webhook goes, then the deployments that would
write any of it again. Then nodes are cleaned, which needs our image once more, and at last everything that lies still.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

from lamina.cli import cluster
from lamina.cli.resetting import Resetting, refuse_users
from lamina.control import crds
from lamina.control.ledger import Ledger
from lamina.control.webhook_configuration import NAME as WEBHOOKS
from lamina.control.webhook_configuration import NAMESPACE
from lamina.dialects import config as configuration
from lamina.dialects import vocabularies
from lamina.dialects.config import Config
from lamina.errors import BadInput
from lamina.install.cleaner import CLEANER, cleaner
from lamina.install.names import AGENT, CONTROL, PART_OF, SCHEDULER, chosen
from lamina.ports.clock import Clock
from lamina.ports.kube import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NODES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    Kube,
    NotFound,
    Object,
    Resource,
)

_LOOK_S = 1.0
ROUND_S = 1.0
"""How often a cleaner looks for what is left."""
KUBELET_S = 420.0
"""Kubelet counts the resources of a plugin for five minutes after that has gone."""
FORGOTTEN_S = 25.0
"""A kubelet that still counted them would have said so by then."""
_OURS = ",".join(f"{key}={value}" for key, value in PART_OF.items())
_SCATTERED = (
    ADMISSION_POLICY_BINDINGS,
    ADMISSION_POLICIES,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    MUTATING_WEBHOOKS,
    CUSTOM_RESOURCE_DEFINITIONS,
)
"""Kinds of which objects of ours lie outside of our namespace."""


class Uninstalling:
    """One uninstallation of one cluster."""

    def __init__(self, kube: Kube, clock: Clock, *, patience_s: float) -> None:
        self._kube = kube
        self._clock = clock
        self._patience_s = patience_s
        self._resetting = Resetting(kube, clock, patience_s=patience_s)
        self._config: Config = configuration.DEFAULT
        self._not_cleaned: list[str] = []

    async def run(self, *, force: bool, kubelets: bool) -> AsyncIterator[str]:
        """Each step in a sentence, once it is done. Raises BadInput, which names them, while pods use GPUs; Outside."""
        found, installed = await self._found()
        self._config = found.config
        if not force:
            refuse_users(found, "uninstall again, or say --force")
        if installed and await self._present(NAMESPACES, NAMESPACE):
            async for done in self._resetting.withdraw(found.config):
                yield done
        for part in (CONTROL, SCHEDULER):
            await self._remove(DEPLOYMENTS, part, NAMESPACE)
            await self._until(lambda part=part: self._no_pods(part))  # type: ignore[misc]
        await self._remove(MUTATING_WEBHOOKS, WEBHOOKS)
        yield "Control part, scheduler and webhook are gone."
        yield await self._clean_nodes()
        # Agents that could not be told to withdraw held their marks until now.
        await self._resetting.clean(self._config)
        for resource in _SCATTERED:
            await self._remove_ours(resource)
        for definition in crds.definitions():
            await self._remove(CUSTOM_RESOURCE_DEFINITIONS, definition["metadata"]["name"])
        await self._remove(NAMESPACES, NAMESPACE)
        gone = await self._until(self._no_namespace)
        yield f"Accounts, roles and kinds are gone{', and so is' if gone else '; still going is'} the namespace."
        if kubelets and await self._counting():
            yield "Kubelets forget a plugin's resources five minutes after it has gone; waiting for that."
            await self._until_forgotten()

    async def left(self) -> list[str]:
        """What of ours is still there, in words."""
        names = [definition["metadata"]["name"] for definition in crds.definitions()]
        wanted = [(NAMESPACES, NAMESPACE), (MUTATING_WEBHOOKS, WEBHOOKS)]
        wanted += [(CUSTOM_RESOURCE_DEFINITIONS, name) for name in names]
        found = [f"{resource.kind} {name}" for resource, name in wanted if await self._present(resource, name)]
        for resource in _SCATTERED:
            found += [f"{resource.kind} {each['metadata']['name']}" for each in await self._ours(resource)]
        found += [f"{amount} on node {node}" for node, amount in await self._counting()]
        found += [f"what an agent left on {node}" for node in self._not_cleaned]
        found += [f"on node {sentence}" for sentence in self._resetting.undone]
        return list(dict.fromkeys(found))

    async def _found(self) -> tuple[cluster.Cluster, bool]:
        """The cluster, or what pods alone tell without our kinds or a valid configuration; and whether the kinds are
        there, without which no agent tells anything."""
        try:
            return await cluster.read(self._kube), True
        except BadInput:
            pods = (await self._kube.list(PODS)).items
            kinds = [definition["metadata"]["name"] for definition in crds.definitions()]
            there = all([await self._present(CUSTOM_RESOURCE_DEFINITIONS, name) for name in kinds])
            return cluster.Cluster(self._config, pods, grants={}, inventories={}, ledger=Ledger()), there

    async def _clean_nodes(self) -> str:
        """Let a pod on each node with an agent remove what that left; say how that went."""
        try:
            agents = await self._kube.get(DAEMON_SETS, AGENT, namespace=NAMESPACE)
        except NotFound:
            if not await self._present(DAEMON_SETS, CLEANER, NAMESPACE):
                return "There is no DaemonSet of agents, so no node was cleaned; `lamina clean-node` does it there."
        else:
            await self._remove(DAEMON_SETS, CLEANER, NAMESPACE)
            made = cleaner(agents, also=await self._resetting.left())
            await self._kube.create(DAEMON_SETS, made, namespace=NAMESPACE)
            await self._remove(DAEMON_SETS, AGENT, NAMESPACE)
        cleaned = await self._until(self._all_clean)
        self._not_cleaned = [] if cleaned else await self._dirty() or ["nodes that have no pod for it"]
        # The last agent may have gone a moment ago; what it wrote goes with the cleaner's next round.
        await self._clock.sleep(2 * ROUND_S)
        await self._remove(DAEMON_SETS, CLEANER, NAMESPACE)
        await self._until(lambda: self._no_pods(CLEANER))
        if cleaned:
            return "Agents are gone, and nothing of them is left on their nodes."
        return f"Not cleaned: {', '.join(self._not_cleaned)}; run `lamina clean-node` there."

    async def _all_clean(self) -> bool:
        status = (await self._kube.get(DAEMON_SETS, CLEANER, namespace=NAMESPACE)).get("status") or {}
        seen, wanted = status.get("observedGeneration", 0) > 0, status.get("desiredNumberScheduled", 0)
        return bool(seen and status.get("numberReady", 0) >= wanted and await self._no_pods(AGENT))

    async def _dirty(self) -> list[str]:
        labels = ",".join(f"{key}={value}" for key, value in chosen(CLEANER).items())
        pods = (await self._kube.list(PODS, namespace=NAMESPACE, labels=labels)).items
        return sorted(str(pod["spec"].get("nodeName")) for pod in pods if not _ready(pod))

    async def _no_pods(self, part: str) -> bool:
        labels = ",".join(f"{key}={value}" for key, value in chosen(part).items())
        return not (await self._kube.list(PODS, namespace=NAMESPACE, labels=labels)).items

    async def _no_namespace(self) -> bool:
        return not await self._present(NAMESPACES, NAMESPACE)

    async def _until(self, condition: Callable[[], Awaitable[bool]]) -> bool:
        """Whether it came true within our patience."""
        end = self._clock.monotonic() + self._patience_s
        while not await condition():
            if self._clock.monotonic() >= end:
                return False
            await self._clock.sleep(_LOOK_S)
        return True

    async def _until_forgotten(self) -> None:
        """Take our resources from nodes until kubelets bring them back no more."""
        end = self._clock.monotonic() + KUBELET_S
        absent_since = self._clock.monotonic()
        while self._clock.monotonic() < min(end, absent_since + FORGOTTEN_S):
            if await self._counting():
                await self._resetting.clean(self._config)
                absent_since = self._clock.monotonic()
            await self._clock.sleep(_LOOK_S)

    async def _counting(self) -> list[tuple[str, str]]:
        """Nodes that count resources of ours, and what; NVIDIA's own plugin may serve what is named after NVIDIA."""
        offered = {vocabulary.ticket for vocabulary in vocabularies(self._config)}
        nodes = (await self._kube.list(NODES)).items
        return [
            (node["metadata"]["name"], f"{name}: {amount}")
            for node in nodes
            if not self._resetting.is_others(node)
            for name, amount in sorted(((node.get("status") or {}).get("capacity") or {}).items())
            if name in offered and (amount == "0" or not name.startswith("nvidia.com/"))
        ]

    async def _ours(self, resource: Resource) -> list[Object]:
        """Objects with our label; none of a kind that the server does not know."""
        try:
            return list((await self._kube.list(resource, labels=_OURS)).items)
        except NotFound:
            return []

    async def _remove_ours(self, resource: Resource) -> None:
        for each in await self._ours(resource):
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


def _ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
