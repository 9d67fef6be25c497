"""`lamina advise defrag` in sentences."""

from msgspec import structs

from lamina.configuration import DEFAULT
from lamina.core.config_fields import Placement
from lamina.core.gpus import Gpu, Inventory
from lamina.core.grants import ContainerGrant, Grant, Share
from lamina.core.policies import BINPACK
from lamina.ledger.ledger import Ledger
from lamina.ledger.pod_holding import GrantRecord
from lamina.ledger.pod_stages import pod_state
from lamina.ledger.pods import parse_pod
from lamina.ledger.ungranted_pods import running_request
from lamina.operations.advise.defrag import advice
from lamina.ports.kube import Object
from lamina.report.cluster_view import ClusterView
from tests.worlds.clusters import container
from tests.worlds.clusters import pod as manifest

MIB = 16000
INVENTORY = Inventory(
    node="node-0",
    driver="515.86.01",
    gpus=tuple(Gpu(uuid=f"GPU-{i}", index=i, model="T4", memory_mib=MIB, capacity_mib=MIB) for i in range(3)),
)


def pod(name: str, *, owned: bool = True, memory: int = 5000) -> Object:
    status = {"containerStatuses": [{"name": "main", "state": {"running": {}}}]}
    made = manifest(name, container(gpu=1, gpumem=memory), node="node-0", status=status)
    made["metadata"]["uid"] = name
    if owned:
        made["metadata"]["ownerReferences"] = [{"controller": True}]
    return made


def cluster(*placed: tuple[Object, int | None]) -> ClusterView:
    """Pods on GPUs by index; None for one without a grant."""
    ledger = Ledger()
    ledger.observe_inventory(INVENTORY)
    grants = {}
    for each, gpu in placed:
        name = each["metadata"]["name"]
        ledger.observe_pod(name, pod_state(each), 0.0, running_request(parse_pod(each, DEFAULT)))
        if gpu is not None:
            memory = abs(int(each["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"]))
            containers = (ContainerGrant(name="main", shares=(Share(gpu=f"GPU-{gpu}", memory_mib=memory),)),)
            grants[name] = Grant(pod=name, pod_uid=name, node="node-0", dialect="hami", containers=containers)
            ledger.observe_grant(GrantRecord("default", f"{name}-grant", f"uid of {name}", grants[name]))
    return ClusterView(DEFAULT, [each for each, _ in placed], grants, {"node-0": INVENTORY}, ledger)


def test_moves_name_gpus_by_index_and_are_counted() -> None:
    assert list(advice(cluster((pod("a"), 0), (pod("b"), 2)), 20)) == [
        "GPU 0 of node node-0 becomes idle after these moves:",
        "  default/a: from GPU 0 of node-0 to GPU 2 of node-0",
        "1 GPU becomes idle after 1 move.",
    ]
    small = [(pod(name, memory=2000), gpu) for gpu, name in enumerate("ab")]
    fullest_first = cluster(*small, (pod("c", owned=False), 2))
    fullest_first.config = structs.replace(DEFAULT, placement=Placement(node_policy=BINPACK, gpu_policy=BINPACK))
    both = list(advice(fullest_first, 20))
    assert both[-1] == "2 GPUs become idle after 2 moves."


def test_nothing_is_advised_where_nothing_may_move() -> None:
    nothing = ["No GPU can be freed by moving pods."]
    assert list(advice(cluster(), 20)) == nothing
    assert list(advice(cluster((pod("a", owned=False), 0), (pod("b", owned=False), 2)), 20)) == nothing
    ending = pod("a")
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert list(advice(cluster((ending, 0), (pod("b", owned=False), 2)), 20)) == nothing


def test_pods_without_a_grant_and_pods_that_cannot_be_read_count() -> None:
    unread = pod("b", owned=False, memory=-1)
    assert list(advice(cluster((pod("a"), 0), (unread, 2)), 20))[-1] == "1 GPU becomes idle after 1 move."
    full = pod("full", memory=MIB)
    assert list(advice(cluster((pod("a"), 0), (pod("b"), 2), (full, None)), 20)) == [
        "No GPU can be freed by moving pods."
    ]
