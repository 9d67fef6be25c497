"""Each example in a lab that its own first lines start, with the commands that they name, in their order.

A line `#   COMMAND` is a command. `lamina lab up` names the lab, which is a default one without it; what prepares the
cluster is run before the manifest is applied, and what only looks is run after it. Examples with the same lab share it.
"""

import contextlib
import itertools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from tests.scenarios.conftest import labs_of_tests
from tests.scenarios.examples import EXAMPLES
from tests.scenarios.labs import Lab
from tests.waiting import wait_until

SMI = "kubectl exec {} -- nvidia-smi"
LISTED = "kubectl exec {} -- nvidia-smi -L"
GRANTS = "kubectl get grants -o yaml"
PREPARES = ("lamina lab up", "lamina mig apply", "kubectl apply", "kubectl label")
ELSEWHERE = {
    "kueue/kueue-config": "Kueue's own configuration",
    "kueue/queues": "needs Kueue, which no lab has",
    "kueue/jobs": "needs Kueue, which no lab has",
    "autoscaling/hpa": "needs an adapter of metrics; tests/scenarios/test_prometheus.py asks its query",
    "autoscaling/prometheus-adapter": "values of another chart",
    "simulation/cluster": "a dump, which no cluster gets",
}


@dataclass(frozen=True)
class Seen:
    """What the first lines of an example promise: pods by phase, devices of node-0, and texts in answers."""

    pods: dict[str, int] = field(default_factory=dict)
    devices: dict[str, str] = field(default_factory=dict)
    answers: tuple[tuple[str, str], ...] = ()


def shows(pods: dict[str, int], *answers: tuple[str, str]) -> Seen:
    return Seen(pods=pods, answers=answers)


