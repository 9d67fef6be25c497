"""A look at a cluster for the comparison in `invariants`: at everything once, and again for what is in progress."""

import asyncio
import re
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from lamina.agent.containers import cdi
from lamina.agent.mig.maker import Ownership
from lamina.agent.mps.lifecycle import DaemonJournal
from lamina.agent.state.holdings import Instance
from lamina.agent.state.record import Record
from lamina.core.objects import read_grant, read_inventory
from lamina.enforcement import read_limits
from lamina.enforcement.files import LIMITS, USAGE
from lamina.enforcement.usage import read_usage
from lamina.errors import LaminaError
from lamina.ports.files import Files
from lamina.ports.kube import GRANTS, INVENTORIES, PODS, RESOURCE_CLAIMS, Resource
from lamina.ports.kubelet.allocations import Holder, KubeletPodResources
from lamina_lab import simgpu
from tests.cluster.components.api_socket import Missing
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.node import RealNode
from tests.cluster.invariants import Container, Folder, Observation, OnNode, Pod, disagreements, over_committed
from tests.hostile_objects.pods import NAMESPACE as ODD_NAMESPACE

Object = dict[str, Any]
SETTLING_S = 60.0
"""How long something in flight may disagree while nothing is asked of the cluster."""
RESOURCES = ("nvidia.com/gpu", "nvidia.com/gpu.shared", "volcano.sh/vgpu-number", "volcano.sh/gpu-mem.128Mi")
_SERVICES = Resource("", "v1", "services", "Service")
_POD = re.compile(r"/pod([0-9a-f-]{36})/([0-9a-f]{64})$", re.MULTILINE)
_MOUNTED = re.compile(r" \S*/([^/ ]+)/limits /run/lamina/limits ")
_SERVES = re.compile(rb"(?:^|\0)CUDA_MPS_LOG_DIRECTORY=[^\0]*/(GPU-[^/\0]+)/log\0")
_SAMPLE = re.compile(r"lamina_gpu_\w+\{[^\r\n]*\} \S+")
_COUNTS = ("shares_granted", "memory_granted_mebibytes", "cores_granted_percent")


def look(cluster: RealCluster) -> Observation:
    """Everything that is known of shares now. Raises Unavailable while the API server does not answer.

    Odd objects that a test has put there are no part of it; see tests/hostile_objects.
    """
    items = [each for each in _listed(cluster) if not _odd(each["metadata"])]
    inventories = [read_inventory(each) for each in items if each["kind"] == "Inventory"]
    return Observation(
        grants=tuple(read_grant(each) for each in items if each["kind"] == "Grant"),
        pods={each["metadata"]["uid"]: _pod(each) for each in items if each["kind"] == "Pod"},
        gpus={each.node: each.gpus for each in inventories},
        ledger=_ledger(cluster, next((_address(each) for each in items if _address(each)), "127.0.0.1")),
        nodes={node.name: _on_node(node) for node in cluster.nodes},
        claims=_claims(cluster),
    )


def settled(cluster: RealCluster, patience_s: float = SETTLING_S) -> list[str]:
    """What is wrong: at once where something is given away twice, else what still disagrees after all patience."""
    deadline = time.monotonic() + patience_s
    while True:
        observed = look(cluster)
        if wrong := over_committed(observed):
            return wrong
        found = disagreements(observed)
        if not found or time.monotonic() > deadline:
            return [finding.says for finding in found]
        time.sleep(0.3)


def _odd(meta: Object) -> bool:
    return meta.get("namespace") == ODD_NAMESPACE or meta["name"].startswith("odd-")


def _listed(cluster: RealCluster) -> list[Object]:
    """Grants, pods and the rest, read in this order; none of a kind where its definition is not there."""
    items: list[Object] = []
    for kind in (GRANTS, PODS, INVENTORIES, _SERVICES):
        with suppress(Missing):
            items += [each | {"kind": kind.kind} for each in cluster.read(kind.path())["items"]]
    return items


def _claims(cluster: RealCluster) -> dict[str, frozenset[str]]:
    """By the UID of each ResourceClaim, the UIDs of the pods for which it is reserved; read after the nodes, because a
    claim is there before it is prepared."""
    try:
        claims = cluster.read(RESOURCE_CLAIMS.path())["items"]
    except Missing:
        return {}
    return {
        each["metadata"]["uid"]: frozenset(user["uid"] for user in each.get("status", {}).get("reservedFor") or ())
        for each in claims
    }


def _address(obj: Object) -> str:
    """Of the controller's Service, where Lamina was installed; empty for all else."""
    ours = obj["kind"] == "Service" and obj["metadata"]["name"] == "lamina-controller"
    return obj["spec"].get("clusterIP", "") if ours else ""


def _pod(obj: Object) -> Pod:
    over = obj["status"].get("phase") in ("Succeeded", "Failed")
    return Pod(obj["metadata"]["namespace"], obj["metadata"]["name"], obj["spec"].get("nodeName", ""), over)


