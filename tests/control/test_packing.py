"""The packing policy in a live cluster: it chooses the node and the GPU, and follows what the ledger knows."""

from lamina.control.ledger import reservation
from lamina.dialects.config import Config
from lamina.dialects.sections import Hami
from lamina.model.grants import ContainerGrant, Share
from lamina.ports.kube import Object
from tests.control.binders import Bench
from tests.control.cluster import admitted_pod, gpus

PACKING = Config(hami=Hami(node_scheduler_policy="packing", gpu_scheduler_policy="packing"))
NODES = ["node-0", "node-1"]


def pod(name: str, **limits: object) -> Object:
    made = admitted_pod(name, **limits)
    made["metadata"]["uid"] = f"uid-{name}"
    return made


def cluster() -> Bench:
    """Two nodes of two GPUs; on GPU-1 of node-1 a pod holds 20000 of 32768 MiB and half of the time."""
    bench = Bench(config=PACKING)
    for node in NODES:
        bench.offer(node, *gpus(2))
    share = Share(gpu="GPU-1", memory_mib=20_000, cores=50)
    at = reservation("node-1", (ContainerGrant(name="main", shares=(share,)),), 0.0)
    bench.ledger.reserve("held", "default", "held", at)
    return bench


async def test_a_share_goes_where_least_is_left_over() -> None:
    bench = cluster()
    made = await bench.pod("a", gpumem=12_000, gpucores=50)
    scores = bench.decisions.scores(made, NODES)
    assert scores["node-1"] > scores["node-0"]
    assert await bench.bind(made, "node-1") == ""
    [grant] = await bench.grants()
    assert [share["gpu"] for share in grant["spec"]["containers"][0]["shares"]] == ["GPU-1"]


async def test_the_policy_follows_new_nodes_and_other_cards_and_learns() -> None:
    bench = cluster()
    for number in range(60):
        wanted = pod(f"p{number}", gpumem=1000 * (1 + number % 8), gpucores=10)
        assert bench.decisions.filter(wanted, NODES).fitting == NODES
    bench.offer("node-2", *gpus(4, memory=16_000))
    bench.ledger.inventory_gone("node-0")
    scores = bench.decisions.scores(pod("q", gpumem=12_000, gpucores=50), [*NODES, "node-2"])
    assert scores["node-0"] == 0 and max(scores.values()) == 10
    assert set(bench.decisions.scores(pod("r", gpu=3), [*NODES, "node-2"]).values()) == {0}


def test_what_the_arrays_cannot_say_is_placed_all_the_same() -> None:
    bench = cluster()
    wished = pod("w", gpumem=1000)
    wished["metadata"]["annotations"] = {"nvidia.com/use-gpuuuid": "GPU-0"}
    assert bench.decisions.filter(wished, NODES).fitting == NODES
    assert set(bench.decisions.scores(wished, NODES)) == set(NODES)
