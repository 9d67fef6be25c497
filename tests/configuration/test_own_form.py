"""Lamina's own form of the configuration: strict, documented, and what imported ones are converted to."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
import yaml

from lamina.configuration import DEFAULT, load
from lamina.configuration.form import form
from lamina.configuration.text import to_yaml
from lamina.core.evictions import Borrowers, GrantlessPods, IdleShares, PreemptionRules
from lamina.core.gpus import Mode
from lamina.core.grants import ComputePolicy
from lamina.core.mig_rules import MigRule
from lamina.core.prices import GpuPrice, Pricing
from lamina.dialects.hami.section import HamiSection
from lamina.dialects.volcano.section import VolcanoSection
from lamina.errors import BadInput

HEADER = "apiVersion: lamina.dev/v1alpha1\nkind: Configuration\n"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "configuration"


def own(text: str) -> str:
    return HEADER + text


def refusal(text: str) -> str:
    with pytest.raises(BadInput) as refused:
        load(text, "configuration")
    sentence = str(refused.value)
    assert sentence.startswith("configuration") and "\n" not in sentence
    return sentence.removeprefix("configuration").lstrip(":, ")


@pytest.mark.parametrize("text", ["", "sharing: {}", "sharing:\nnodes:\n", "enabled: true"])
def test_what_says_nothing_is_the_default(text: str) -> None:
    assert load(own(text), "c") == DEFAULT


EVERYTHING = own("""
enabled: false
nodes:
  selector: {gpu: "on"}
  overrides:
    - name: node-1
      slots: 4
      memoryScaling: 2.0
      computeScaling: 1.5
      unreportedMemoryMiB: 1024
      modes: [mig]
      logLevel: 4
      migStrategy: mixed
      timeSlice: short
      excludedGpus: {uuids: [GPU-a], indices: [7]}
defragmentation: {movesPerHour: 4}
idleShares: {hours: 8, noticeMinutes: 5, action: evict, namespaces: [lab]}
borrowers: {seconds: 30, noticeSeconds: 20, namespaces: [lab]}
grantlessPods: {seconds: 90, exempt: [kube-system]}
preemption: {delaySeconds: 120, minimumRuntimeMinutes: 30}
pricing:
  currency: EUR
  gpus: [{model: A100, perHour: 2.5}]
  memoryPercent: 60
  labels: [team, team]
sharing:
  slots: 5
  memoryScaling: 1.25
  computeScaling: 2.0
  unreportedMemoryMiB: 2048
  modes: [quota, mig]
  computePolicy: cap
  lowPriorityPercent: 10
  highPriorityNamespaces: [urgent]
  memoryEnforcer: facade
  logLevel: 2
dialects:
  hami:
    resources: {count: a.io/gpu, memory: a.io/mem, memoryPercentage: a.io/pct, cores: a.io/cores, priority: a.io/prio}
    memoryUnitMiB: 256
    defaults: {count: 2, memoryMiB: 5000, cores: 20}
  volcano:
    resources: {count: b.io/gpu, memory: b.io/mem, memoryPercentage: b.io/pct, cores: b.io/cores}
    memoryUnitMiB: 128
  otherResources: [nvidia.com/x*]
placement: {nodePolicy: spread, gpuPolicy: "binpack,numa"}
schedulers: {served: [mine], assigned: mine}
admission: {hideGpus: true, hidingFailurePolicy: Fail, runtimeClassName: nvidia}
mig:
  strategy: single
  rules:
    - {models: [A30], layouts: [[{profile: 2g.12gb, count: 1}, {profile: 2g.12gb, count: 1}]]}
    - {models: [A100-SXM4-40GB], profiles: [1g.5gb]}
nativeDevices:
  configMap: {name: plugin-config, namespace: gpu}
  default: twice
  fallbacks: [single, empty]
  configs: {twice: {version: v1}}
  migStrategy: mixed
  replicaMemory: equal
  timeSlice: long
