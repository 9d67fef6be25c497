"""To which workload a pod belongs."""

from typing import Any

import pytest

from lamina.core.workloads import Workload, workload_of


def pod(kind: str = "", name: str = "", **labels: str) -> dict[str, Any]:
    owners = [{"kind": "Node", "name": "n"}, {"kind": kind, "name": name, "controller": True}] if kind else []
    return {"metadata": {"name": "p", "ownerReferences": owners, "labels": labels}}


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (pod(), Workload("Pod", "p")),
        ({"metadata": {"name": "p"}}, Workload("Pod", "p")),
        (pod("StatefulSet", "db"), Workload("StatefulSet", "db")),
        (pod("ReplicaSet", "web-5d9c", **{"pod-template-hash": "5d9c"}), Workload("Deployment", "web")),
        (pod("ReplicaSet", "web-5d9c"), Workload("ReplicaSet", "web-5d9c")),
        (pod("ReplicaSet", "bare", **{"pod-template-hash": "5d9c"}), Workload("ReplicaSet", "bare")),
        (pod("Job", "train-29401234"), Workload("CronJob", "train")),
        (pod("Job", "train-2026"), Workload("Job", "train-2026")),
        (pod("x" * 100, "y" * 300), Workload("x" * 63, "y" * 253)),
    ],
)
def test_a_workload_is_what_people_made(of: dict[str, Any], expected: Workload) -> None:
    assert workload_of(of) == expected
