"""What a pod asks of the arrays: an amount for each kind of GPU, or nothing that they can express."""

import pytest

from lamina.core.gpus import Mode
from lamina.core.host_size import HostSize
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest
from lamina.placement.packing import MAX_GPUS, REFUSED, Ask, ask_of

SIZE = HostSize(2000, 4096)
KINDS = (("Tesla V100", 32768, 100), ("NVIDIA A100", 40960, 100), ("Tesla T4", 16384, 50))
ANY = GpuSelector()


def pod(*containers: ContainerRequest, selector: GpuSelector = ANY) -> PodRequest:
    return PodRequest(dialect="hami", containers=containers or (main(),), selector=selector)


def main(**fields: object) -> ContainerRequest:
    return ContainerRequest(**{"container": "main", "count": 1, "memory_mib": 16384, "cores": 50, **fields})  # type: ignore[arg-type]


def test_a_pod_without_a_gpu_asks_for_its_host_alone() -> None:
    assert ask_of(None, SIZE, KINDS) == Ask(2000, 4096, 0, (0, 0, 0), 0)


def test_each_kind_has_its_amount_up_to_all_of_it() -> None:
    assert ask_of(pod(), SIZE, KINDS) == Ask(2000, 4096, 1, (16384, 16384, 16384), 50)
    assert ask_of(pod(main(memory_mib=16385)), SIZE, KINDS) == Ask(2000, 4096, 1, (16385, 16385, REFUSED), 50)
    assert ask_of(pod(main(cores=51)), SIZE, KINDS) == Ask(2000, 4096, 1, (16384, 16384, REFUSED), 51)


@pytest.mark.parametrize(
    ("selector", "refused"),
    [
        (GpuSelector(types=("tesla",)), [False, True, False]),
        (GpuSelector(not_types=("TESLA",)), [True, False, True]),
        (GpuSelector(types=("tesla",), not_types=("t4",)), [False, True, True]),
    ],
)
def test_kinds_that_the_selector_does_not_accept_are_refused(selector: GpuSelector, refused: list[bool]) -> None:
    ask = ask_of(pod(selector=selector), SIZE, KINDS)
    assert ask is not None
    assert [amount == REFUSED for amount in ask.gpu_memory] == refused


@pytest.mark.parametrize(
    "request_",
    [
        pod(main(), main(container="other")),
        pod(selector=GpuSelector(uuids=("GPU-0",))),
        pod(selector=GpuSelector(not_uuids=("GPU-0",))),
        pod(selector=GpuSelector(modes=(Mode.MIG,))),
        pod(main(count=MAX_GPUS + 1)),
    ],
)
def test_other_requests_cannot_be_expressed(request_: PodRequest) -> None:
    assert ask_of(request_, SIZE, KINDS) is None


def test_as_many_gpus_as_a_node_may_have_can_be_asked_for() -> None:
    ask = ask_of(pod(main(count=MAX_GPUS)), SIZE, KINDS)
    assert ask is not None and ask.gpus == MAX_GPUS