ONE = {"Running": 1}
SEEN = {
    "memory-and-compute": shows(
        {"Pending": 4, "Running": 6},
        ("lamina pods", "needs 10000 MiB"),
        (SMI.format("deploy/memory-and-compute"), "0MiB / 10000MiB"),
    ),
    "compute-limit": shows(
        ONE,
        (GRANTS, "cores: 20"),
        (GRANTS, "mostCores: 60"),
        (SMI.format("compute-limit"), "/  4000MiB"),
    ),
    "memory-limit": shows(
        {"Running": 2},
        *[(SMI.format(pod), "/ 30000MiB") for pod in ("memory-limit", "memory-limit-neighbor")],
        (GRANTS, "memoryMiB: 12000"),
        (GRANTS, "mostMemoryMiB: 30000"),
    ),
    "resize": shows(ONE, (SMI.format("resize"), "/  9000MiB")),
    "resize-deployment": shows(
        {"Running": 2},
        (SMI.format("deploy/resize-deployment"), "/  3000MiB"),
        ("kubectl get deployment resize-deployment -o yaml", 'nvidia.com/gpumem: "3000"'),
    ),
    "idle-shares": shows({"Running": 3}, ("lamina advise idle --hours 0", "idle-kept")),
    "memory-percentage": shows(ONE, (SMI.format("memory-percentage"), "/  8192MiB")),
    "whole-gpu": shows(ONE, (SMI.format("whole-gpu"), "/ 32768MiB")),
    "several-gpus": shows(ONE, (LISTED.format("several-gpus"), "GPU 1:")),
    "init-and-sidecar": shows(
        ONE,
        ("kubectl logs init-and-sidecar -c prepare", "/  6000MiB"),
        ("kubectl exec init-and-sidecar -c train -- nvidia-smi", "/  2000MiB"),
        ("kubectl exec init-and-sidecar -c watch -- nvidia-smi", "/  1000MiB"),
        ("lamina pods", "6000 MiB"),
    ),
    "job": shows({"Succeeded": 1}),
    "too-large": shows(
        {"Pending": 1},
        ("lamina why too-large", "needs 900000 MiB"),
        ("lamina why too-large", "32768 MiB"),
        ("kubectl describe pod too-large", "900000 MiB"),
    ),
    "volcano": shows(ONE, (SMI.format("volcano-vgpu"), "/  3000MiB")),
    "cce": shows(ONE, (SMI.format("cce-split"), "/  5120MiB"), (LISTED.format("cce-split"), "GPU 1:")),
    "cce-fraction": shows(
        {"Running": 3},
        (SMI.format("cce-fraction"), "/  3276MiB"),
        (SMI.format("deploy/cce-fraction"), "/  8192MiB"),
    ),
    "kai-fraction": shows(
        {"Running": 3},
        (SMI.format("kai-fraction"), "/ 16384MiB"),
        ("kubectl exec kai-memory -c train -- nvidia-smi", "/  2000MiB"),
        ("kubectl exec kai-by-container -c side -- nvidia-smi", "/  1024MiB"),
    ),
    "choose-gpu": shows(ONE, (LISTED.format("choose-gpu"), "V100")),
    "placement-policy": shows(ONE),
    "topology": shows(ONE, (LISTED.format("topology"), "GPU 1:")),
    "priority": shows(ONE, (GRANTS, "priority: 1")),
    "latency-class": shows({"Running": 2}, (GRANTS, "priority: 0"), (SMI.format("latency-class"), "/  8000MiB")),
    "quota": shows({"Pending": 1, "Running": 3}, ("lamina quotas", "30000")),
    "preemption/low": shows({"Running": 6}),
    "preemption/high": shows({"Pending": 1, "Running": 6}),
    "gang/definition": Seen(),
    "gang/two-groups": shows({"Pending": 2, "Running": 2}),
    "gang/indexed-jobs": shows({"Pending": 2, "Running": 2}, ("lamina pods", "needs 20000 MiB")),
    "nvidia/time-slicing": Seen(devices={"nvidia.com/gpu": "8"}),
    "nvidia/counting": shows({"Pending": 1, "Running": 8}),
    "nvidia/mps": Seen(devices={"nvidia.com/gpu.shared": "20"}),
    "nvidia/mps-pods": shows({"Running": 3}),
    "nvidia/mps-users": shows({"Running": 2}),
    "mps-shares": shows({"Running": 2}, (SMI.format("large"), "/ 20000MiB"), (SMI.format("small"), "/  8000MiB")),
    "mps-shares-volcano": shows(ONE, (SMI.format("mps-volcano"), "/  3000MiB")),
    "kai-sm-sharing": shows(ONE, (SMI.format("kai-sm-sharing"), "/ 20480MiB")),
    "nvidia/mig-replicas": Seen(devices={"nvidia.com/mig-3g.20gb": "8"}),
    "mig": shows({"Succeeded": 1}, ("kubectl logs mig", "MIG 3g.20gb")),
    "mig-single": Seen({"Succeeded": 1}, {"nvidia.com/gpu": "14"}, (("kubectl logs mig-single", "MIG 1g.5gb"),)),
    "mig-on-demand": shows(ONE, (LISTED.format("mig-on-demand"), "MIG 2g.10gb")),
    "mig-on-demand-volcano": shows(ONE, (LISTED.format("mig-on-demand-volcano"), "MIG 1g.5gb")),
    "dra/share": shows(
        ONE, *[(f"kubectl exec shared-claim -c {c} -- nvidia-smi", "/  4096MiB") for c in ("one", "two")]
    ),
    "dra/neighbor": shows({"Running": 2}, (SMI.format("neighbor"), "/ 20480MiB")),
    "dra/whole": shows(ONE, (SMI.format("whole-claim"), "/ 32768MiB")),
    "dra/taint-rule": Seen({}),
    "dra/several": shows(
        ONE,
        ("kubectl exec several-shares -c both -- nvidia-smi", "/  8192MiB"),
        ("kubectl exec several-shares -c one -- nvidia-smi", "/  4096MiB"),
    ),
    "dra/limits": shows(ONE, (SMI.format("limited-claim"), "/ 24576MiB")),
    "dra/latency-class": shows(ONE, (SMI.format("latency-claim"), "/  8192MiB")),
    "dra/mps": shows(ONE, ("lamina pods", "mps-claim")),
    "dra/gpu-by-count": shows(ONE, (LISTED.format("gpu-by-count"), "GPU 0:")),
    "dra/mig-by-profile": shows(ONE, (LISTED.format("mig-by-profile"), "MIG 1g.5gb")),
    "dra/by-claim": shows(ONE, (SMI.format("by-claim"), "/  4000MiB")),
    "dra/mig-on-demand": shows(ONE, ("kubectl exec mig-on-demand-claim -c two -- nvidia-smi -L", "MIG 3g.20gb")),
    "dra/mig-mps": shows(ONE, ("kubectl exec mig-mps-claim -c two -- nvidia-smi -L", "MIG 1g.5gb")),
}


class LabOfExamples(NamedTuple):
    """The options of a lab, and the example that has it to itself because it changes nodes, if one does."""

    options: str
    only_for: str


def first_lines(name: str) -> list[str]:
    lines = (EXAMPLES / f"{name}.yaml").read_text().splitlines()
    return list(itertools.takewhile(lambda line: line.startswith("#"), lines))


def commands(name: str) -> list[str]:
    """The commands of the first lines; two spaces end a command, and words about it follow."""
    found = (re.match(r"#   ((?:lamina|kubectl) .*?)(?:  .*)?$", line) for line in first_lines(name))
    return [each[1] for each in found if each]


