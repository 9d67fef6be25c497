"""How far limits go beyond guarantees, and what is borrowed, by GPU."""

from lamina.core.grants import ContainerGrant, Share
from lamina.report.cluster_use import ClusterUse, ShareFigures
from lamina.report.gpus import borrowed_mib, lendable_mib


def container(memory_mib: int, limit_mib: int = 0, *, gpu: str = "a", init: bool = False) -> ContainerGrant:
    share = Share(gpu=gpu, memory_mib=memory_mib, most_memory_mib=limit_mib)
    return ContainerGrant(name=f"{memory_mib}-{limit_mib}-{gpu}", init=init, shares=(share,))


def test_limits_of_containers_that_run_together_are_added() -> None:
    pods = [(container(1000, 3000), container(500, 700)), (container(1000, 1000, gpu="b"), container(100, 200))]
    assert lendable_mib(pods) == {"a": 2300, "b": 0}


def test_an_init_container_counts_where_it_may_hold_more_than_those_that_follow() -> None:
    assert lendable_mib([(container(1000, 9000, init=True), container(2000, 3000))]) == {"a": 7000}
    assert lendable_mib([(container(1000, 2500, init=True), container(2000, 3000))]) == {"a": 1000}


def test_nothing_is_lent_without_limits_above_requests() -> None:
    assert lendable_mib([(container(1000), container(500, 400))]) == {}


def test_what_containers_borrow_is_added() -> None:
    use = ClusterUse()
    use.shares["team", "p", "main"] = {"a": ShareFigures(borrowed_mib=5), "b": ShareFigures(borrowed_mib=1)}
    use.shares["team", "q", "main"] = {"a": ShareFigures(borrowed_mib=7)}
    assert borrowed_mib(use) == {"a": 12, "b": 1}
