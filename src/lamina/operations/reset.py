"""The steps of `lamina reset`. Each can be repeated: an interrupted reset is completed by the next one.

Agents and controller restore labels, resources and the webhook when others change them. So they are disabled first,
by the configuration, and remove their own. What components that do not run left behind is then removed from here.
"""

import re
from collections.abc import AsyncIterator

import yaml

from lamina import configuration
from lamina.agent.compat.node_watch import observed_node
from lamina.agent.compat.reconciler import CompatMetadata, maintained_resources, metadata_patch, status_patch
from lamina.config_source.live import config_map_object
from lamina.configuration import CONFIG_MAP, CONFIG_MAP_KEY, Config
from lamina.configuration.config_map import text_in
from lamina.configuration.yaml_documents import load_mapping
from lamina.core.component_names import ADMISSION_SECRET, EXTENDER_CLIENT_SECRET, EXTENDER_SECRET, WEBHOOKS
from lamina.core.definitions import custom_resource_definitions
from lamina.core.nodes import kept_out
from lamina.core.objects import read_inventory
from lamina.core.pod_status import is_over
from lamina.dialects import parse, resource_names
from lamina.errors import BadInput, LaminaError
from lamina.ports.clock import Clock
from lamina.ports.kube import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    INVENTORIES,
    LEASES,
    MUTATING_WEBHOOKS,
    NODES,
    SECRETS,
    Kube,
    NotFound,
    Object,
    Resource,
)
from lamina.report import cluster_reader, cluster_view
from lamina.report.claim_shares import shares_by_claims
from lamina.report.native_capacity import counted

_LOOK_S = 0.5


class Reset:
    """One reset of one cluster."""

    def __init__(self, kube: Kube, clock: Clock, *, patience_s: float) -> None:
        self._kube = kube
        self._clock = clock
        self._patience_s = patience_s
        self._served: set[str] = set()
        self.undone: list[str] = []
        """After `withdraw`: what agents created on GPUs and did not remove, by node."""

    async def run(self, *, everything: bool) -> AsyncIterator[str]:
        """Yields a sentence after each step. Raises BadInput while pods use GPUs, and names them."""
        cluster = await cluster_reader.read(self._kube)
        refuse_users(cluster, "reset again")
        async for step in self.withdraw(cluster.config):
            yield step
        for sentence in self.undone:
            yield f"Remaining until idle, then removed by the agent of the node: {sentence}."
        if everything:
            await self.remove_all()
            yield "Removed the configuration, the certificate, the Leases and the CRDs."
        yield "You can now remove Lamina's workloads. To offer GPUs again, set `enabled: true` in the configuration."

    async def withdraw(self, config: Config) -> AsyncIterator[str]:
        """Stop nodes from offering GPUs, and remove labels, annotations, resources and the webhook. Raises Outside."""
        await self._disable()
        yield "Disabled agents and controller in the configuration."
        await self._remove(MUTATING_WEBHOOKS, WEBHOOKS)
        yield "Removed the webhook."
        late, self.undone = await self._wait()
        yield (
            "All agents have stopped offering GPUs." if not late else f"No answer from the agents of {', '.join(late)}."
        )
        nodes = await self.clean(config)
        yield f"Removed labels, annotations and resources; cleaned {nodes} node{'s' if nodes != 1 else ''} from here."

    async def _disable(self) -> None:
        present = await config_map_object(self._kube)
        if present is None:
            meta = {"name": CONFIG_MAP, "namespace": self._kube.lamina_namespace}
            created = {"metadata": meta, "data": {CONFIG_MAP_KEY: disabled("")}}
            await self._kube.create(CONFIG_MAPS, created, namespace=self._kube.lamina_namespace)
            return
        data: dict[str, str | None] = {}
        try:
            data[CONFIG_MAP_KEY] = disabled(text_in(present))
        except BadInput:  # an invalid configuration is not in force
            data = dict.fromkeys(present.get("data") or (), None)
            data[CONFIG_MAP_KEY] = disabled("")
        body: Object = {"data": data}
        await self._kube.patch(CONFIG_MAPS, CONFIG_MAP, body, namespace=self._kube.lamina_namespace)

    async def _wait(self) -> tuple[list[str], list[str]]:
        """Wait. Returns the nodes whose agents still offer GPUs or run MPS daemons, and what those left behind."""
        end = self._clock.monotonic() + self._patience_s
        while True:
            listed = (await self._kube.list(INVENTORIES)).items
            self._served |= {inventory["metadata"]["name"] for inventory in listed}
            late = [
                inventory["metadata"]["name"]
                for inventory in listed
                if any((inventory.get("spec") or {}).get(field) for field in ("gpus", "nativeResources", "mps"))
            ]
            left = [f"{each['metadata']['name']}: {one}" for each in listed for one in _undone(each)]
            if not (late or left) or self._clock.monotonic() >= end:
                return sorted(late), sorted(left)
            await self._clock.sleep(_LOOK_S)

    async def clean(self, config: Config) -> int:
        """Remove labels, annotations and resources from nodes. Returns the number of nodes that still had some."""
        offered = {names.ticket for names in resource_names(config)}
        cleaned = 0
        for node in (await self._kube.list(NODES)).items:
            if self.is_others(node):
                continue
            name, present = node["metadata"]["name"], observed_node(node)
            idle = {each for each in offered if present.capacity.get(each) == "0"}
            metadata = metadata_patch(CompatMetadata(), present, labelling=config.compatibility.labels, now=0)
            maintained = maintained_resources(config, present.capacity)
            status = status_patch(CompatMetadata(), present, maintained | idle)
            if metadata is not None:
                await self._kube.patch(NODES, name, metadata)
            if status is not None:
                await self._kube.patch(NODES, name, status, subresource="status")
            cleaned += metadata is not None or status is not None
        return cleaned

    def is_others(self, node: Object) -> bool:
        """Whether the labels give the node to another system, and no agent is known to have run there."""
        return kept_out(node["metadata"].get("labels")) and node["metadata"]["name"] not in self._served

    async def left(self) -> list[str]:
        """Nodes that had an agent and were given to another system."""
        nodes = (await self._kube.list(NODES)).items
        kept = {node["metadata"]["name"] for node in nodes if kept_out(node["metadata"].get("labels"))}
        return sorted(kept & self._served)

    async def remove_all(self) -> None:
        """Remove the configuration, the certificates, the Leases and the CRDs. Raises Outside."""
        for secret in (ADMISSION_SECRET, EXTENDER_SECRET, EXTENDER_CLIENT_SECRET):
            await self._remove(SECRETS, secret, self._kube.lamina_namespace)
        for lease in (await self._kube.list(LEASES, namespace=self._kube.lamina_namespace)).items:
            name = lease["metadata"]["name"]
            if name in ("lamina-controller", "lamina-turns", "lamina-defrag", "lamina-scheduler"):
                await self._remove(LEASES, name, self._kube.lamina_namespace)
        for definition in custom_resource_definitions():
            await self._remove(CUSTOM_RESOURCE_DEFINITIONS, definition["metadata"]["name"])
        await self._remove(CONFIG_MAPS, CONFIG_MAP, self._kube.lamina_namespace)

    async def _remove(self, resource: Resource, name: str, namespace: str = "") -> None:
        try:
            await self._kube.delete(resource, name, namespace=namespace)
        except NotFound:
            return


