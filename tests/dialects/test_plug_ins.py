"""A dialect is a plug-in: one that is registered works everywhere, and no product code knows a dialect by its name."""

import ast
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from lamina.admission.webhook_configuration import match_expression
from lamina.agent.compat.node_watch import _trim
from lamina.agent.compat.reconciler import CompatMetadata, desired_amounts, desired_metadata, metadata_patch
from lamina.agent.inventory.tickets import ticket_kinds
from lamina.agent.metrics.families import families
from lamina.agent.state.observed import ObservedNode
from lamina.configuration import DEFAULT, Config
from lamina.core.gpu_facts import GpuReading
from lamina.core.gpus import Gpu, Inventory
from lamina.dialects import dialect_named, explain_missing_defaults, parse, registry
from lamina.dialects.metadata import NodeFacts
from lamina.dialects.registry import label_prefixes
from lamina.dialects.samples import GpuSample
from lamina.errors import BadInput
from lamina.install.scheduler_config import ExtenderAccess, extender
from lamina.operations.simulate.dump import gpus_of
from lamina.ports.kube import GRANTS, PODS, Object
from lamina.ports.kube.fake import FakeKube
from lamina.ports.nvml.fake import fake_gpus
from lamina.ports.set_aside import SetAside
from tests.controller.cluster import running
from tests.controller.reviews import review
from tests.dialects.pods import container, pod
from tests.worlds.objects import gpus

log = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[2]
COUNT, MEMORY = "toy.example/gpu", "toy.example/gib"


def admitted(manifest: Object, config: Config) -> Object:
    verdict = review(manifest, config)
    assert verdict.allowed, verdict.message
    patched: Object = jsonpatch.apply_patch(manifest, list(verdict.patch))
    return patched


def test_a_registered_dialect_is_parsed_and_refused_as_the_others_are(toy_config: Config) -> None:
    request = parse(pod(container(**{MEMORY: 4}), annotations={"toy.example/use-gpu": "GPU-1"}), toy_config)
    assert request is not None and request.dialect == "toy" and request.selector.uuids == ("GPU-1",)
    assert (request.containers[0].count, request.containers[0].memory_mib) == (1, 4096)
    for limits, annotations, sentence in (
        ({MEMORY: 0}, {}, 'container "main": toy.example/gib must be an integer from 1 to 1024, got 0'),
        ({"toy.example/gibs": 1}, {}, "unknown resource toy.example/gibs; did you mean toy.example/gib?"),
        ({COUNT: 1, "nvidia.com/gpu": 1}, {}, "of the toy dialect cannot be combined with nvidia.com/gpu"),
        ({COUNT: 1}, {"toy.example/use-gpus": "x"}, "unknown annotation toy.example/use-gpus"),
    ):
        with pytest.raises(BadInput, match=sentence):
            parse(pod(container(**limits), annotations=annotations), toy_config)


def test_admission_fills_in_its_defaults(toy_config: Config) -> None:
    manifest = pod(container(**{MEMORY: 4}))
    request = parse(manifest, toy_config)
    assert request is not None
    assert "toy.example/gpu is missing" in explain_missing_defaults(manifest, request, toy_config)
    after = admitted(manifest, toy_config)
    assert after["spec"]["containers"][0]["resources"]["limits"] == {MEMORY: 4, COUNT: "1"}
    assert (after["spec"]["schedulerName"], after["spec"]["priorityClassName"]) == ("lamina-scheduler", "toys")
    assert parse(after, toy_config) == request
    assert explain_missing_defaults(after, request, toy_config) == ""
    assert admitted(pod(container(**{"toy.example/gibibytes": 4})), toy_config) == after


def test_annotations_of_a_registered_dialect_request_gpus_under_the_schedulers_that_are_served(
    toy_config: Config,
) -> None:
    asked = {"annotations": {"toy.example/one-gpu-for": "main"}}
    manifest = pod(container(), schedulerName="toy-scheduler", **asked)
    request = parse(manifest, toy_config)
    assert request is not None and [each.container for each in request.containers] == ["main"]
    after = admitted(manifest, toy_config)
    assert after["spec"]["containers"][0]["resources"]["limits"] == {COUNT: "1"}
    assert parse(after, toy_config) == request
    assert "name.startsWith('toy.example/one-gpu-for')" in match_expression(toy_config)
    for scheduler in ("default-scheduler", "theirs"):
        assert parse(pod(container(), schedulerName=scheduler, **asked), toy_config) is None


def test_webhook_and_scheduler_are_configured_for_its_names(toy_config: Config) -> None:
    assert "name.startsWith('toy.example/')" in match_expression(toy_config)
    managed = extender(toy_config, access=ExtenderAccess("http://x", ""), weight=1)["managedResources"]
    assert {"name": COUNT, "ignoredByScheduler": False} in managed
    assert {"name": MEMORY, "ignoredByScheduler": True} in managed


async def test_the_controller_places_its_pods_and_writes_its_annotations_and_metrics(
    toy_config: Config, tmp_path: Path
) -> None:
    manifest = admitted(pod(container(**{COUNT: 2, MEMORY: 4}), priorityClassName="toys"), toy_config)
    manifest["metadata"] |= {"name": "toy", "namespace": "default"}
    async with running(FakeKube(), tmp_path, ("node-0", gpus(2)), ("node-1", gpus(1, prefix="T"))) as cluster:
        created = await cluster.make(manifest)
        found = await cluster.scheduler.filter(created, "node-0", "node-1")
        assert found["nodenames"] == ["node-0"]
        assert await cluster.scheduler.bind(created, "node-0") == ""
        (grant,) = (await cluster.kube.list(GRANTS)).items
        assert grant["spec"]["dialect"] == "toy"
        metadata = (await cluster.kube.get(PODS, "toy", namespace="default"))["metadata"]
        assert metadata["annotations"]["toy.example/placed"].split(",") == ["GPU-0", "GPU-1"]
        assert metadata["labels"] == {"toy.example/node": "node-0"}
        async with cluster.session.get(f"{cluster.urls['extenderHttp']}/metrics") as response:
            assert 'toy_granted_gib{pod="toy"} 8.0' in (await response.text()).splitlines()


