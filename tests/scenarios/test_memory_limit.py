"""examples/memory-limit.yaml: a pod borrows memory, and its neighbor still gets what is guaranteed to it."""

import json
from typing import Any

from tests.scenarios.examples import apply, grant_of, running
from tests.scenarios.labs import Lab
from tests.scenarios.memory_lending import BORROWER, NEIGHBOR, holding, used
from tests.waiting import wait_until


def metric(lab: Lab, name: str, pod: str) -> float:
    line = next(line for line in lab.metrics(lab.node).splitlines() if line.startswith(name) and f'pod="{pod}"' in line)
    return float(line.rsplit(" ", 1)[1]) / (1 << 20)


def test_memory_beyond_the_request_is_lent_and_returned(lab: Lab) -> None:
    apply(lab, "memory-limit")
    running(lab, BORROWER)
    running(lab, NEIGHBOR)
    grants: list[Any] = [grant_of(lab, pod) for pod in (BORROWER, NEIGHBOR)]
    shares = [grant["containers"][0]["shares"][0] for grant in grants]
    assert [(share["memoryMiB"], share["mostMemoryMiB"]) for share in shares] == [(12000, 30000)] * 2
    assert shares[0]["gpu"] == shares[1]["gpu"]
    with holding(lab, BORROWER, 25000):
        assert metric(lab, "lamina_container_memory_limit_bytes", BORROWER) == 30000
        assert metric(lab, "lamina_container_memory_request_bytes", BORROWER) == 12000
        assert metric(lab, "lamina_container_memory_borrowed_bytes", BORROWER) > 13000
        assert metric(lab, "lamina_container_memory_hosted_bytes", BORROWER) == 0
        lent = next(row for row in json.loads(lab.lamina("gpus", "-o", "json").stdout) if row["pods"])
        assert (lent["memoryGrantedMib"], lent["memoryLimitMib"]) == (24000, 60000)
        assert lent["memoryBorrowedMib"] > 13000
        with holding(lab, NEIGHBOR, 11000):
            wait_until(lambda: metric(lab, "lamina_container_memory_hosted_bytes", BORROWER) > 3000)
            assert metric(lab, "lamina_container_memory_borrowed_bytes", NEIGHBOR) == 0
            refused = lab.kubectl(
                "exec", BORROWER, "--", "gpu-load", "--memory-mib", "40", "--seconds", "1", check=False
            )
            assert "out of memory" in refused
            assert used(lab, BORROWER) >= 25000
        lab.kubectl("delete", "pod", NEIGHBOR, "--grace-period=1")
        wait_until(lambda: metric(lab, "lamina_container_memory_hosted_bytes", BORROWER) == 0)