health:
  ignoredXids: [63]
  countedXids: [31]
  onlyXids: [79]
  maxRetiredPages: null
  maxSramErrors: 1
  recoverySeconds: 5.0
compatibility: {labels: false, annotations: [hami], resources: [cce], metrics: [dcgm]}
""")


def test_every_field_takes_effect() -> None:
    config = load(EVERYTHING, "c")
    assert not config.enabled and config.nodes.selector == {"gpu": "on"}
    common, single = config.for_node("other"), config.for_node("node-1")
    assert (common.slots, common.memory_scaling, common.compute_scaling) == (5, 1.25, 2.0)
    assert (common.unreported_memory_mib, common.log_level, common.mig_strategy) == (2048, 2, "single")
    assert (common.time_slice, common.modes) == ("long", (Mode.QUOTA, Mode.MIG))
    assert (single.slots, single.memory_scaling, single.compute_scaling) == (4, 2.0, 1.5)
    assert (single.unreported_memory_mib, single.log_level, single.mig_strategy) == (1024, 4, "mixed")
    assert (single.time_slice, single.modes) == ("short", (Mode.MIG,))
    assert [single.offers(uuid, index) for uuid, index in (("GPU-a", 0), ("GPU-b", 7), ("GPU-b", 1))] == [
        False,
        False,
        True,
    ]
    hami, volcano = config.section(HamiSection), config.section(VolcanoSection)
    names = hami.resources
    assert (names.count, names.memory, names.memory_percentage) == ("a.io/gpu", "a.io/mem", "a.io/pct")
    assert (names.cores, names.priority, hami.memory_unit_mib) == ("a.io/cores", "a.io/prio", 256)
    assert (hami.defaults.count, hami.defaults.memory_mib, hami.defaults.cores) == (2, 5000, 20)
    assert (volcano.resources.count, volcano.resources.cores) == ("b.io/gpu", "b.io/cores")
    assert volcano.memory_unit_mib == 128 and config.dialects.other_resources == ("nvidia.com/x*",)
    assert (config.placement.node_policy, config.placement.gpu_policy) == ("spread", "binpack,numa")
    assert (config.sharing.compute_policy, config.sharing.memory_enforcer) == (ComputePolicy.CAP, "facade")
    assert config.sharing.low_priority_percent == 10
    assert config.sharing.high_priority_namespaces == ("urgent",)
    assert (config.schedulers.served, config.schedulers.assigned) == (("mine",), "mine")
    assert config.admission.hide_gpus and config.admission.hiding_failure_policy == "Fail"
    assert config.admission.runtime_class_name == "nvidia"
    assert config.mig_rules == (
        MigRule(models=("A30",), profiles=("2g.12gb",), layouts=((("2g.12gb", 2),),)),
        MigRule(models=("A100-SXM4-40GB",), profiles=("1g.5gb",)),
    )
    native = config.native_devices
    assert (native.config_map.name, native.config_map.namespace, native.default) == ("plugin-config", "gpu", "twice")
    assert (native.fallbacks, native.configs) == (("single", "empty"), {"twice": {"version": "v1"}})
    assert (native.mig_strategy, native.replica_memory) == ("mixed", "equal")
    health = config.health
    assert (health.ignored_xids, health.counted_xids) == ((63,), (31,))
    assert (health.only_xids, health.max_retired_pages, health.max_sram_errors) == ((79,), None, 1)
    assert health.recovery_seconds == 5.0
    found = config.compatibility
    assert config.defragmentation.moves_per_hour == 4
    assert config.borrowers == Borrowers(seconds=30, notice_seconds=20, namespaces=("lab",))
    assert config.grantless_pods == GrantlessPods(seconds=90, exempt=("kube-system",))
    assert config.preemption == PreemptionRules(delay_seconds=120, minimum_runtime_minutes=30)
    assert config.idle_shares == IdleShares(hours=8, notice_minutes=5, action="evict", namespaces=("lab",))
    assert config.pricing == Pricing(
        currency="EUR", gpus=(GpuPrice(model="A100", per_hour=2.5),), memory_percent=60, labels=("team", "team")
    )
    assert (found.labels, found.annotations, found.resources, found.metrics) == (False, ("hami",), ("cce",), ("dcgm",))


def test_the_text_above_leaves_no_field_out() -> None:
    def missing_fields(kind: Any, value: Any, path: str = "") -> list[str]:
        missing = [
            f"{path}{field.encode_name}" for field in msgspec.structs.fields(kind) if field.encode_name not in value
        ]
        for field in msgspec.structs.fields(kind):
            inner = value.get(field.encode_name)
            if isinstance(inner, dict) and isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
                missing += missing_fields(field.type, inner, f"{path}{field.encode_name}.")
        return missing

    assert missing_fields(form().configuration, yaml.safe_load(EVERYTHING)) == []


def test_what_is_written_is_read_as_the_same() -> None:
    written = load(EVERYTHING, "c")
    assert load(to_yaml(written), "c") == written
    assert to_yaml(load("", "c")) == HEADER


def test_all_errors_may_be_ignored() -> None:
    assert load(own("health: {ignoredXids: all}"), "c").health.ignored_xids == "all"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kind: Configuration", "apiVersion and kind must be lamina.dev/v1alpha1 and Configuration, got None and"),
        ("apiVersion: lamina.dev/v1\nkind: Configuration", "apiVersion and kind must be lamina.dev/v1alpha1"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {}", "apiVersion and kind must be lamina.dev/v1alpha1"),
        (own("hami: {}"), "unknown key hami; did you mean dialects.hami?"),
        (own("shareing: {}"), "unknown key shareing; did you mean sharing?"),
        (own("sharing: {slot: 1}"), "unknown key slot in sharing; did you mean slots?"),
        (own("nodes: {overrides: [{name: a, slotts: 1}]}"), "unknown key slotts in nodes.overrides[0]; did you mean"),
        (own("sharing: {slots: 0}"), "sharing.slots must be an integer from 1 to 1000, got 0"),
        (own("sharing: {memoryScaling: 101}"), "sharing.memoryScaling must be a number from 0.01 to 100, got 101"),
        (own("sharing: 3"), "sharing must be a mapping, got 3"),
        (own("sharing: []"), "sharing must be a mapping, got []"),
        (own("nodes: {overrides: {}}"), "nodes.overrides must be a list, got {}"),
        (
            own("sharing: {modes: [whole]}"),
            "sharing.modes must be a list of quota, mps and mig, the preferred mode first, ",
        ),
        (own("sharing: {modes: [mig, mig]}"), "sharing.modes must contain each mode once, got mig twice"),
        (own("nodes: {overrides: [{slots: 1}]}"), "nodes.overrides[0].name is required"),
        (
            own("nodes: {overrides: [{name: a, modes: [mig, mig]}]}"),
            "nodes.overrides[0].modes must contain each mode once, got mig twice",
        ),
        (
            own("nodes: {overrides: [{name: a}, {name: a}]}"),
            "nodes.overrides must have one entry for each node, got two for node a",
        ),
        (
            own("dialects: {hami: {resources: {cores: nvidia.com/gpu}}}"),
            "dialects.hami.resources.count and dialects.hami.resources.cores must be different names, got",
        ),
        (
            own("dialects: {volcano: {resources: {count: nvidia.com/gpu}}}"),
            "dialects.hami.resources.count and dialects.volcano.resources.count must be different names",
        ),
        (
            own("schedulers: {served: []}"),
            "schedulers.served must be a list of scheduler names with at least one entry, got []",
        ),
        (own("mig: {rules: [{models: [A30]}]}"), "mig.rules[0] must have either layouts or profiles"),
        (
            own("mig: {rules: [{models: [A30], profiles: [1g.6gb], layouts: [[]]}]}"),
            "mig.rules[0] must have either layouts or profiles",
        ),
        (own("mig: {rules: [{models: [A30], profiles: [1g.5gb]}]}"), "A30: "),
        (own("nativeDevices: {configs: {a: {version: v2}}}"), "nativeDevices.configs.a: unknown version: v2"),
        (own("health: {ignoredXids: some}"), 'health.ignoredXids must be all or a list of XID numbers, got "some"'),
    ],
)
def test_what_is_wrong_is_refused_in_one_sentence(text: str, sentence: str) -> None:
    assert refusal(text).startswith(sentence)


def documented(kind: type[msgspec.Struct]) -> dict[str, dict[str, Any]]:
    components = msgspec.json.schema_components([kind])[1]
    return {
        f"{name}.{field}": schema
        for name, component in components.items()
        for field, schema in component["properties"].items()
    }


def test_every_field_has_a_meaning_and_every_default_a_reason() -> None:
    fields = documented(form().configuration)
    assert [name for name, schema in fields.items() if not schema.get("description")] == []
    without_reason = [
        name
        for name, schema in fields.items()
        if "x-reason" not in schema and "default" in schema and "$ref" not in schema
    ]
    assert without_reason == []


def test_meanings_and_reasons_are_sentences_that_say_something() -> None:
    for name, schema in documented(form().configuration).items():
        for text in (schema["description"], schema.get("x-reason", "As before.")):
            assert text[0].isupper() and text.endswith("."), f"{name}: {text}"
            assert not text.startswith(("See ", "There is none", "There are none")), f"{name}: {text}"
        assert len(schema["description"].split()) > 3, f"{name}: {schema['description']}"


def test_a_reason_that_refers_to_another_field_refers_to_one_that_exists() -> None:
    def paths(kind: type[msgspec.Struct], path: str = "") -> Iterator[str]:
        for field in msgspec.structs.fields(kind):
            yield f"{path}{field.encode_name}"
            inner = get_args(field.type)[0] if get_args(field.type) else field.type
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                yield from paths(inner, f"{path}{field.encode_name}.")

    known = set(paths(form().configuration))
    for name, schema in documented(form().configuration).items():
        for referred in re.findall(r"`([a-z]\w+\.\w+)`", schema["description"] + schema.get("x-reason", "")):
            assert referred in known or referred in ("flags.migStrategy", "spec.schedulerName"), f"{name}: {referred}"


def test_amounts_have_a_unit() -> None:
    fields = documented(form().configuration)
    amounts = [name for name, schema in fields.items() if schema.get("type") in ("integer", "number")]
    without_unit = {name for name in amounts if "x-unit" not in fields[name]}
    assert without_unit == set()


NOWHERE_ELSE = {
    "gpu-by-claim.yaml",
    "defragmentation.yaml",
    "idle-shares.yaml",
    "borrowers.yaml",
    "preemption.yaml",
    "mig-for-claims.yaml",
    "by-claim.yaml",
    "node-selector.yaml",
    "next-to-hami.yaml",
    "time-slice.yaml",
}
"""Examples of what no other form can say."""


@pytest.mark.parametrize(
    "path",
    sorted(path for path in (EXAMPLES / "v1alpha1").glob("*.yaml") if path.name not in NOWHERE_ELSE),
    ids=lambda path: path.name,
)
def test_an_example_says_the_same_as_the_imported_one(path: Path) -> None:
    imported = (EXAMPLES / path.name).read_text()
    assert load(path.read_text(), path.name) == load(imported, path.name) != DEFAULT


def test_every_imported_example_has_one_in_our_own_form() -> None:
    imported = {path.name for path in EXAMPLES.glob("*.yaml") if "kind: ConfigMap" not in path.read_text()}
    assert imported == {path.name for path in (EXAMPLES / "v1alpha1").glob("*.yaml")} - NOWHERE_ELSE


@pytest.mark.parametrize("name", sorted(NOWHERE_ELSE))
def test_an_example_of_what_no_other_form_can_say(name: str) -> None:
    assert load((EXAMPLES / "v1alpha1" / name).read_text(), name) != DEFAULT