def test_the_agent_offers_its_tickets_and_writes_its_annotations_and_metrics(toy_config: Config) -> None:
    (kind,) = [kind for kind in ticket_kinds(toy_config) if kind.resource == COUNT]
    assert kind.prefix == "toy"
    one = Gpu(uuid="GPU-0", index=0, model="T4", memory_mib=16384, capacity_mib=16384)
    inventory = Inventory(node="n", gpus=(one,))
    assert desired_amounts(inventory, toy_config)[MEMORY] == 16
    facts = tuple(fake_gpus(1))
    offered = Inventory(node="n", gpus=(Gpu(uuid=facts[0].uuid, index=0, model="T4", memory_mib=1, capacity_mib=1),))
    desired = desired_metadata(NodeFacts(inventory=offered, gpus=facts), toy_config)
    assert desired.annotations["toy.example/devices"] == facts[0].uuid
    assert (desired.labels["toy.example/count"], "toy.example/changed" in desired.timestamps) == ("1", True)
    sample = GpuSample(
        node="n", driver="1", uuid="GPU-0", index=0, model="T4", memory_bytes=9, reading=GpuReading(used_bytes=7)
    )
    (metric,) = [
        family for family in families(toy_config, [sample], [], [], SetAside(log)) if family.name == "toy_used_bytes"
    ]
    assert [(one.labels, one.value) for one in metric.samples] == [({"uuid": "GPU-0"}, 7)]


def test_what_it_no_longer_wants_on_a_node_is_removed_and_what_others_write_is_left(toy_config: Config) -> None:
    labels, annotations = {"toy.example/count": "1", "toy.example/changed": "7"}, {"toy.example/devices": "GPU-x"}
    stale = ObservedNode(uid="u", labels=labels | {"toy.example/own": "x"}, annotations=annotations)
    patch = metadata_patch(CompatMetadata(), stale, labelling=True, now=0)
    removed = {"labels": dict.fromkeys(labels), "annotations": dict.fromkeys(annotations)}
    assert patch == {"metadata": {"uid": "u", **removed}}
    listed = ObservedNode(uid="u", labels=labels, annotations={"toy.example/labels-of-others": "toy.example/count"})
    patch = metadata_patch(CompatMetadata(), listed, labelling=True, now=0)
    assert patch == {"metadata": {"uid": "u", "labels": {"toy.example/changed": None}}}


def test_the_agents_watch_keeps_the_annotations_that_it_reads(toy_config: Config) -> None:
    read = {"toy.example/labels-of-others": "x", "toy.example/devices": "GPU-x"}
    node: Object = {"metadata": {"name": "n", "uid": "u", "annotations": read | {"other": "y"}}}
    assert _trim(node)["metadata"]["annotations"] == read


def test_an_installation_has_to_let_agents_write_its_labels(toy_config: Config) -> None:
    """tests/install/test_names.py compares these prefixes with the admission policy of the chart."""
    assert label_prefixes() == ("nvidia.com/", "toy.example/")


def test_the_simulator_reads_its_nodes(toy_config: Config) -> None:
    node = {"metadata": {"name": "n", "annotations": {"toy.example/devices": "a,b"}}, "status": {}}
    assert [(gpu.uuid, gpu.memory_mib) for gpu in gpus_of(node)] == [("a", 15360), ("b", 15360)]


def test_without_registration_its_names_mean_nothing() -> None:
    assert parse(pod(container(**{COUNT: 1})), DEFAULT) is None
    assert dialect_named("toy") is None


ELSEWHERE = {
    "src/lamina/configuration/importers/": "configurations that were written for other systems",
    "src/lamina/dialects/cce/dialect.py": "the scheduler that CCE gives its pods",
    "src/lamina/operations/doctor/other_systems.py": "parts of the names of other systems' pods and webhooks",
}


def test_no_code_outside_a_dialects_folder_knows_its_name() -> None:
    names = {dialect.name for dialect in registry.DIALECTS}
    found = []
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "lab/src").rglob("*.py")]:
        place = path.relative_to(ROOT).as_posix()
        if place.startswith(tuple(ELSEWHERE)):
            continue
        own = {name for name in names if place.startswith(f"src/lamina/dialects/{name}/")}
        found += [f"{place}:{line}: {name}" for name, line in _literals(path.read_text()) if name in names - own]
    assert found == []


ONLY_IN_DIALECTS = re.compile(r"nvidia\.com|hami|volcano|4pd|4paradigm|\bcce\b|\bgfd\b|feature.discovery|\bkai\b", re.I)


@pytest.mark.parametrize("package", ["agent/compat", "agent/metrics", "controller/compatibility.py"])
def test_code_that_writes_for_other_systems_names_none_of_them(package: str) -> None:
    """Not in a comment either: what is true of one system only belongs to its dialect."""
    place = ROOT / "src" / "lamina" / package
    files = [place] if place.is_file() else sorted(place.glob("*.py"))
    assert files
    assert [(path.name, found[0]) for path in files if (found := ONLY_IN_DIALECTS.search(path.read_text()))] == []


def _literals(text: str) -> Iterator[tuple[Any, int]]:
    """The constants of a file with their lines, without parts of f-strings."""
    tree = ast.parse(text)
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in parts and isinstance(node.value, str):
            yield node.value, node.lineno
