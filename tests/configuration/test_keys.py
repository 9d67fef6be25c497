"""Every configuration key does what it says: a row each, and a check that no key was left out.

A row is a configuration and something that can be seen to follow from it. The tables of HAMi's keys, of its per-node
list, and of 4paradigm's chart are compared with the fields that the configuration has.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from lamina.configuration import DEFAULT, Config, load
from lamina.configuration.importers import unversioned
from lamina.configuration.importers.hami import Hami, NodeConfig
from lamina.configuration.importers.volcano import Volcano
from lamina.configuration.text import to_yaml
from lamina.core.gpus import Mode
from lamina.core.grants import ComputePolicy
from lamina.core.mig_rules import MigRule
from lamina.core.requests import ContainerRequest
from lamina.dialects import fill_defaults, parse, quota_names
from lamina.dialects.registry import name_index
from lamina.errors import BadInput
from tests.dialects.pods import asking

Look = Callable[[Config], Any]


def first(**asked: Any) -> Callable[[Config], ContainerRequest]:
    def look(config: Config) -> ContainerRequest:
        request = parse(asking(**asked), config)
        assert request is not None
        return request.containers[0]

    return look


def filled(manifest: dict[str, Any]) -> Look:
    return lambda config: {
        change.pointer: change.value for change in fill_defaults(manifest, parse(manifest, config), config)
    }


def volcano_name(field: str) -> Look:
    return lambda config: getattr(name_index(config).names["volcano"], field)


def node(config: Config) -> Any:
    return config.for_node("node-1")


HAMI: dict[str, tuple[Any, Look, Any, Any]] = {
    # key: (another value, what to look at, what the default gives, what the other value gives)
    "resourceCountName": ("a.io/gpu", lambda c: quota_names(c).count, "nvidia.com/gpu", "a.io/gpu"),
    "resourceMemoryName": ("a.io/mem", lambda c: quota_names(c).memory, "nvidia.com/gpumem", "a.io/mem"),
    "resourceMemoryPercentageName": (
        "a.io/pct", lambda c: quota_names(c).memory_percentage, "nvidia.com/gpumem-percentage", "a.io/pct",
    ),
    "resourceCoreName": ("a.io/cores", lambda c: quota_names(c).cores, "nvidia.com/gpucores", "a.io/cores"),
    "resourcePriorityName": ("a.io/prio", lambda c: quota_names(c).priority, "nvidia.com/priority", "a.io/prio"),
    "overwriteEnv": (True, lambda c: c.admission.hide_gpus, False, True),
    "defaultMemory": (5000, lambda c: first(gpu=1)(c).memory_mib, None, 5000),
    "defaultCores": (20, lambda c: first(gpu=1, gpumem=1)(c).cores, 0, 20),
    "defaultGPUNum": (2, lambda c: first(gpumem=1)(c).count, 1, 2),
    "memoryFactor": (256, lambda c: first(gpumem=4)(c).memory_mib, 4, 1024),
    "deviceSplitCount": (5, lambda c: node(c).slots, 10, 5),
    "deviceMemoryScaling": (1.5, lambda c: node(c).capacity_mib(32768), 32768, 49152),
    "deviceCoreScaling": (2, lambda c: node(c).cores_capacity, 100, 200),
    "preConfiguredDeviceMemory": (131072, lambda c: node(c).memory_mib(None), None, 131072),
    "enableNumaTopology": (False, lambda c: c == DEFAULT, True, True),
    "migStrategy": ("mixed", lambda c: node(c).mig_strategy, "none", "mixed"),
    "libCudaLogLevel": ("4", lambda c: node(c).log_level, 1, 4),
    "gpuCorePolicy": ("force", lambda c: c.sharing.compute_policy, ComputePolicy.WEIGHT, ComputePolicy.CAP),
    "disableCoreLimit": (True, lambda c: c.sharing.compute_policy, ComputePolicy.WEIGHT, ComputePolicy.NONE),
    "runtimeClassName": ("nvidia", lambda c: filled(asking(gpu=1))(c).get("/spec/runtimeClassName"), None, "nvidia"),
    "schedulerName": ("mine", lambda c: filled(asking(gpu=1))(c)["/spec/schedulerName"], "hami-scheduler", "mine"),
    "nodeSchedulerPolicy": ("spread", lambda c: parse(asking(gpu=1), c).node_policy, "packing", "spread"),
    "gpuSchedulerPolicy": ("binpack", lambda c: parse(asking(gpu=1), c).gpu_policy, "packing", "binpack"),
    "knownMigGeometries": (
        [{"models": ["A30"], "allowedGeometries": [[{"name": "2g.12gb", "count": 2}]]}],
        lambda c: c.mig_rules,
        (),
        (MigRule(models=("A30",), profiles=("2g.12gb",), layouts=((("2g.12gb", 2),),)),),
    ),
    "migProfileAllowlist": (
        [{"models": ["A30"], "profiles": ["1g.6gb"]}],
        lambda c: c.mig_rules,
        (),
        (MigRule(models=("A30",), profiles=("1g.6gb",)),),
    ),
}  # fmt: skip

NODE: dict[str, tuple[Any, Look, Any, Any]] = {
    "operatingmode": ("mig", lambda c: node(c).modes, (), (Mode.MIG,)),
    "devicesplitcount": (5, lambda c: node(c).slots, 10, 5),
    "devicememoryscaling": (3.0, lambda c: node(c).capacity_mib(10), 10, 30),
    "devicecorescaling": (2.0, lambda c: node(c).cores_capacity, 100, 200),
    "preconfigureddevicememory": (777, lambda c: node(c).memory_mib(None), None, 777),
    "enablenumatopology": (False, lambda c: node(c) == node(DEFAULT), True, True),
    "libcudaloglevel": (3, lambda c: node(c).log_level, 1, 3),
    "migstrategy": ("mixed", lambda c: node(c).mig_strategy, "none", "mixed"),
    "filterdevices": (
        {"uuid": ["GPU-a"], "index": [1]},
        lambda c: [node(c).offers("GPU-a", 0), node(c).offers("GPU-b", 1), node(c).offers("GPU-c", 2)],
        [True, True, True],
        [False, False, True],
    ),
    "enablegetpreferredallocation": (False, lambda c: node(c) == node(DEFAULT), True, True),
}

LAYOUT = {"group": "a", "geometries": [{"name": "2g.12gb", "count": 2}]}
VOLCANO: dict[str, tuple[Any, Look, Any, Any]] = {
    "resourceCountName": ("a.io/gpu", volcano_name("count"), "volcano.sh/vgpu-number", "a.io/gpu"),
    "resourceMemoryName": ("a.io/mem", volcano_name("memory"), "volcano.sh/vgpu-memory", "a.io/mem"),
    "resourceMemoryPercentageName": (
        "a.io/pct", volcano_name("memory_percentage"), "volcano.sh/vgpu-memory-percentage", "a.io/pct",
    ),
    "resourceCoreName": ("a.io/cores", volcano_name("cores"), "volcano.sh/vgpu-cores", "a.io/cores"),
    "gpuMemoryFactor": (256, volcano_name("memory_unit_mib"), 1, 256),
    **{
        key: HAMI[key]
        for key in (
            "overwriteEnv", "deviceSplitCount", "deviceMemoryScaling", "deviceCoreScaling", "disableCoreLimit",
        )
    },
    "defaultMemory": (0, lambda c: c == DEFAULT, True, True),
    "defaultCores": (0, lambda c: c == DEFAULT, True, True),
    "defaultGPUNum": (1, lambda c: c == DEFAULT, True, True),
    "knownMigGeometries": (
        [{"models": ["A30"], "allowedGeometries": [LAYOUT]}], *HAMI["knownMigGeometries"][1:],
    ),
}  # fmt: skip

CHART: dict[str, Any] = {
    "resourceName": ("resourceCountName", "a.io/gpu"),
    "resourceMem": ("resourceMemoryName", "a.io/mem"),
    "resourceMemPercentage": ("resourceMemoryPercentageName", "a.io/pct"),
    "resourceCores": ("resourceCoreName", "nvidia.com/cores"),
    "resourcePriority": ("resourcePriorityName", "a.io/prio"),
    "schedulerName": ("schedulerName", "4pd-scheduler"),
    "scheduler.defaultMem": ("defaultMemory", 5000),
    "scheduler.defaultCores": ("defaultCores", 30),
    "devicePlugin.deviceSplitCount": ("deviceSplitCount", 4),
    "devicePlugin.deviceMemoryScaling": ("deviceMemoryScaling", 3.0),
    "devicePlugin.deviceCoreScaling": ("deviceCoreScaling", 2.0),
    "devicePlugin.migStrategy": ("migStrategy", "mixed"),
    "devicePlugin.disablecorelimit": ("disableCoreLimit", True),
    "devicePlugin.runtimeClassName": ("runtimeClassName", "nvidia"),
}
SEED_KEYS = (
    "devicePlugin.deviceSplitCount", "devicePlugin.deviceMemoryScaling", "devicePlugin.migStrategy",
    "devicePlugin.disablecorelimit", "scheduler.defaultMem", "scheduler.defaultCores", "resourceName", "resourceMem",
    "resourceMemPercentage", "resourceCores", "resourcePriority",
)  # fmt: skip


def written(document: dict[str, Any]) -> str:
    """JSON is YAML; this is also the form of HAMi's config.json."""
    return msgspec.json.encode(document).decode()


