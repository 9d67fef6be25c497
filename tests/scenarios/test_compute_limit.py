"""Limits of compute reach the grant and the container: examples/compute-limit.yaml, and HAMi's variable."""

import json
from typing import Any

import yaml

from tests.scenarios.examples import EXAMPLES, apply, grant_of, running, smi
from tests.scenarios.labs import Lab


def test_a_limit_above_the_share_of_compute(lab: Lab) -> None:
    apply(lab, "compute-limit")
    running(lab, "compute-limit")
    grant: dict[str, Any] = grant_of(lab, "compute-limit")
    (container,) = grant["containers"]
    assert (container["shares"][0]["cores"], container["shares"][0]["mostCores"]) == (20, 60)
    assert "0MiB /  4000MiB" in smi(lab, "compute-limit")


def test_hamis_variable_caps_a_container_at_its_share(lab: Lab) -> None:
    manifest = yaml.safe_load((EXAMPLES / "compute-limit.yaml").read_text())
    manifest["metadata"] = {"name": "forced", "namespace": "default"}
    manifest["spec"]["containers"][0]["env"] = [{"name": "GPU_CORE_UTILIZATION_POLICY", "value": "force"}]
    lab.apply(json.dumps(manifest))
    running(lab, "forced")
    grant: dict[str, Any] = grant_of(lab, "forced")
    (container,) = grant["containers"]
    assert (container["shares"][0]["cores"], container["shares"][0]["mostCores"]) == (20, 20)