def lab_options(name: str) -> str:
    return next((c.removeprefix("lamina lab up").strip() for c in commands(name) if c.startswith("lamina lab up")), "")


def preceding(name: str) -> str | None:
    """The example after which this one is to be applied."""
    found = re.search(r"(?:[Aa]fter|With) ([\w-]+)\.yaml", " ".join(first_lines(name)))
    return str((EXAMPLES / f"{name}.yaml").with_name(found[1]).relative_to(EXAMPLES)) if found else None


def manifests() -> list[str]:
    paths = (path for path in EXAMPLES.rglob("*.yaml") if not path.name.startswith("lab-"))
    names = (str(path.relative_to(EXAMPLES).with_suffix("")) for path in paths)
    return sorted(name for name in names if not name.startswith("configuration/") and name not in ELSEWHERE)


def chains() -> Iterator[tuple[LabOfExamples, tuple[str, ...]]]:
    """The labs, and the examples that are applied to each in turn. Equal labs are one object: by that, pytest knows."""
    labs: dict[LabOfExamples, LabOfExamples] = {}
    before = {preceding(name) for name in manifests()}
    for name in manifests():
        if name not in before:
            chain = tuple(filter(None, (preceding(name), name)))
            lab = LabOfExamples(lab_options(chain[0]), changes_nodes(chain))
            yield labs.setdefault(lab, lab), chain


def changes_nodes(chain: tuple[str, ...]) -> str:
    changing = ("kubectl label", "lamina mig")
    return next((name for name in chain for command in commands(name) if command.startswith(changing)), "")


@pytest.fixture(scope="module")
def started(request: pytest.FixtureRequest) -> Iterator[Lab]:
    with contextlib.chdir(EXAMPLES.parent), labs_of_tests() as start:
        yield start("written", *shlex.split(request.param.options))


def devices(lab: Lab) -> dict[str, str]:
    """What node-0 offers; kubelet keeps the names of resources that are no longer offered, with 0."""
    status: dict[str, dict[str, str]] = lab.read(f"/api/v1/nodes/{lab.node}")["status"]
    return {name: n for name, n in status["allocatable"].items() if name.startswith("nvidia.com/") and n != "0"}


@pytest.fixture
def lab(started: Lab) -> Iterator[Lab]:
    yield started
    started.delete_workloads()


def run(lab: Lab, command: str) -> str:
    program, *arguments = shlex.split(command)
    if program == "kubectl":
        return lab.kubectl(*arguments)
    result = lab.lamina(*arguments)
    assert result.returncode == 0 or not result.stderr, f"{command}: {result.stderr}"  # 1 without it is an answer
    return result.stdout


def apply_as_written(lab: Lab, name: str) -> None:
    applied = f"kubectl apply -f examples/{name}.yaml"
    before = [command for command in commands(name) if command.startswith(PREPARES)]
    for command in before if applied in before else [*before, applied]:
        if not command.startswith("lamina lab up"):
            run(lab, command)
            if not command.startswith("kubectl apply"):
                offers(lab, SEEN[name].devices)
    offers(lab, SEEN[name].devices)


def offers(lab: Lab, expected: dict[str, str]) -> None:
    wait_until(lambda: expected.items() <= devices(lab).items(), lambda: f"{devices(lab)}, expected {expected}")


def check(lab: Lab, name: str) -> None:
    seen = SEEN[name]
    lab.settled("", seen.pods)
    for command in commands(name):
        if not command.startswith(PREPARES):
            run(lab, command)
    for command, text in seen.answers:
        wait_until(lambda: text in run(lab, command), lambda: f"{command}: {run(lab, command)}")  # noqa: B023


@pytest.mark.parametrize(
    ("started", "chain"), [pytest.param(lab, chain, id=chain[-1]) for lab, chain in chains()], indirect=["started"]
)
def test_an_example_does_what_its_first_lines_say(lab: Lab, chain: tuple[str, ...]) -> None:
    try:
        for name in chain:
            apply_as_written(lab, name)
            check(lab, name)
    finally:
        for name in reversed(chain):
            lab.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", str(EXAMPLES / f"{name}.yaml"))


def test_each_example_has_an_expectation() -> None:
    assert sorted(SEEN) == manifests()


def test_the_list_of_examples_names_the_labs_of_first_lines() -> None:
    rows = re.findall(r"^\| `(\S+)\.yaml` \|.*\| (.*)\|$", (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    listed, above = {}, ""
    for name, cell in rows:
        above = above if cell.strip() == "as above" else cell.strip(" `")
        listed[name] = above
    assert {name: listed[name] for name in manifests()} == {name: lab_options(name) for name in manifests()}