def _ledger(cluster: RealCluster, host: str) -> dict[str, tuple[int, int, int]] | None:
    """The controller's own word."""
    try:
        text = cluster.control.sandbox.run("curl", "-sf", "-m", "5", f"http://{host}:8080/metrics")
    except Unavailable:
        return None
    values: dict[str, dict[str, int]] = {}
    # Names in odd objects have carriage returns, at which curl's output is split into lines that are no samples.
    lines = [each for each in text.split("\n") if _SAMPLE.fullmatch(each) and "odd-" not in each]
    for family in text_string_to_metric_families("\n".join([*lines, ""])):
        for sample in family.samples:
            named = values.setdefault(sample.labels["gpu"], {})
            named[sample.name.removeprefix("lamina_gpu_")] = round(sample.value)
    shares, memory, cores = _COUNTS
    return {gpu: (named[shares], named[memory], named[cores]) for gpu, named in values.items()}


def _on_node(node: RealNode) -> OnNode:
    root = Path(f"/proc/{node.sandbox.pid}/root")
    state, specs = root / "var/lib/lamina", root / "run/cdi"
    machine, made = simgpu.read(node.gpus.machine), Ownership(state / "mig.json", Files())
    containers, served = _processes(node, machine)
    holders = _holders(root / "var/lib/kubelet/pod-resources/kubelet.sock")
    record = Record(state / "record.json", Files())
    names = {path: cdi.name_of_file(path.name) for path in specs.glob("*.json")} if specs.is_dir() else {}
    return OnNode(
        holders=holders,
        specs={name: cdi.visible_devices(text) for path, name in names.items() if name and (text := _read(path))},
        folders={path.name: _folder(path) for path in (state / "containers").glob("*_*")},
        allocations=record.allocations,
        containers=containers,
        divided=frozenset(gpu.uuid for gpu in machine.gpus if gpu.mig_enabled),
        instances={
            each.uuid: Instance(gpu=each.parent, profile=each.profile, start=each.start) for each in machine.instances
        },
        noted=made.instances,
        labelled=made.labelled,
        served=served,
        kept=DaemonJournal(state / "mps.json", Files()).gpus,
        claims=tuple(record.claims.values()),
        claim_specs=record.names - {each.name for each in record.allocations},
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _holders(socket: Path) -> tuple[Holder, ...] | None:
    try:
        return asyncio.run(KubeletPodResources(socket).holders(RESOURCES))
    except LaminaError:
        return None


def _folder(path: Path) -> Folder:
    try:
        limits, usage = read_limits(path / LIMITS), read_usage(path / USAGE)
    except LaminaError as error:
        return Folder(damage=str(error))
    return Folder(
        memory_bytes={device.uuid: device.memory_bytes for device in limits.devices},
        cores={device.uuid: device.cores_percent for device in limits.devices},
        used_bytes={device.uuid: device.held for device in usage.devices},
    )


def _processes(node: RealNode, machine: simgpu.MachineState) -> tuple[tuple[Container, ...], frozenset[str]]:
    """The node's containers that see GPUs, and the GPUs that have processes of MPS: by all processes in its sandbox.

    GPUs of other clusters on this machine may have the same UUIDs, so the sandbox's processes are those of its network.
    """
    network = Path(f"/proc/{node.sandbox.pid}/ns/net").readlink()
    held: dict[int, dict[str, int]] = {}
    busy_ns: Counter[int] = Counter()
    for unit in (*machine.gpus, *machine.instances):
        for process in unit.processes:
            busy_ns[process.pid] += process.busy_ns
            if process.memory_mib:
                held.setdefault(process.pid, {})[unit.uuid] = process.memory_mib
    found: dict[str, Container] = {}
    served: set[bytes] = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            groups = (path / "cgroup").read_text()
            if f"/{node.group}/" not in groups or (matched := _POD.search(groups)) is None:
                if (path / "ns/net").readlink() == network:
                    served |= {named[1] for named in _SERVES.finditer((path / "environ").read_bytes())}
                continue
            uid, id = matched.groups()
            pid = _pid_on_node(path)
            mine = held.get(pid, {})
            waited_ns = _waited_ns(path) if pid in busy_ns else 0
            before = found.get(id) or _container(path, uid, id)
        except OSError:
            continue
        if before:
            sums = {gpu: before.held_mib.get(gpu, 0) + mine.get(gpu, 0) for gpu in {*before.held_mib, *mine}}
            busy, at_work = before.busy_ns + busy_ns[pid], before.at_work + (pid in busy_ns)
            waited_ns += before.waited_ns
            found[id] = before._replace(held_mib=sums, busy_ns=busy, waited_ns=waited_ns, at_work=at_work)
    return tuple(found.values()), frozenset(gpu.uuid for gpu in machine.gpus if gpu.uuid.encode() in served)


def _waited_ns(path: Path) -> int:
    """How long the threads of a process were ready to run and had no core."""
    return sum(int(task.read_text().split()[1]) for task in path.glob("task/*/schedstat"))


def _pid_on_node(path: Path) -> int:
    spaces = next(line for line in (path / "status").read_text().splitlines() if line.startswith("NSpid:"))
    return int(spaces.split()[2])


def _container(path: Path, uid: str, id: str) -> Container | None:
    environment = (path / "environ").read_text(errors="replace").split("\0")
    named = [entry.partition("=")[2] for entry in environment if entry.startswith(f"{cdi.VISIBLE}=")]
    visible = tuple(gpu for gpu in (named[-1] if named else "").split(",") if gpu.startswith(("GPU-", "MIG-")))
    if not visible:
        return None
    mounted = _MOUNTED.search((path / "mountinfo").read_text())
    return Container(uid, id, visible, mounted[1] if mounted else "")
