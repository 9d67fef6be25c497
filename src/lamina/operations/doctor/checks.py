"""The checks of `lamina doctor`, as findings from one reading of the cluster. Pure.

Each finding names the check, its result, and, unless all is well, how to fix it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from lamina.core.component_names import documentation
from lamina.core.gpus import Inventory
from lamina.core.nodes import KEPT_OUT, kept_out
from lamina.core.pod_status import is_over
from lamina.dialects import parse, resource_names
from lamina.errors import BadInput
from lamina.install.agent_values import GPU_NODES
from lamina.ledger.ticket_holders import describe_tickets
from lamina.operations.doctor.claims import claim_drivers, claim_pods, device_classes_of_claims, tainted_devices
from lamina.operations.doctor.components import components
from lamina.operations.doctor.finding import Finding, State
from lamina.operations.doctor.mixed_sharing import mixed_sharing
from lamina.operations.doctor.other_systems import other_systems
from lamina.operations.doctor.unread_configurations import unread_configurations
from lamina.ports.kube import Object
from lamina.ports.kube.moments import rfc3339
from lamina.report.cluster_view import ClusterView

MIN_KUBELET = (1, 20)
MIN_KERNEL = (3, 15)
"""The first with open file description locks."""
MIN_DRIVER = (440,)
_SHOWN = 5
UNSEEN = timedelta(seconds=30)
"""How long a scheduler may take until it tries a pod."""
RUNTIMES = {"containerd": (1, 7), "cri-o": (1, 23), "lamina": (0, 0)}
"""The first versions that support CDI; the last one is the lab's."""
_RESTART = (
    "after a change of names in the ConfigMap, restart the scheduler of `lamina install` with "
    "`kubectl -n {} rollout restart deployment/lamina-scheduler`"
)
"""With the namespace."""


class CheckedObjects(NamedTuple):
    """What is checked besides the view of the cluster."""

    namespace: str
    """Where Lamina is installed."""
    nodes: list[Object]
    webhooks: list[Object]
    slices: list[Object]
    taint_rules: list[Object]
    classes: list[Object]
    configurations_of_others: list[Object]
    """ConfigMaps."""


def findings(cluster: ClusterView, objects: CheckedObjects, now: datetime) -> Iterator[Finding]:
    """All findings about nodes, inventories, pods and what other systems have. `now` has a time zone."""
    nodes = objects.nodes
    ours = [node for node in nodes if node["metadata"]["name"] in cluster.inventories and not _is_kept_out(node)]
    yield from components(cluster.pods, objects.namespace)
    yield _configuration(cluster, objects.namespace)
    yield from configurations_of_nodes(cluster.inventories.values())
    yield from _agents(cluster, nodes)
    for node in ours:
        yield from _node(node, cluster)
    names = [node["metadata"]["name"] for node in ours]
    yield from other_systems(cluster.config, cluster.pods, names, objects.webhooks)
    yield from unread_configurations(cluster.config, objects.configurations_of_others)
    yield from claim_drivers(objects.slices, cluster.pods, names, cluster.config.admission.by_claim)
    yield from device_classes_of_claims(objects.classes, objects.slices)
    yield from claim_pods(cluster)
    yield from tainted_devices(objects.taint_rules, objects.slices)
    yield from mixed_sharing(cluster.inventories.values())
    yield _scheduler(cluster, objects.namespace, now)
    yield _tickets(cluster)


def _configuration(cluster: ClusterView, namespace: str) -> Finding:
    if not cluster.config_refusal:
        return Finding("configuration", State.OK, "it is in force")
    fix = f"correct it with kubectl -n {namespace} edit configmap lamina; until then the previous one is in force"
    return Finding("configuration", State.FAILED, cluster.config_refusal, fix)


def configurations_of_nodes(inventories: Iterable[Inventory]) -> Iterator[Finding]:
    """What agents refuse: a row for each reason, which all nodes with the same configuration have."""
    nodes: dict[tuple[str, str], dict[str, int]] = {}
    for inventory in inventories:
        for each in inventory.refused:
            nodes.setdefault((each.source, each.reason), {})[inventory.node] = each.since
    for (source, reason), since in sorted(nodes.items()):
        names = sorted(since)
        more = f" and {len(names) - _SHOWN} more nodes" if len(names) > _SHOWN else ""
        where = f"on {', '.join(names[:_SHOWN])}{more} since {rfc3339(min(since.values()))}"
        yield Finding(
            "configuration of nodes",
            State.FAILED,
            f"{source}, {where}: {reason}",
            f"correct it, or remove what names it; see {documentation('how-to/time-slicing-and-mps.md')}",
        )


def _is_kept_out(node: Object) -> bool:
    return kept_out(node["metadata"].get("labels"))


