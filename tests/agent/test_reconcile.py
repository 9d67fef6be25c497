"""At the start the disk becomes what the record knows; files of others and of running pods stay."""

from lamina.agent.cleanup.leftovers import reconcile
from lamina.agent.containers.cdi import file_name
from lamina.errors import Outside
from tests.agent.node import Node, container


async def repair(node: Node) -> None:
    await reconcile(node.context)


async def test_nothing_at_all(node: Node) -> None:
    await repair(node)


async def test_what_the_record_knows_stays(node: Node) -> None:
    await node.pod("p", container("main"))
    await node.admit("p", {"main": ["ticket-0"]})
    await node.preparer.prepare(["ticket-0"])
    before = node.disk()
    node.start()
    await repair(node)
    assert node.disk() == before


async def test_stale_and_half_written_specs_go_and_others_stay(node: Node) -> None:
    node.places.cdi.mkdir()
    stale = node.places.cdi / file_name("0" * 32)
    half = node.places.cdi / f".{file_name('1' * 32)}.tmp"
    theirs = node.places.cdi / "nvidia.yaml"
    for path in (stale, half, theirs):
        path.write_text("{}")
    await repair(node)
    assert [path.name for path in node.places.cdi.iterdir()] == ["nvidia.yaml"]


async def test_folders_without_a_record_go_unless_a_pod_of_the_node_may_use_them(node: Node) -> None:
    living = await node.pod("p", container("main"))
    elsewhere = await node.pod("q", container("main"), node="node-2")
    for folder in (f"{living}_main", f"{elsewhere}_main", "gone_main", "odd"):
        (node.places.containers / folder).mkdir(parents=True)
    await repair(node)
    assert [path.name for path in node.places.containers.iterdir()] == [f"{living}_main"]


async def test_folders_stay_while_kubernetes_does_not_say_whose_they_are(node: Node) -> None:
    (node.places.containers / "gone_main").mkdir(parents=True)

    async def silent() -> frozenset[str]:
        raise Outside("Kubernetes does not answer")

    node.cluster.list_pod_uids = silent  # type: ignore[method-assign]
    await repair(node)
    assert (node.places.containers / "gone_main").is_dir()
