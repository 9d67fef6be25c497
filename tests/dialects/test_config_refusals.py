"""A configuration that is wrong is refused whole, in one sentence that names the place, the key and what is allowed."""

import pytest

from lamina.dialects.config import DEFAULT, load
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
            "unknown key xyzzy; known are devicePlugin, deviceshare.SchedulePolicy, enabled, enforcer, hami, ",
        ),
        ("1: 2", "unknown key 1; known are"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(text: str, sentence: str) -> None:
    assert refusal(text).startswith(sentence)


@pytest.mark.parametrize(
    ("key", "values", "allowed"),
    [
        ("deviceSplitCount", ["0", "-1", "1001", "2.5", "ten", "'10'", "true", "~"], "a whole number from 1 to 1000"),
        ("deviceMemoryScaling", ["0", "-1", "0.001", "101", ".nan", ".inf", "'3'"], "a number from 0.01 to 100"),
        ("deviceCoreScaling", ["0", ".nan"], "a number from 0.01 to 100"),
        ("defaultMemory", ["-1", "1.5", "5Gi", "2147483648"], "a whole number of MiB from 0 to 2147483647"),
        ("preConfiguredDeviceMemory", ["-1"], "a whole number of MiB from 0 to 2147483647"),
        ("defaultCores", ["-1", "101"], "a whole number from 0 to 100"),
        ("defaultGPUNum", ["-1", "1.5"], "a whole number from 0 to 1000"),
        ("memoryFactor", ["0", "-1"], "a whole number from 1 to 1048576"),
        ("resourceMemoryName", ["gpumem", "nvidia.com/", "/x", "'nvidia.com/gpu mem'", "7"], "a resource name such as"),
        ("gpuCorePolicy", ["enable", "Force", "1"], "default, force or disable"),
        ("migStrategy", ["double", "1"], "none, single or mixed"),
        ("libCudaLogLevel", ["-1", "5", "debug"], "0 (errors), 1 (warnings)"),
        ("disableCoreLimit", ["'true'", "1"], "true or false"),
        ("nodeSchedulerPolicy", ["topology"], "binpack or spread or packing"),
        ("gpuSchedulerPolicy", ["best", "binpack;spread"], "binpack or spread or numa or topology-aware or mutex"),
    ],
)
def test_a_value_out_of_range_is_refused_with_what_is_allowed(key: str, values: list[str], allowed: str) -> None:
    for value in values:
        sentence = refusal(f"hami: {{{key}: {value}}}")
        assert sentence.startswith(f"hami.{key} is "), sentence
        assert f"; allowed is {allowed}" in sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[1, 2]", "expected keys and values at the top, found a list"),
        ("just text", "expected keys and values at the top, found a text"),
        ("hami: [", "line 1: this is not YAML"),
        ("a: b: c", "line 1: this is not YAML"),
        ("\tx: 1", "line 1: this is not YAML"),
        ("? [a]\n: 1", "this is not YAML: unhashable"),
        ("hami: 3", "hami is 3; allowed is keys with values"),
        ("nodeconfig: {name: x}", "nodeconfig is {'name': 'x'}; allowed is a list"),
        ("nodeconfig: [{}]", "nodeconfig[0] has no name"),
        ("nodeconfig: [{name: ''}]", "nodeconfig[0].name is ''; allowed is the name of a node"),
        ("nodeSelector: {gpu: on}", "nodeSelector is {'gpu': True}; allowed is labels and values, both as texts"),
        ("nodeSelector: gpu", "nodeSelector is 'gpu'; allowed is labels"),
        ("otherResources: nvidia.com/x", "otherResources is 'nvidia.com/x'; allowed is a list of resource names"),
        ("hami: {}\nhami: {}", "line 2: the key 'hami' stands twice"),
        ("hami: {defaultCores: 1, defaultCores: 2}", "line 1: the key 'defaultCores' stands twice"),
    ],
)
def test_a_document_of_the_wrong_shape_is_refused(text: str, sentence: str) -> None:
    assert refusal(text).startswith(sentence)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hami: {enableNumaTopology: true}", "hami.enableNumaTopology is true, which is not offered"),
        ("nodeconfig: [{name: a, enablenumatopology: true}]", "nodeconfig[0].enablenumatopology is true"),
        ("nodeconfig: [{name: a, enablegetpreferredallocation: true}]", "nodeconfig[0].enablegetpreferred"),
        (
            "nodeconfig: [{name: a, operatingmode: mps}]",
            "nodeconfig[0].operatingmode is 'mps'; allowed is hami-core or",
        ),
        ("nvidia: {operatingmode: mps}", "nvidia.operatingmode is 'mps'; allowed is hami-core or mig"),
        ("nvidia: {modes: [quota, mps]}", "nvidia.modes[1] is 'mps'; allowed is a list of quota and mig"),
        ("nvidia: {modes: []}", "nvidia.modes is []; allowed is a list of quota and mig"),
        ("nvidia: {modes: [mig, mig]}", "nvidia.modes names mig twice"),
        ("nvidia: {modes: [mig], operatingmode: mig}", "nvidia has both modes and operatingmode; keep one"),
        (
            "nodeconfig: [{name: b}, {name: a, modes: [mig], operatingmode: mig}]",
            "nodeconfig[1] has both modes and operatingmode",
        ),
        ("hami: {gpuCorePolicy: force, disableCoreLimit: true}", "gpuCorePolicy is force and disableCoreLimit is true"),
        ("nodeconfig: [{name: a}, {name: a}]", "nodeconfig names the node a twice"),
        ("hami: {resourceCoreName: nvidia.com/gpu}", "hami.resourceCountName and hami.resourceCoreName are both"),
        ("resourceMem: nvidia.com/gpu", "hami.resourceCountName and hami.resourceMemoryName are both"),
        ('nodeSelector: {a: "1"}\ndevicePlugin: {nvidianodeSelector: {a: "2"}}', "nodeSelector is {'a': '1'} and "),
    ],
)
def test_what_cannot_be_honoured_is_refused(text: str, sentence: str) -> None:
    assert refusal(text).startswith(sentence)


@pytest.mark.parametrize("enforcer", ["auto", "driver", "facade"])
def test_the_enforcer_is_one_of_three(enforcer: str) -> None:
    assert load(f"enforcer: {enforcer}", "test").enforcer == enforcer
    assert "enforcer" in refusal("enforcer: none")
