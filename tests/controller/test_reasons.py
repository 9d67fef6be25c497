"""The text of the event on a pod that waits is the text of `lamina why`."""

from lamina.configuration import DEFAULT
from lamina.core.grants import ContainerGrant, Share
from lamina.dialects import parse
from lamina.ledger.holds import Hold
from lamina.placement import NodeState, explain
from tests.controller.binders import Bench
from tests.worlds.objects import gpus


async def test_the_event_counts_all_nodes_and_those_that_were_not_offered() -> None:
    bench = Bench()
    for name in ("a", "b", "c"):
        bench.offer(name)
    share = Share(gpu="GPU-0", memory_mib=30_000)
    held = (ContainerGrant(name="main", shares=(share, Share(gpu="GPU-1", memory_mib=31_000))),)
    for name in ("a", "b"):
        bench.ledger.hold(Hold.of_shares(f"on-{name}", "default", "p", name, held, 0.0))
    pod = await bench.pod("q", gpumem=5000)
    summary = bench.scheduler.filter(bench.parse(pod), ["a"]).summary
    assert summary.startswith("node a: needs 5000 MiB; the best GPU has 2768 MiB free")
    assert summary.endswith("; 1 more would fit, but the scheduler did not offer them")
    bench.ledger.hold(Hold.of_shares("on-c", "default", "p", "c", held, 0.0))
    request = parse(pod, DEFAULT)
    assert request is not None
    everything = explain(
        request, [NodeState.of(name, gpus(), bench.ledger.totals.taken(name)) for name in "abc"]
    ).summary
    assert bench.scheduler.filter(bench.parse(pod), ["b"]).summary == everything
    assert everything.startswith("0 of 3 nodes fit: 3 short of memory; nearest is a: ")