def nested(dotted: str, value: Any) -> dict[str, Any]:
    head, _, tail = dotted.partition(".")
    return {head: nested(tail, value) if tail else value}


@pytest.mark.parametrize("key", HAMI)
def test_a_key_of_hami_does_what_it_says(key: str) -> None:
    value, look, by_default, then = HAMI[key]
    assert look(DEFAULT) == by_default
    assert look(load(written({"hami": {key: value}}), "c")) == then


@pytest.mark.parametrize("key", VOLCANO)
def test_a_key_of_volcano_does_what_it_says(key: str) -> None:
    value, look, by_default, then = VOLCANO[key]
    assert look(DEFAULT) == by_default
    assert look(load(written({"volcano": {key: value}}), "c")) == then


@pytest.mark.parametrize(
    ("key", "value", "only"), [("defaultMemory", 1000, 0), ("defaultCores", 10, 0), ("defaultGPUNum", 2, 1)]
)
def test_what_volcanos_dialect_has_no_place_for_is_refused(key: str, value: int, only: int) -> None:
    with pytest.raises(BadInput, match=rf"volcano\.{key} must be {only} \(not supported\), got {value}"):
        load(written({"volcano": {key: value}}), "c")


def test_hami_and_volcano_may_not_differ_where_they_set_the_same() -> None:
    document = {"hami": {"deviceSplitCount": 5}, "volcano": {"deviceSplitCount": 5}}
    assert load(written(document), "c") == load("hami: {deviceSplitCount: 5}", "c")
    with pytest.raises(BadInput, match=r"hami\.deviceSplitCount and volcano\.deviceSplitCount set the same, but to 5"):
        load(written(document | {"volcano": {"deviceSplitCount": 6}}), "c")


