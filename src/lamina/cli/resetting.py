"""The steps of `lamina reset`. Each can be repeated: a reset that was cut off is taken up by the next one.

Agents and control part hold labels, amounts and the webhook against everybody, so they are told first, by the
configuration, and take their own back. What is left behind by parts that do not run is then removed for them.
"""

import re
from collections.abc import AsyncIterator, Mapping

import msgspec
import yaml

from lamina.agent.marks import amounts
from lamina.agent.marks.wanted import Marks, metadata_patch, status_patch
from lamina.agent.node_wishes import seen_in
from lamina.cli import cluster
from lamina.cli.counting import counted
from lamina.control import crds
from lamina.control.certificate_store import NAME as CERTIFICATE
from lamina.control.webhook_configuration import NAME as WEBHOOKS
from lamina.dialects import config as configuration
from lamina.dialects import parse, vocabularies
from lamina.dialects.config import CONFIG_MAP, CONFIG_MAP_KEY, CONFIG_MAP_NAMESPACE, Config
from lamina.errors import BadInput, LaminaError
from lamina.model.gpus import Inventory
from lamina.model.nodes import kept_out
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

_FINISHED = ("Succeeded", "Failed")
_LOOK_S = 0.5


class Resetting:
    """One reset of one cluster."""

    def __init__(self, kube: Kube, clock: Clock, *, patience_s: float) -> None:
        self._kube = kube
        self._clock = clock
        self._patience_s = patience_s
        self._served: set[str] = set()
        self.undone: list[str] = []
        """After `withdraw`: what agents made of GPUs and did not take back, by node, in words."""

    async def run(self, *, everything: bool) -> AsyncIterator[str]:
        """Each step in a sentence, once it is done. Raises BadInput, which names them, while pods use GPUs."""
        found = await cluster.read(self._kube)
        refuse_users(found, "reset again")
        async for done in self.withdraw(found.config):
            yield done
        for sentence in self.undone:
            yield f"Still there, and taken back by the node's agent when it is idle: {sentence}."
        if everything:
            await self.remove_all()
            yield "Configuration, certificate, leases and our kinds of objects are gone."
        yield "Remove Lamina's workloads now; `enabled: true` in the configuration would begin again."

    async def withdraw(self, config: Config) -> AsyncIterator[str]:
        """Have nodes offer nothing and carry no marks, and the webhook gone. Raises Outside."""
        await self._disable()
        yield "Agents and control part are told to offer nothing."
        await self._remove(MUTATING_WEBHOOKS, WEBHOOKS)
        yield "The webhook is gone."
        late, self.undone = await self._wait()
        yield "Every agent has taken its GPUs back." if not late else f"No word from the agents of {', '.join(late)}."
        nodes = await self.clean(config)
        yield f"No node carries labels, annotations or amounts of ours; {nodes} had to be cleaned here."

    async def _disable(self) -> None:
        try:
            present = await self._kube.get(CONFIG_MAPS, CONFIG_MAP, namespace=CONFIG_MAP_NAMESPACE)
        except NotFound:
            meta = {"name": CONFIG_MAP, "namespace": CONFIG_MAP_NAMESPACE}
            body = {"metadata": meta, "data": {CONFIG_MAP_KEY: disabled("")}}
            await self._kube.create(CONFIG_MAPS, body, namespace=CONFIG_MAP_NAMESPACE)
            return
        try:
            text = disabled((present.get("data") or {}).get(CONFIG_MAP_KEY, ""))
        except BadInput:
            text = disabled("")  # nobody follows what is there, but the one before it
        body = {"data": {CONFIG_MAP_KEY: text}}
        await self._kube.patch(CONFIG_MAPS, CONFIG_MAP, body, namespace=CONFIG_MAP_NAMESPACE)

    async def _wait(self) -> tuple[list[str], list[str]]:
        """After all patience, the nodes whose agents still offer GPUs or have daemons of MPS, and what they left so."""
        end = self._clock.monotonic() + self._patience_s
        while True:
            listed = (await self._kube.list(INVENTORIES)).items
            self._served |= {each["metadata"]["name"] for each in listed}
            late = [
                each["metadata"]["name"]
                for each in listed
                if any(each["spec"].get(what) for what in ("gpus", "plain", "mps"))
            ]
            left = [
                f"{each['metadata']['name']}: {one}"
                for each in listed
                for one in _undone(msgspec.convert(each["spec"], Inventory))
            ]
            if not (late or left) or self._clock.monotonic() >= end:
                return sorted(late), sorted(left)
            await self._clock.sleep(_LOOK_S)

    async def clean(self, config: Config) -> int:
        """Take the marks from nodes that still have some; how many had."""
        offered = {vocabulary.ticket for vocabulary in vocabularies(config)}
        cleaned = 0
        for node in (await self._kube.list(NODES)).items:
            if self.is_others(node):
                continue
            name, present = node["metadata"]["name"], seen_in(node)
            idle = {each for each in offered if present.capacity.get(each) == "0"}
            metadata = metadata_patch(Marks(), present, labelling=config.node.labels, now=0)
            status = status_patch(Marks(), present, amounts.kept(config, present.capacity) | idle)
            if metadata is not None:
                await self._kube.patch(NODES, name, metadata)
            if status is not None:
                await self._kube.patch(NODES, name, status, subresource="status")
            cleaned += metadata is not None or status is not None
        return cleaned

    def is_others(self, node: Object) -> bool:
        """Whether the node is somebody else's by its labels, and no agent is known to have been there."""
        return kept_out(node["metadata"].get("labels")) and node["metadata"]["name"] not in self._served

    async def left(self) -> list[str]:
        """Nodes that had an agent and became somebody else's."""
        nodes = (await self._kube.list(NODES)).items
        kept = {node["metadata"]["name"] for node in nodes if kept_out(node["metadata"].get("labels"))}
        return sorted(kept & self._served)

    async def remove_all(self) -> None:
        """Remove configuration, certificate, leases and our kinds of objects. Raises Outside."""
        await self._remove(SECRETS, CERTIFICATE, CONFIG_MAP_NAMESPACE)
        for lease in (await self._kube.list(LEASES, namespace=CONFIG_MAP_NAMESPACE)).items:
            name = lease["metadata"]["name"]
            if name == "lamina-control" or name.startswith("node-"):
                await self._remove(LEASES, name, CONFIG_MAP_NAMESPACE)
        for definition in crds.definitions():
            await self._remove(CUSTOM_RESOURCE_DEFINITIONS, definition["metadata"]["name"])
        await self._remove(CONFIG_MAPS, CONFIG_MAP, CONFIG_MAP_NAMESPACE)

    async def _remove(self, resource: Resource, name: str, namespace: str = "") -> None:
        try:
            await self._kube.delete(resource, name, namespace=namespace)
        except NotFound:
            return


