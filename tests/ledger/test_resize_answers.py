"""What is answered to a request for another size where there is no grant, and how an answer is written."""

import pytest

from lamina.configuration import DEFAULT
from lamina.core.gpus import Inventory, NativeResource
from lamina.ledger.pods import parse_pod
from lamina.ledger.resize_answers import (
    DONE,
    NO_GRANT,
    NOT_PLACED,
    REFUSED,
    WAITING,
    ResizeAnswer,
    no_share,
    read_answer,
    without_grant,
)
from tests.worlds.objects import admitted_pod, gpu_pod

SHARED = Inventory(node="node-0")
NATIVE = Inventory(node="node-0", native_resources=(NativeResource(resource="nvidia.com/gpu", count=1),))


@pytest.mark.parametrize(
    "answer", [ResizeAnswer(DONE), ResizeAnswer(WAITING, "no room"), ResizeAnswer(REFUSED, "a: b")]
)
def test_an_answer_is_read_as_it_was_written_and_for_its_request_only(answer: ResizeAnswer) -> None:
    written = answer.written("main=2000")
    assert read_answer(written, "main=2000") == answer
    assert read_answer(written, "main=200") is None and read_answer(written, "main=20000") is None
    assert read_answer("", "main=2000") is None


@pytest.mark.parametrize(
    ("node", "inventory", "answer"),
    [
        ("", None, ResizeAnswer(WAITING, NOT_PLACED)),
        ("node-0", None, ResizeAnswer(WAITING, NO_GRANT)),
        ("node-0", SHARED, ResizeAnswer(WAITING, NO_GRANT)),
        ("node-0", NATIVE, ResizeAnswer(REFUSED, "kubelet allocates its devices by itself, which cannot be resized")),
    ],
)
def test_a_whole_gpu_waits_for_a_grant_unless_kubelet_allocates_it(
    node: str, inventory: Inventory | None, answer: ResizeAnswer
) -> None:
    pod = admitted_pod(gpu=1)
    pod["spec"]["nodeName"] = node
    assert without_grant(parse_pod(pod, DEFAULT), inventory) == answer


def test_a_container_without_a_share_has_no_size() -> None:
    pod = parse_pod(admitted_pod(gpumem=1000), DEFAULT)
    assert no_share(pod) == no_share(pod, "main") == ""
    assert no_share(pod, "other") == "container other: it requests no share of a GPU"
    assert no_share(parse_pod(gpu_pod(), DEFAULT)) == "it requests no share of a GPU"
