"""examples/compute-limit.yaml: a limit above the share of compute reaches the grant and the container."""

from typing import Any

from tests.scenarios.examples import apply, grant_of, running, smi
from tests.scenarios.labs import Lab


def test_a_limit_above_the_share_of_compute(lab: Lab) -> None:
    apply(lab, "compute-limit")
    running(lab, "compute-limit")
    grant: dict[str, Any] = grant_of(lab, "compute-limit")
    (container,) = grant["containers"]
    assert (container["shares"][0]["cores"], container["shares"][0]["mostCores"]) == (20, 60)
    assert "0MiB /  4000MiB" in smi(lab, "compute-limit")
