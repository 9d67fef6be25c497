"""Nodes and pods for placement's tests: what the seeds' tests ran on, and small ones to reason about."""

from collections.abc import Iterable, Mapping
from typing import Any

from lamina.configuration import DEFAULT, Config
from lamina.core.gpus import Gpu
from lamina.core.ledger import NOTHING, Taken, taken_by
from lamina.core.requests import ContainerRequest, PodRequest
from lamina.dialects import parse
from lamina.placement import Misfit, NodeState, PodPlacement, fit

V100 = "Tesla V100-SXM2-32GB"


def gpus(count: int = 2, *, memory: int = 32768, scaling: int = 1, **rest: Any) -> tuple[Gpu, ...]:
    """GPUs named GPU-0, GPU-1 ... of one kind."""
    return tuple(
        Gpu(
            uuid=f"GPU-{index}",
            index=index,
            memory_mib=memory,
            capacity_mib=memory * scaling,
            **{"model": V100, **rest},
        )
        for index in range(count)
    )


def node(of: Iterable[Gpu] | None = None, taken: Mapping[str, Taken] | None = None, name: str = "node-1") -> NodeState:
    return NodeState.of(name, tuple(of) if of is not None else gpus(), taken)


def request(*containers: ContainerRequest, **rest: Any) -> PodRequest:
    return PodRequest(dialect="hami", containers=containers, **rest)


def ask(
    memory: int | None = None, cores: int = 0, *, count: int = 1, percent: int | None = None, **rest: Any
) -> ContainerRequest:
    """A container's request; neither memory nor percentage is a whole GPU."""
    if memory is None and percent is None:
        percent, cores, rest = 100, 100, {"exclusive": True, **rest}
    return ContainerRequest(
        container=rest.pop("name", "main"), count=count, memory_mib=memory, memory_percent=percent, cores=cores, **rest
    )


def placed(answer: PodPlacement | Misfit) -> PodPlacement:
    assert isinstance(answer, PodPlacement), answer.reason
    return answer


def missed(answer: PodPlacement | Misfit) -> Misfit:
    assert isinstance(answer, Misfit)
    return answer


def uuids(answer: PodPlacement | Misfit, container: int = 0) -> list[str]:
    return [share.gpu for share in placed(answer).containers[container].shares]


def add(taken: Mapping[str, Taken], placement: PodPlacement) -> dict[str, Taken]:
    """The ledger with one more pod."""
    more = taken_by(placement.containers)
    return {uuid: taken.get(uuid, NOTHING).plus(more.get(uuid, NOTHING)) for uuid in taken.keys() | more.keys()}


def replicas(
    manifest: dict[str, Any], count: int, of: tuple[Gpu, ...], config: Config = DEFAULT
) -> tuple[list[PodPlacement], list[Misfit]]:
    """Place `count` pods of one manifest one after the other: those that run and those that wait."""
    wanted = parse(manifest, config)
    assert wanted is not None
    running: list[PodPlacement] = []
    waiting: list[Misfit] = []
    taken: dict[str, Taken] = {}
    for _ in range(count):
        answer = fit(wanted, node(of, taken))
        if isinstance(answer, PodPlacement):
            running.append(answer)
            taken = add(taken, answer)
        else:
            waiting.append(answer)
    return running, waiting