def _undone(inventory: Inventory) -> list[str]:
    made = [
        f"GPU {gpu.index} has the MIG instance {each.profile} at {each.start}"
        for gpu in inventory.gpus
        for each in gpu.instances
        if each.made
    ]
    shared = [f"{daemon.gpu} is shared by MPS" for daemon in inventory.mps if daemon.made]
    return [*inventory.mig_left, *made, *shared]


def refuse_users(found: cluster.Cluster, then: str) -> None:
    """Raises BadInput, which names them, while pods use GPUs."""
    users = [_name(pod) for pod in found.pods if _uses(pod, found)]
    if users:
        raise BadInput(
            f"{len(users)} pod{'s use' if len(users) > 1 else ' uses'} GPUs: {', '.join(sorted(users))}; "
            f"delete them, or what makes them, and {then}"
        )


def disabled(text: str) -> str:
    """A configuration's text with `enabled: false`, comments kept where they can be. Raises BadInput."""
    kept = re.sub(r"^enabled:.*\n?", "", text, flags=re.MULTILINE).rstrip()
    changed = f"{kept}\nenabled: false\n".lstrip()
    try:
        if not configuration.load(changed, "the configuration").enabled:
            return changed
    except LaminaError:
        pass  # written as one `{...}`, behind which nothing can stand
    document: Mapping[str, object] = yaml.safe_load(text) or {}
    configuration.load(text, "the configuration")
    return yaml.safe_dump({**document, "enabled": False}, sort_keys=False)


def _uses(pod: Object, found: cluster.Cluster) -> bool:
    """Whether the pod holds a GPU or would be given one: it is on a node, has not finished, and asks for GPUs,
    MIG devices or replicas."""
    node = pod["spec"].get("nodeName")
    if pod.get("status", {}).get("phase") in _FINISHED or not node:
        return False
    if pod["metadata"]["uid"] in found.grants:
        return True
    if found.inventories and node not in found.inventories:
        return False  # what it has is of others
    try:
        return parse(pod, found.config) is not None or bool(counted(pod))
    except BadInput:
        return True


def _name(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
