"""What `lamina doctor` looks at, as findings from what one reading of the cluster told. Pure.

Each finding says what was looked at, how it is, and, unless all is well, how to mend it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from lamina.cli.cluster import Cluster
from lamina.cli.finding import Finding, State
from lamina.cli.others import others
from lamina.cli.parts import parts
from lamina.dialects import parse, vocabularies
from lamina.errors import BadInput
from lamina.install.values import GPU_NODES
from lamina.model.gpus import Inventory
from lamina.model.nodes import KEPT_OUT, kept_out
from lamina.ports.kube import Object

LEAST_KUBELET = (1, 20)
LEAST_KERNEL = (3, 15)
"""The first with locks that belong to an open file and not to a process."""
LEAST_DRIVER = (440,)
UNSEEN = timedelta(seconds=30)
"""How long a scheduler may take until it looks at a pod."""
RUNTIMES = {"containerd": (1, 7), "cri-o": (1, 23), "lamina": (0, 0)}
"""The first versions that read CDI specs; the last is the lab's own."""
_RESTART = (
    "after names were changed in the ConfigMap, a scheduler of `lamina install` takes them up by "
    "`kubectl -n lamina-system rollout restart deployment/lamina-scheduler`"
)


def findings(cluster: Cluster, nodes: list[Object], webhooks: list[Object], now: datetime) -> Iterator[Finding]:
    """All that can be seen of nodes, inventories, pods and other systems' webhooks. `now` has a time zone."""
    ours = [node for node in nodes if node["metadata"]["name"] in cluster.inventories and not _is_kept_out(node)]
    yield from parts(cluster.pods)
    yield from _agents(cluster, nodes)
    for node in ours:
        yield from _node(node, cluster)
    names = [node["metadata"]["name"] for node in ours]
    yield from others(cluster.config, cluster.pods, names, webhooks)
    yield _scheduler(cluster, now)


def _is_kept_out(node: Object) -> bool:
    return kept_out(node["metadata"].get("labels"))


def _agents(cluster: Cluster, nodes: list[Object]) -> Iterator[Finding]:
    labels = {node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in nodes}
    others = sorted(name for name, has in labels.items() if kept_out(has) and _any(has, GPU_NODES))
    if others:
        mend = "where Lamina is to serve, " + "; ".join(f"{key} must not be {values[0]}" for key, values in KEPT_OUT)
        yield Finding("nodes of others", State.OK, f"nodes with GPUs that are kept out: {', '.join(others)}", mend)
    without = {name for name, has in labels.items() if _any(has, GPU_NODES)} - cluster.inventories.keys()
    missing = sorted(without - set(others))
    if missing:
        mend = "run the agent there, or see its log: it publishes the node's inventory once it has started"
        yield Finding("agents", State.FAILED, f"nodes with GPUs and without an agent: {', '.join(missing)}", mend)
    elif not (served := cluster.inventories.keys() - set(others)):
        marks = ", ".join(f"{key}={value}" for key, value in GPU_NODES)
        mend = f"agents run on nodes with one of the labels {marks}; see docs/install.md"
        yield Finding("agents", State.FAILED, "no node has published an inventory", mend)
    else:
        count = len(served)
        found = "1 node has published what it has" if count == 1 else f"{count} nodes have published what they have"
        yield Finding("agents", State.OK, found)


def _any(labels: Mapping[str, str], marks: Iterable[tuple[str, str]]) -> bool:
    """Whether one of these is among the labels."""
    return any(labels.get(key) == value for key, value in marks)


def _node(node: Object, cluster: Cluster) -> Iterator[Finding]:
    name, info = node["metadata"]["name"], node["status"]["nodeInfo"]
    inventory = cluster.inventories[name]
    driver = inventory.driver
    yield _at_least(
        f"{name}: driver", driver or "none", driver, LEAST_DRIVER,
        "install NVIDIA's driver, newer than 440, and see whether nvidia-smi answers on the node", newer=True,
    )  # fmt: skip
    kubelet = info["kubeletVersion"]
    yield _at_least(f"{name}: Kubernetes", kubelet, kubelet, LEAST_KUBELET, "upgrade kubelet to 1.20 or later")
    runtime, _, version = info["containerRuntimeVersion"].partition("://")
    if runtime in RUNTIMES:
        mend = "upgrade it, and turn CDI on: enable_cdi in containerd before 2.0"
        yield _at_least(f"{name}: container runtime", f"{runtime} {version}", version, RUNTIMES[runtime], mend)
    else:
        mend = "use containerd 1.7 or CRI-O 1.23, or later, with NVIDIA's runtime as the default"
        yield Finding(f"{name}: container runtime", State.FAILED, f"{runtime} does not read CDI specs", mend)
    kernel = info["kernelVersion"]
    yield _at_least(f"{name}: kernel", kernel, kernel, LEAST_KERNEL, "upgrade the node's kernel")
    sick = [f"GPU {gpu.index}: {gpu.reason}" for gpu in inventory.gpus if not gpu.healthy]
    if sick:
        yield Finding(f"{name}: GPUs", State.FAILED, "; ".join(sick), "see docs/node.md for what makes a GPU unhealthy")
    elif not inventory.gpus and cluster.config.enabled:
        mend = "see nodeSelector, filterdevices and migStrategy in the configuration"
        yield Finding(f"{name}: GPUs", State.WARNING, "none is offered", mend)
    else:
        yield Finding(f"{name}: GPUs", State.OK, f"{len(inventory.gpus)} offered and healthy")
    if inventory.mps:
        waiting = [f"{each.gpu} is {each.state.value}: {each.reason}" for each in inventory.mps if not each.ready]
        mend = "see the agent's log and control.log beside the pipe directory; docs/guide.md tells the states"
        found = "; ".join(waiting) or f"daemons serve {len(inventory.mps)} GPU{'s'[len(inventory.mps) == 1 :]}"
        yield Finding(f"{name}: MPS", State.FAILED if waiting else State.OK, found, mend if waiting else "")
    yield from _divided(name, inventory)
    yield from _registered(node, cluster)