@pytest.mark.parametrize("key", NODE)
def test_a_key_of_the_node_list_holds_on_its_node_alone(key: str) -> None:
    value, look, by_default, then = NODE[key]
    assert look(DEFAULT) == by_default
    assert look(load(written({"nodeconfig": [{"name": "node-1", key: value}]}), "c")) == then
    assert look(load(written({"nodeconfig": [{"name": "other", key: value}]}), "c")) == by_default


@pytest.mark.parametrize("spelled", CHART)
def test_a_key_of_the_chart_is_the_same_as_hamis(spelled: str) -> None:
    key, value = CHART[spelled]
    ours = load(written({"hami": {key: value}}), "c")
    assert load(written(nested(spelled, value)), "c") == ours != DEFAULT
    assert load(written(nested(spelled, value) | {"hami": {key: value}}), "c") == ours


@pytest.mark.parametrize("spelled", CHART)
def test_both_spellings_with_different_values_are_refused(spelled: str) -> None:
    key, value = CHART[spelled]
    other = msgspec.to_builtins(Hami())[key]
    with pytest.raises(BadInput, match=rf"hami\.{key} and {spelled} set the same, but to .* and .*; keep one of them"):
        load(written(nested(spelled, value) | {"hami": {key: other}}), "c")


def test_no_key_is_left_out_of_these_tables() -> None:
    def keys(kind: type[msgspec.Struct]) -> set[str]:
        return {field.encode_name for field in msgspec.structs.fields(kind)}

    assert keys(Hami) == set(HAMI)
    assert keys(NodeConfig) == set(NODE) | {"name"}
    assert keys(Volcano) == set(VOLCANO)
    assert keys(unversioned.DevicePlugin) == {k.partition(".")[2] for k in CHART if k.startswith("devicePlugin.")} | {
        "nvidianodeSelector"
    }
    assert keys(unversioned.Scheduler) == {k.partition(".")[2] for k in CHART if k.startswith("scheduler.")}
    assert set(SEED_KEYS) <= set(CHART)


