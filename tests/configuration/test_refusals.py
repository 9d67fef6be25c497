"""A configuration that is wrong is refused whole, in one sentence that names the place, the key and what is allowed."""

import msgspec
import pytest
import yaml

from lamina.configuration import DEFAULT, load
from lamina.configuration.importers import hami, unversioned, volcano
from lamina.errors import BadInput


def refusal(text: str) -> str:
    with pytest.raises(BadInput) as refused:
        load(text, "lamina.yaml")
    sentence = str(refused.value)
    assert sentence.startswith("lamina.yaml")
    assert "\n" not in sentence
    return sentence.removeprefix("lamina.yaml").lstrip(":, ")


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "{}", "hami:", "hami: {}", "nodeconfig: []"])
def test_what_says_nothing_is_the_default(text: str) -> None:
    assert load(text, "c") == DEFAULT


def keys_of(kind: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(kind)]


@pytest.mark.parametrize("key", keys_of(unversioned.DocumentWithChart))
def test_a_key_with_nothing_after_it_is_not_set(key: str) -> None:
    """What is left when the lines below it are commented out."""
    assert load(f"{key}:\n", "lamina.yaml") == DEFAULT
    assert load(f"hami:\n{key}:\n" if key != "hami" else "volcano:\nhami:\n", "lamina.yaml") == DEFAULT


@pytest.mark.parametrize(
    ("at", "kind"),
    [
        ("hami", hami.Hami),
        ("volcano", volcano.Volcano),
        ("nodeconfig", hami.NodeConfig),
        ("devicePlugin", unversioned.DevicePlugin),
        ("scheduler", unversioned.Scheduler),
    ],
)
def test_a_key_of_a_section_with_nothing_after_it_is_not_set_or_refused(at: str, kind: type[msgspec.Struct]) -> None:
    for key in keys_of(kind):
        document: object = [{"name": "n", key: None}] if at == "nodeconfig" else {key: None}
        for section in reversed(at.split(".")):
            document = {section: document}
        text = yaml.safe_dump(document)
        try:
            load(text, "lamina.yaml")
        except BadInput as problem:
            assert str(problem).startswith("lamina.yaml: ") and key in str(problem)
            assert " must be " in str(problem) and "\n" not in str(problem)


def test_an_unknown_key_with_nothing_after_it_is_refused_still() -> None:
    assert refusal("hamii:\n") == "unknown key hamii; did you mean hami?"
    assert refusal("~:\n").startswith("unknown key None")


