"""The commands that a page offers: words that a shell takes as they are meant, whatever names there are."""

import shlex
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.operations.dashboard.commands import commands_for_gpu, commands_for_pod
from lamina.operations.dashboard.document import PodCard
from tests.operations.dashboard.pages import gpu, node, running


def texts(card: PodCard) -> list[str]:
    return [each.text for each in commands_for_pod(card)]


def test_a_running_pod() -> None:
    assert texts(running("web")) == [
        "lamina why -n team web",
        "kubectl describe pod -n team web",
        "kubectl logs -n team --all-containers --tail=100 web",
        "lamina resize -n team --container=main --memory=4000 --cores=30 web",
    ]


def test_a_replica_is_resized_by_its_workload() -> None:
    card = msgspec.structs.replace(running("web-x"), workload="Deployment/web")
    assert texts(card)[-1].endswith(" deployment/web")
    assert texts(msgspec.structs.replace(card, workload="RayCluster/web"))[-1].endswith(" web-x")


@pytest.mark.parametrize(
    ("fields", "first", "lacking"),
    [
        ({"state": "pending"}, "lamina why -n team p", "resize"),
        ({"state": "refused", "name": "deployment/p"}, "lamina why -n team deployment/p", "logs"),
        ({"state": "deleted"}, "lamina doctor", "logs"),
    ],
)
def test_pods_that_do_not_run(fields: dict[str, Any], first: str, lacking: str) -> None:
    found = texts(PodCard(**{"namespace": "team", "name": "p"} | fields))
    assert found[0] == first and not any(lacking in text for text in found)


@pytest.mark.parametrize(("cordoned", "verb"), [(False, "cordon"), (True, "uncordon")])
def test_a_gpu(cordoned: bool, verb: str) -> None:
    card = gpu("n", 3, cordoned=cordoned)
    assert [each.text for each in commands_for_gpu(node("n", card), card)] == [
        "lamina gpus --node=n",
        f"lamina {verb} gpu n 3",
        "kubectl describe node n",
    ]


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_shell_takes_every_name_as_one_word(namespace: str, name: str) -> None:
    card = msgspec.structs.replace(running(name), namespace=namespace)
    for text in texts(card):
        assert namespace in shlex.split(text)
        assert name in shlex.split(text)
