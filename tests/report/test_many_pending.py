"""Thousands of pods that wait are explained by a sentence for each reason, and each is explained in its own right."""

from lamina.cli import tables
from lamina.operations.dashboard.view import document_of
from lamina.report.cluster_reader import read
from lamina.report.pods import pod_rows
from lamina.report.reasons import why_pod
from tests.worlds.clusters import cluster, container, inventory, pod

COUNT = 10_000
TOO_LARGE = "needs 99999 MiB; the largest GPU has 15360 MiB"


async def test_ten_thousand_pods_that_wait_have_two_reasons() -> None:
    nodes = [inventory(f"n{number}", gpus=2) for number in range(10)]
    pods = [pod(f"p{number}", container(gpu=1, gpumem=(99999, 20000)[number % 2])) for number in range(COUNT)]
    view = await read(await cluster(*nodes, *pods))
    rows = pod_rows(view, None)
    assert len(rows) == COUNT and len({row.reason for row in rows}) == 2
    notes = list(tables.reasons(rows))
    assert len(notes) == 2 and any(TOO_LARGE in note for note in notes)
    assert TOO_LARGE in next(iter(why_pod(view, view.pods[0])))
    document = document_of(view, {})
    assert document.cluster.waiting_pods == COUNT
    assert len({card.reason for card in document.pods.values()}) == 2