@pytest.mark.parametrize("key", ["~", "2020-01-01", "!!binary aGk="])
def test_keys_of_named_configurations_are_texts(key: str) -> None:
    text = f"nativeDevices: {{configs: {{a: {{version: v1, ? {key} : 1}}}}}}"
    assert refusal(text).startswith("nativeDevices.configs.a")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("deviceSplitCount: 3", "unknown key deviceSplitCount"),
        ("hamii: {}", "unknown key hamii; did you mean hami?"),
        ("hami: {devicesplitcount: 3}", "unknown key devicesplitcount in hami; did you mean deviceSplitCount?"),
        ("hami: {defaultMem: 3}", "unknown key defaultMem in hami; did you mean defaultMemory?"),
        ("devicePlugin: {disableCoreLimits: 1}", "unknown key disableCoreLimits in devicePlugin; did you mean"),
        ("scheduler: {defaultMemory: 1}", "unknown key defaultMemory in scheduler; did you mean defaultMem?"),
        ("nodeconfig: [{name: a}, {name: b, splitcount: 1}]", "unknown key splitcount in nodeconfig[1]; did you mean"),
        ("nodeconfig: [{name: a, filterdevices: {uuids: []}}]", "unknown key uuids in nodeconfig[0].filterdevices"),
        (
            "xyzzy: 1",
            "unknown key xyzzy; known are admission, apiVersion, borrowers, compatibility, ",
        ),
        ("1: 2", "unknown key 1; known are"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(text: str, sentence: str) -> None:
    assert refusal(text).startswith(sentence)


@pytest.mark.parametrize(
    ("key", "values", "allowed"),
    [
        ("deviceSplitCount", ["0", "-1", "1001", "2.5", "ten", "'10'", "true", "~"], "an integer from 1 to 1000"),
        ("deviceMemoryScaling", ["0", "-1", "0.001", "101", ".nan", ".inf", "'3'"], "a number from 0.01 to 100"),
        ("deviceCoreScaling", ["0", ".nan"], "a number from 0.01 to 100"),
        ("defaultMemory", ["-1", "1.5", "5Gi", "2147483648"], "an integer from 0 to 2147483647 (MiB)"),
        ("preConfiguredDeviceMemory", ["-1"], "an integer from 0 to 2147483647 (MiB)"),
        ("defaultCores", ["-1", "101"], "an integer from 0 to 100"),
        ("defaultGPUNum", ["-1", "1.5"], "an integer from 0 to 1000"),
        ("memoryFactor", ["0", "-1"], "an integer from 1 to 1048576"),
        ("resourceMemoryName", ["gpumem", "nvidia.com/", "/x", "'nvidia.com/gpu mem'", "7"], "a resource name such as"),
        ("gpuCorePolicy", ["enable", "Force", "1"], "default, force or disable"),
        ("migStrategy", ["double", "1"], "none, single or mixed"),
        ("libCudaLogLevel", ["-1", "5", "debug"], "0 (errors), 1 (warnings), 2 or 3 (information) or 4 (debug)"),
        ("disableCoreLimit", ["'true'", "1"], "true or false"),
        ("nodeSchedulerPolicy", ["topology"], "binpack or spread or packing"),
        ("gpuSchedulerPolicy", ["best", "binpack;spread"], "binpack or spread or numa or topology-aware or mutex"),
    ],
)
def test_a_value_out_of_range_is_refused_with_what_is_allowed(key: str, values: list[str], allowed: str) -> None:
    for value in values:
        sentence = refusal(f"hami: {{{key}: {value}}}")
        assert sentence.startswith(f"hami.{key} must be {allowed}"), sentence
        assert ", got " in sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[1, 2]", "the document must be a mapping, got a list"),
        ("just text", "the document must be a mapping, got a string"),
        ("hami: [", "line 1: invalid YAML"),
        ("a: b: c", "line 1: invalid YAML"),
        ("\tx: 1", "line 1: invalid YAML"),
        ("? [a]\n: 1", 'line 1: a key must be a string, got ["a"]'),
        ("hami: 3", "hami must be a mapping, got 3"),
        ("nodeconfig: {name: x}", 'nodeconfig must be a list, got {"name": "x"}'),
        ("nodeconfig: [{}]", "nodeconfig[0].name is required"),
        ("nodeconfig: [{name: ''}]", 'nodeconfig[0].name must be the name of a node, got ""'),
        (
            "nodes: {selector: {gpu: on}}",
            'nodes.selector must be labels with string values, such as gpu: "on", got {"gpu": true}',
        ),
        ("nodes: {selector: gpu}", 'nodes.selector must be labels with string values, such as gpu: "on", got "gpu"'),
        (
            "dialects: {otherResources: nvidia.com/x}",
            "dialects.otherResources must be a list of resource names, in which * matches anything, got",
        ),
        ("hami: {}\nhami: {}", 'line 2: duplicate key "hami"; write it once'),
        ("hami: {defaultCores: 1, defaultCores: 2}", 'line 1: duplicate key "defaultCores"; write it once'),
    ],
)
def test_a_document_of_the_wrong_shape_is_refused(text: str, sentence: str) -> None:
    assert refusal(text).startswith(sentence)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hami: {enableNumaTopology: true}", "hami.enableNumaTopology must be false (not supported), got true"),
        (
            "nodeconfig: [{name: a, enablenumatopology: true}]",
            "nodeconfig[0].enablenumatopology must be false (not supported), got true",
        ),
        (
            "nodeconfig: [{name: a, enablegetpreferredallocation: true}]",
            "nodeconfig[0].enablegetpreferredallocation must be false",
        ),
        (
            "nodeconfig: [{name: a, operatingmode: soft}]",
            'nodeconfig[0].operatingmode must be hami-core, mps or mig, got "soft"',
        ),
        (
            "sharing: {modes: [quota, soft]}",
            'sharing.modes must be a list of quota, mps and mig, the preferred mode first, got ["quota", "soft"]',
        ),
        ("sharing: {modes: [mig, mig]}", "sharing.modes must contain each mode once, got mig twice"),
        ("hami: {deviceSplitCount: 4}\nsharing: {slots: 5}", "sharing.slots is 5, and 4 by another system's key"),
        ("hami: {deviceSplitCount: 10}\nsharing: {slots: 5}", "sharing.slots is 5, and 10 by another system's key"),
        ("hami: {schedulerName: hami-scheduler}\nschedulers: {assigned: x}", 'schedulers.assigned is "x", and "hami'),
        (
            "nodeconfig: [{name: a, devicesplitcount: 4}]\nnodes: {overrides: [{name: b, slots: 4}]}",
            'nodes.overrides is [{"name": "b", "slots": 4}], and [{"name": "a"',
        ),
        (
            "hami: {gpuCorePolicy: force, disableCoreLimit: true}",
            "hami.gpuCorePolicy must not be force if hami.disableCoreLimit is true; keep one",
        ),
        ("nodeconfig: [{name: a}, {name: a}]", "nodeconfig must have one entry for each node, got two for node a"),
        (
            "hami: {resourceCoreName: nvidia.com/gpu}",
            "hami.resourceCountName and hami.resourceCoreName must be different names, got nvidia.com/gpu for both",
        ),
        ("resourceMem: nvidia.com/gpu", "hami.resourceCountName and hami.resourceMemoryName must be different names"),
        (
            'nodes: {selector: {a: "1"}}\ndevicePlugin: {nvidianodeSelector: {a: "2"}}',
            'nodes.selector.a is "1", and "2" by another system\'s key; keep one of them',
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused(text: str, sentence: str) -> None:
    assert refusal(text).startswith(sentence)


@pytest.mark.parametrize("enforcer", ["auto", "driver", "facade"])
def test_the_enforcer_is_one_of_three(enforcer: str) -> None:
    assert load(f"sharing: {{memoryEnforcer: {enforcer}}}", "test").sharing.memory_enforcer == enforcer
    assert "memoryEnforcer" in refusal("sharing: {memoryEnforcer: none}")


@pytest.mark.parametrize(
    ("key", "meant"), [("defaultMemory", "hami.defaultMemory"), ("gpuMemoryFactor", "volcano.gpuMemoryFactor")]
)
def test_a_key_of_a_section_at_the_top_is_refused_with_its_place(key: str, meant: str) -> None:
    assert refusal(f"{key}: 5000") == f"unknown key {key}; did you mean {meant}?"