def _divided(name: str, inventory: Inventory) -> Iterator[Finding]:
    """What grants have cut by MIG, where there is any of it."""
    cut = [gpu for gpu in inventory.gpus if gpu.mig_enabled]
    if inventory.mig_left:
        mend = "end what uses it; the agent takes it away when it is idle"
        yield Finding(f"{name}: MIG", State.WARNING, "; ".join(inventory.mig_left), mend)
    elif cut:
        told = [
            f"GPU {g.index} has " + (", ".join(f"{i.profile} at {i.start}" for i in g.instances) or "none") for g in cut
        ]
        yield Finding(f"{name}: MIG", State.OK, f"instances by grants: {'; '.join(told)}")


def _registered(node: Object, cluster: Cluster) -> Iterator[Finding]:
    """Whether kubelet counts what the inventory offers."""
    name, allocatable = node["metadata"]["name"], node["status"].get("allocatable") or {}
    if not any(gpu.healthy and gpu.by_grant for gpu in cluster.inventories[name].gpus):
        return
    lacking = [v.ticket for v in vocabularies(cluster.config) if allocatable.get(v.ticket, "0") == "0"]
    if lacking:
        mend = "see the agent's log; its --kubelet-dir has to be kubelet's own folder on the host"
        yield Finding(f"{name}: kubelet", State.FAILED, f"it counts no {', '.join(lacking)}", mend)
    else:
        yield Finding(f"{name}: kubelet", State.OK, "it counts what the agent offers")


def _at_least(what: str, told: str, text: str, least: tuple[int, ...], mend: str, *, newer: bool = False) -> Finding:
    numbers = tuple(int(number) for number in re.findall(r"\d+", text)[: len(least)])
    well = numbers > least if newer else numbers >= least
    return Finding(what, State.OK, told) if well else Finding(what, State.FAILED, f"{told} is too old", mend)


def _scheduler(cluster: Cluster, now: datetime) -> Finding:
    """A pod that no scheduler looked at for a while tells that none serves its name; one that was, that one does, and
    one that it placed without a grant, that it does not ask Lamina for the names that the pod asks by."""
    names = set(cluster.config.schedulers)
    ours = [pod for pod in cluster.pods if pod["spec"].get("schedulerName") in names and _asks(pod, cluster)]
    silent = sorted({pod["spec"]["schedulerName"] for pod in ours if not _looked_at(pod) and _is_old(pod, now)})
    if silent:
        mend = f"give kube-scheduler a profile of that name with Lamina's extender, see docs/cluster.md; {_RESTART}"
        return Finding("scheduler", State.FAILED, f"nobody has looked at pods of {', '.join(silent)}", mend)
    past = sorted(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in ours if _past_us(pod, cluster))
    if past:
        found = f"placed without asking Lamina, so that they get no GPU: {', '.join(past)}"
        mend = (
            f"let the extender's managedResources name all resources of the configuration, {_RESTART}; remake the pods"
        )
        return Finding("scheduler", State.FAILED, found, mend)
    if not any(pod["metadata"]["uid"] in cluster.grants for pod in ours):
        mend = "create a pod that asks for a GPU, and look again"
        return Finding("scheduler", State.WARNING, "no pod with GPUs tells whether a profile leads to Lamina", mend)
    return Finding("scheduler", State.OK, "pods that ask for GPUs are placed")


def _asks(pod: Object, cluster: Cluster) -> bool:
    named = {name for vocabulary in vocabularies(cluster.config) for name in vocabulary.all}
    resources = [container.get("resources") or {} for container in pod["spec"]["containers"]]
    return any(named & (each.get("limits") or {}).keys() for each in resources)


def _past_us(pod: Object, cluster: Cluster) -> bool:
    """Whether the pod is on a node that gives out GPUs by grants, and has none."""
    inventory = cluster.inventories.get(pod["spec"].get("nodeName") or "")
    over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    if inventory is None or over or pod["metadata"]["uid"] in cluster.grants:
        return False
    try:
        request = parse(pod, cluster.config)
    except BadInput:
        return True
    return request is not None and not inventory.offers_plainly(request.plain)


def _looked_at(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return bool(pod["spec"].get("nodeName")) or any(each["type"] == "PodScheduled" for each in conditions)


def _is_old(pod: Object, now: datetime) -> bool:
    return now - datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) > UNSEEN