def _undone(obj: Object) -> list[str]:
    """What agents created on the GPUs of an Inventory. One that cannot be read must not stop a reset for good."""
    try:
        inventory = read_inventory(obj)
    except BadInput:
        return ["its Inventory cannot be read"]
    made = [
        f"GPU {gpu.index} has the MIG instance {each.profile} at {each.start}"
        for gpu in inventory.gpus
        for each in gpu.instances
        if each.made
    ]
    shared = [f"{daemon.gpu} is shared by MPS" for daemon in inventory.mps if daemon.made]
    return [*inventory.mig_leftovers, *made, *shared]


def refuse_users(found: cluster_view.ClusterView, then: str) -> None:
    """Raises BadInput while pods use GPUs, and names them."""
    users = [_name(pod) for pod in found.pods if _uses(pod, found)]
    if users:
        raise BadInput(
            f"{len(users)} pod{'s use' if len(users) > 1 else ' uses'} GPUs: {', '.join(sorted(users))}; "
            f"delete them, or the workloads that own them, and {then}"
        )


def disabled(text: str) -> str:
    """The configuration with `enabled: false`. Comments are kept where possible. Raises BadInput."""
    kept = re.sub(r"^enabled:.*\n?", "", text, flags=re.MULTILINE).rstrip()
    changed = f"{kept}\nenabled: false\n".lstrip()
    try:
        if not configuration.load(changed, "the configuration").enabled:
            return changed
    except LaminaError:
        pass  # written in flow style, to which no line can be appended
    configuration.load(text, "the configuration")
    document = load_mapping(text, "the configuration")
    return yaml.safe_dump({**document, "enabled": False}, sort_keys=False)


def _uses(pod: Object, found: cluster_view.ClusterView) -> bool:
    """Whether the pod is on a node, has not finished, and has or requests GPUs, MIG devices or replicas."""
    node = pod["spec"].get("nodeName")
    if is_over(pod) or not node:
        return False
    if pod["metadata"]["uid"] in found.grants or shares_by_claims(pod, found.inventories):
        return True
    if found.inventories and node not in found.inventories:
        return False  # its devices belong to another system
    if counted(pod):
        return True
    try:
        return parse(pod, found.config) is not None
    except BadInput:
        return False  # no node starts what cannot be read, so a tenant's odd pod holds up nothing


def _name(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
