"""promtool accepts the rules, and each alert fires for what it is about and stays silent for what is next to it."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from lamina.install.telemetry.alerts import ALERTS
from lamina.install.telemetry.dashboards import DASHBOARDS
from lamina.install.telemetry.rules import rules_text


class Case(NamedTuple):
    """Series with a value each minute, and the same series where all is well."""

    broken: dict[str, str]
    well: dict[str, str]


GPU, POD = 'node="n", gpu="g", model="m"', 'namespace="t", pod="p", container="c"'
GRANTED, CAPACITY = (f"lamina_gpu_memory_{what}_mebibytes{{{GPU}}}" for what in ("granted", "capacity"))
HEALTHY = f'lamina_gpu_healthy{{{GPU}, reason="XID 79"}}'
REFUSALS = f"lamina_container_memory_refusals_total{{{POD}}}"
READ = 'lamina_gpus_read_timestamp_seconds{node="n"}'
CERTIFICATE = 'lamina_certificate_expiry_timestamp_seconds{certificate="admission"}'
PENDING = 'lamina_pods_pending_longest_seconds{namespace="t", cause="memory"}'
FAILED, BOUND = (f'lamina_decisions_total{{verb="bind", outcome="{outcome}"}}' for outcome in ("failed", "bound"))
ASIDE = 'lamina_objects_set_aside_total{kind="pods"}'
MPS = 'lamina_mps_ready{node="n", gpu="g", state="waiting"}'
SPILLED = f'lamina_container_memory_spilled_bytes{{node="n", gpu="g", {POD}}}'
MEMORY = f"lamina_gpu_memory_bytes{{{GPU}}}"
FIRST, SECOND = 'lamina_leading{pod="a"}', 'lamina_leading{pod="b"}'
CASES = {
    "LaminaNoLeader": Case({FIRST: "1x30 0x90", SECOND: "0x120"}, {FIRST: "1x30 0x90", SECOND: "0x30 1x90"}),
    "LaminaLeaderChanged": Case(
        {'lamina_leader_transitions_total{pod="a"}': "4x115 5x5"}, {'lamina_leader_transitions_total{pod="a"}': "5x120"}
    ),
    "LaminaConfigurationRefused": Case(
        {"lamina_configuration_refused": "0x60 1x60"}, {"lamina_configuration_refused": "1x60 0x60"}
    ),
    "LaminaCertificateExpires": Case({CERTIFICATE: "500000x120"}, {CERTIFICATE: "5000000x120"}),
    "LaminaDecisionsFail": Case({FAILED: "0x115 1x5"}, {FAILED: "7x120", BOUND: "0+1x120"}),
    "LaminaObjectsSetAside": Case({ASIDE: "_x100 1x20"}, {ASIDE: "3x120"}),
    "LaminaPodsPending": Case({PENDING: "0+60x120"}, {PENDING: "600x120"}),
    "LaminaGpuOvercommitted": Case(
        {GRANTED: "3000x120", CAPACITY: "2000x120"}, {GRANTED: "3000x120", CAPACITY: "3000x120"}
    ),
    "LaminaNodeWithoutAgent": Case(
        {CAPACITY: "3000x120", MEMORY: "9x60 stale"}, {CAPACITY: "3000x120", MEMORY: "9x120"}
    ),
    "LaminaAgentStuck": Case({READ: "0+60x60 3600x60"}, {READ: "0+60x120"}),
    "LaminaGpuUnhealthy": Case({HEALTHY: "0x120"}, {HEALTHY: "0x60 stale", HEALTHY.replace("XID 79", ""): "1x120"}),
    "LaminaMpsDaemonNotReady": Case({MPS: "0x120"}, {MPS: "1x120"}),
    "LaminaMemorySpilled": Case({SPILLED: "100x120"}, {SPILLED: "0x120"}),
    "LaminaMemoryRefused": Case({REFUSALS: "0x115 2x5"}, {REFUSALS: "2x120"}),
}


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("no promtool on PATH: install the package prometheus")
    return found


@pytest.fixture
def rules_file(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(rules_text())
    return path


def test_promtool_accepts_the_rules(promtool: str, rules_file: Path) -> None:
    done = subprocess.run([promtool, "check", "rules", str(rules_file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_reads_every_query_of_a_dashboard(promtool: str, tmp_path: Path) -> None:
    queries = [query.expr.replace("$__rate_interval", "5m") for _, _, panels in DASHBOARDS.values()
               for panel in panels for query in panel.queries]  # fmt: skip
    rules = [{"record": f"a:{number}", "expr": query} for number, query in enumerate(queries)]
    path = tmp_path / "queries.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    done = subprocess.run([promtool, "check", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and f"{len(queries)} rules found" in done.stdout, done.stdout + done.stderr


def fired(promtool: str, rules_file: Path, cases: dict[str, dict[str, str]]) -> set[str]:
    """The alerts, of those with series here, that fire after two hours. promtool reports them as unexpected."""
    tests = [
        {
            "name": name,
            "interval": "1m",
            "input_series": [{"series": series, "values": spread(line)} for series, line in several.items()],
            "alert_rule_test": [{"eval_time": "2h", "alertname": name, "exp_alerts": []}],
        }
        for name, several in cases.items()
    ]
    file = rules_file.with_name("tests.yaml")
    file.write_text(yaml.safe_dump({"rule_files": [str(rules_file)], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run([promtool, "test", "rules", str(file)], capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    assert (done.returncode == 0) == ("FAILED" not in output), output
    return set(re.findall(r"alertname:\s*(\w+)", output))


def spread(line: str) -> str:
    """`3x60` is sixty times 3: in promtool's notation the first value counts in addition."""
    return " ".join(re.sub(r"^(\d+)x(\d+)$", lambda found: f"{found[1]}x{int(found[2]) - 1}", part)
                    for part in line.split())  # fmt: skip


def test_every_alert_has_a_case() -> None:
    assert CASES.keys() == {alert.name for alert in ALERTS}


def test_each_alert_fires(promtool: str, rules_file: Path) -> None:
    assert fired(promtool, rules_file, {name: case.broken for name, case in CASES.items()}) == CASES.keys()


def test_none_fires_while_all_is_well(promtool: str, rules_file: Path) -> None:
    assert fired(promtool, rules_file, {name: case.well for name, case in CASES.items()}) == set()