def _agents(cluster: ClusterView, nodes: list[Object]) -> Iterator[Finding]:
    labels = {node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in nodes}
    others = sorted(name for name, has in labels.items() if kept_out(has) and _any(has, GPU_NODES))
    if others:
        fix = "to serve them, change labels: " + "; ".join(f"{key} must not be {values[0]}" for key, values in KEPT_OUT)
        found = f"nodes with GPUs that Lamina does not serve: {', '.join(others)}"
        yield Finding("excluded nodes", State.OK, found, fix)
    without = {name for name, has in labels.items() if _any(has, GPU_NODES)} - cluster.inventories.keys()
    missing = sorted(without - set(others))
    if missing:
        fix = "run the agent on them, or check its log; it publishes the inventory of its node when it starts"
        yield Finding("agents", State.FAILED, f"nodes with GPUs but no agent: {', '.join(missing)}", fix)
    elif not (served := cluster.inventories.keys() - set(others)):
        selectors = ", ".join(f"{key}={value}" for key, value in GPU_NODES)
        fix = (
            f"label nodes with one of {selectors}, so that agents run on them; see {documentation('how-to/install.md')}"
        )
        yield Finding("agents", State.FAILED, "no node has published an inventory", fix)
    else:
        count = len(served)
        found = f"{count} node{' has' if count == 1 else 's have'} published an inventory"
        yield Finding("agents", State.OK, found)


def _any(labels: Mapping[str, str], expected: Iterable[tuple[str, str]]) -> bool:
    """Whether one of these is among the labels."""
    return any(labels.get(key) == value for key, value in expected)


def _node(node: Object, cluster: ClusterView) -> Iterator[Finding]:
    name, info = node["metadata"]["name"], node["status"]["nodeInfo"]
    inventory = cluster.inventories[name]
    driver = inventory.driver
    yield _at_least(
        f"{name}: driver", driver or "none", driver, MIN_DRIVER,
        "install an NVIDIA driver newer than 440, and check that nvidia-smi works on the node", newer=True,
    )  # fmt: skip
    kubelet = info["kubeletVersion"]
    yield _at_least(f"{name}: Kubernetes", kubelet, kubelet, MIN_KUBELET, "upgrade kubelet to 1.20 or later")
    runtime, _, version = info["containerRuntimeVersion"].partition("://")
    if runtime in RUNTIMES:
        fix = "upgrade it, and enable CDI (enable_cdi in containerd before 2.0)"
        yield _at_least(f"{name}: container runtime", f"{runtime} {version}", version, RUNTIMES[runtime], fix)
    else:
        fix = (
            "use containerd 1.7 or later, or CRI-O 1.23 or later, with NVIDIA's runtime as the default, and name its "
            "socket in kubelet's --container-runtime-endpoint"
        )
        found = f"{runtime} does not give containers of kubelet CDI devices, by which shares get their GPU and limits"
        yield Finding(f"{name}: container runtime", State.FAILED, found, fix)
    kernel = info["kernelVersion"]
    yield _at_least(f"{name}: kernel", kernel, kernel, MIN_KERNEL, "upgrade the node's kernel")
    yield _gpus(name, inventory, enabled=cluster.config.enabled)
    if inventory.mps:
        waiting = [f"{each.gpu} is {each.state.value}: {each.reason}" for each in inventory.mps if not each.ready]
        page = documentation("how-to/time-slicing-and-mps.md")
        fix = f"check the agent's log, and control.log in the pipe directory; see {page}"
        count = len(inventory.mps)
        found = "; ".join(waiting) or f"{count} GPU{' is' if count == 1 else 's are'} served"
        yield Finding(f"{name}: MPS", State.FAILED if waiting else State.OK, found, fix if waiting else "")
    yield from _partitioned(name, inventory)
    yield from _registered(node, cluster)


def _gpus(name: str, inventory: Inventory, *, enabled: bool) -> Finding:
    """What the node offers: GPUs for shares, and MIG devices that kubelet allocates."""
    where, number = f"{name}: GPUs", len(inventory.gpus)
    parts = sum(devices.count for devices in inventory.mig_devices if devices.resource)
    unhealthy = [f"GPU {gpu.index}: {gpu.reason}" for gpu in inventory.gpus if not gpu.healthy]
    if unhealthy:
        page = documentation("how-to/maintain-gpus.md")
        fix = f"drain the node, then reset or replace the GPU, as {page} says for each reason"
        return Finding(where, State.FAILED, "; ".join(unhealthy), fix)
    if not (number or parts) and enabled:
        fix = "check nodes.selector, nodes.overrides and mig.strategy in the configuration"
        return Finding(where, State.WARNING, "none is offered", fix)
    if not parts:
        return Finding(where, State.OK, f"{number} offered and healthy")
    shared = f"{number} GPU{'' if number == 1 else 's'} and " if number else ""
    return Finding(where, State.OK, f"{shared}{parts} MIG devices offered and healthy")