@pytest.mark.parametrize(("text", "policy"), [("'true'", ComputePolicy.NONE), ("'false'", ComputePolicy.WEIGHT)])
def test_the_charts_switch_for_compute_is_a_text(text: str, policy: ComputePolicy) -> None:
    assert load(f"devicePlugin: {{disablecorelimit: {text}}}", "c").sharing.compute_policy == policy


def test_the_node_selector_is_honoured_in_both_spellings() -> None:
    for text in ('nodes: {selector: {gpu: "on"}}', 'devicePlugin: {nvidianodeSelector: {gpu: "on"}}'):
        config = load(text, "c")
        assert config.selects({"gpu": "on", "other": "x"})
        assert not config.selects({"gpu": "off"})
        assert not config.selects({})
    assert DEFAULT.selects({})


def test_a_core_policy_of_disable_holds_nothing() -> None:
    assert load("hami: {gpuCorePolicy: disable}", "c").sharing.compute_policy == ComputePolicy.NONE


def test_a_reported_memory_goes_before_the_configured_one() -> None:
    assert node(load("hami: {preConfiguredDeviceMemory: 5}", "c")).memory_mib(16160) == 16160


@pytest.mark.parametrize(("scaling", "capacity"), [(1, 32768), (3.0, 98304), (1.1, 36044), (0.5, 16384), (0.1, 3276)])
def test_scaled_capacity_is_exact_and_rounded_down(scaling: float, capacity: int) -> None:
    assert node(load(f"hami: {{deviceMemoryScaling: {scaling}}}", "c")).capacity_mib(32768) == capacity


def test_the_charts_own_values_give_hamis_defaults() -> None:
    text = """
    resourceName: "nvidia.com/gpu"
    resourceMem: "nvidia.com/gpumem"
    resourceMemPercentage: "nvidia.com/gpumem-percentage"
    resourceCores: "nvidia.com/gpucores"
    resourcePriority: "nvidia.com/priority"
    scheduler: {defaultMem: 0, defaultCores: 0}
    devicePlugin: {deviceSplitCount: 10, deviceMemoryScaling: 1, deviceCoreScaling: 1, migStrategy: "none",
                   disablecorelimit: "false", runtimeClassName: ""}
    """
    assert load(text, "values.yaml") == DEFAULT


IMPORTED = [
    *({"hami": {key: row[0]}} for key, row in HAMI.items()),
    *({"volcano": {key: row[0]}} for key, row in VOLCANO.items()),
    *({"nodeconfig": [{"name": "node-1", key: row[0]}]} for key, row in NODE.items()),
    *(nested(path, value) for path, (_, value) in CHART.items()),
]


@pytest.mark.parametrize("document", IMPORTED, ids=written)
def test_an_imported_key_can_be_written_in_our_own_form(document: dict[str, Any]) -> None:
    configuration = load(written(document), "c")
    assert load(to_yaml(configuration), "c") == configuration
    assert load(to_yaml(configuration), "c") == load(written(document), "c")