def _partitioned(name: str, inventory: Inventory) -> Iterator[Finding]:
    """MIG instances that were created for grants."""
    partitioned = [gpu for gpu in inventory.gpus if gpu.mig_enabled]
    if inventory.mig_leftovers:
        fix = "end the processes that use it; the agent removes it when it is idle"
        yield Finding(f"{name}: MIG", State.WARNING, "; ".join(inventory.mig_leftovers), fix)
    elif partitioned:
        described = [
            f"GPU {g.index} has " + (", ".join(f"{i.profile} at {i.start}" for i in g.instances) or "none")
            for g in partitioned
        ]
        yield Finding(f"{name}: MIG", State.OK, f"instances for grants: {'; '.join(described)}")


def _registered(node: Object, cluster: ClusterView) -> Iterator[Finding]:
    """Whether kubelet reports what the inventory offers."""
    name, allocatable = node["metadata"]["name"], node["status"].get("allocatable") or {}
    if not any(gpu.healthy and gpu.by_grant for gpu in cluster.inventories[name].gpus):
        return
    lacking = [n.ticket for n in resource_names(cluster.config) if allocatable.get(n.ticket, "0") == "0"]
    if lacking:
        fix = "check the agent's log; its --kubelet-dir must be the directory of kubelet on the host"
        yield Finding(f"{name}: kubelet", State.FAILED, f"it does not report {', '.join(lacking)}", fix)
    else:
        yield Finding(f"{name}: kubelet", State.OK, "it reports what the agent offers")


def _at_least(check: str, version: str, text: str, least: tuple[int, ...], fix: str, *, newer: bool = False) -> Finding:
    numbers = tuple(int(number) for number in re.findall(r"\d+", text)[: len(least)])
    ok = numbers > least if newer else numbers >= least
    return Finding(check, State.OK, version) if ok else Finding(check, State.FAILED, f"{version} is too old", fix)


def _scheduler(cluster: ClusterView, namespace: str, now: datetime) -> Finding:
    """Whether a scheduler serves the names and calls the extender.

    A pod that no scheduler has tried for a while shows that none serves its schedulerName. A pod that was placed
    without a grant shows that its scheduler does not call the extender for the resources of the pod.
    """
    names = set(cluster.config.schedulers.served)
    ours = [pod for pod in cluster.pods if pod["spec"].get("schedulerName") in names and _requests_gpus(pod, cluster)]
    unserved = sorted({pod["spec"]["schedulerName"] for pod in ours if not _tried(pod) and _is_old(pod, now)})
    if unserved:
        fix = (
            "add such a profile with Lamina's extender to kube-scheduler (`lamina scheduler-config`); "
            f"{_RESTART.format(namespace)}"
        )
        return Finding("scheduler", State.FAILED, f"no scheduler is serving schedulerName {', '.join(unserved)}", fix)
    bypassed = sorted(
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in ours if _bypassed_extender(pod, cluster)
    )
    if bypassed:
        found = f"scheduled without Lamina's extender, so they cannot start: {', '.join(bypassed)}"
        fix = (
            "list all resources of the configuration in the extender's managedResources; "
            f"{_RESTART.format(namespace)}; recreate the pods"
        )
        return Finding("scheduler", State.FAILED, found, fix)
    if not any(pod["metadata"]["uid"] in cluster.grants for pod in ours):
        requested = "is scheduled yet" if ours else "exists yet"
        return Finding("scheduler", State.OK, f"not verified, because no pod that requests a GPU {requested}")
    return Finding("scheduler", State.OK, "pods that request GPUs are scheduled")


def _tickets(cluster: ClusterView) -> Finding:
    """Whether pods that Lamina did not place keep tickets from others."""
    holders = cluster.taken_tickets.holders
    if not holders:
        return Finding("tickets", State.OK, "no pod has any without a grant")
    found = "; ".join(
        f"{holder.name} has {describe_tickets(tickets)} of node {holder.node}" for holder, tickets in holders[:_SHOWN]
    )
    more = f"; and {len(holders) - _SHOWN} more pods" if len(holders) > _SHOWN else ""
    fix = "delete them, and create them without nodeName and for a scheduler that Lamina serves"
    return Finding("tickets", State.FAILED, f"pods without a grant keep them from others: {found}{more}", fix)


def _requests_gpus(pod: Object, cluster: ClusterView) -> bool:
    named = {name for names in resource_names(cluster.config) for name in names.all}
    resources = [container.get("resources") or {} for container in pod["spec"]["containers"]]
    return any(named & (each.get("limits") or {}).keys() for each in resources)


def _bypassed_extender(pod: Object, cluster: ClusterView) -> bool:
    """Whether the pod is on a node that shares GPUs by grants, and has no grant."""
    inventory = cluster.inventories.get(pod["spec"].get("nodeName") or "")
    over = is_over(pod)
    if inventory is None or over or pod["metadata"]["uid"] in cluster.grants:
        return False
    try:
        request = parse(pod, cluster.config)
    except BadInput:
        return True
    return request is not None and not inventory.offers_native_devices(request.native_devices)


def _tried(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return bool(pod["spec"].get("nodeName")) or any(each["type"] == "PodScheduled" for each in conditions)


def _is_old(pod: Object, now: datetime) -> bool:
    return now - datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) > UNSEEN
