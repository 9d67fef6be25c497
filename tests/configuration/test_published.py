"""Files of other systems as those publish them: what is taken from each, and that the rest is answered by name."""

import html
import json
from typing import Any

import msgspec
import pytest
import yaml

from lamina.configuration import DEFAULT, load
from lamina.configuration.form import form
from lamina.configuration.importers import volcano_scheduler
from lamina.configuration.importers.chart_values import MOVED
from lamina.configuration.importers.published import convert
from lamina.configuration.importers.values_of_others import CONVERTED, REPLACED
from lamina.configuration.text import to_yaml
from lamina.errors import BadInput
from tests.configuration.odd_yaml import ODD_TEXTS
from tests.seeds import piped, seed

TWICE = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}"
SCHEDULER = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
- plugins:
  - name: deviceshare
    arguments: {deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: spread, deviceshare.NodeLockEnable: false}
  - name: ours
"""
LAYOUTS = [{"group": "a", "geometries": [{"name": "1g.6gb", "memory": 6144, "count": 4}]}]
VOLCANOS: dict[str, Any] = {
    "resourceCountName": "volcano.sh/vgpu-number",
    "overwriteEnv": False,
    "defaultMemory": 0,
    "defaultCores": 0,
    "defaultGPUNum": 1,
    "deviceSplitCount": 4,
    "deviceMemoryScaling": 2,
    "gpuMemoryFactor": 256,
    "knownMigGeometries": [{"models": ["A30"], "allowedGeometries": LAYOUTS}],
}
NODES = {"nodeconfig": [{"name": "n", "operatingmode": "mig", "filterdevices": {"uuid": [], "index": [1]}}]}
LIKE_VOLCANOS = """
dialects: {volcano: {memoryUnitMiB: 256}}
sharing: {slots: 4, memoryScaling: 2.0}
mig: {rules: [{models: [A30], layouts: [[{profile: 1g.6gb, count: 4}]]}]}
"""


def config_map(name: str, namespace: str = "kube-system", **data: str) -> str:
    meta = {"name": name, "namespace": namespace}
    files = {key.replace("_", "."): text for key, text in data.items()}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": files})


def refusal(text: str) -> str:
    with pytest.raises(BadInput) as refused:
        convert(text, "f")
    return str(refused.value)


def test_a_file_of_nvidias_plugin_becomes_the_one_for_all_nodes() -> None:
    found = convert(TWICE, "f")
    assert found.config == load("nativeDevices: {configs: {default: " + json.dumps(yaml.safe_load(TWICE)) + "}}", "c")
    assert "default: each nvidia.com/gpu is offered as 2 replicas by time-slicing, as nvidia.com/gpu" in found.notes
    assert "default: GPUs are offered whole, because it has no sharing" in convert("version: v1", "f").notes


def test_what_a_file_of_nvidias_plugin_does_not_do_is_named() -> None:
    mps = (
        "{renameByDefault: true, failRequestsGreaterThanOne: false, resources: [{name: gpu, replicas: 4, devices: 1}]}"
    )
    gfd = "{outputFile: /etc/gfd, sleepInterval: 60s}"
    notes = convert(f"{{version: v1, flags: {{migStrategy: single, gfd: {gfd}}}, sharing: {{mps: {mps}}}}}", "f").notes
    for expected in (
        "is offered as 4 replicas by MPS, as nvidia.com/gpu.shared, one at most for a container",
        "MIG devices are offered by the strategy single",
        "flags.gfd.outputFile sets nothing",
        "failRequestsGreaterThanOne: false in sharing.mps is ignored",
        "Customizing the 'devices' field in sharing.mps.resources is not yet supported",
    ):
        assert any(expected in note for note in notes), expected
    assert not any("timeSlicing" in note or "nvidiaDriverRoot" in note for note in notes)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version: v2", "f: unknown version: v2"),
        ("{version: v1, sharin: {}}", "f: unknown key sharin; did you mean sharing?"),
        ("{version: v1, sharing: {mps: {resources: []}}}", "f: sharing.mps: no resources specified"),
        ("{version: v1, sharing: {? [a] : 1}}", "f, line 1: a key must be a string"),
    ],
)
def test_a_file_that_the_agent_would_refuse_is_refused(text: str, problem: str) -> None:
    assert problem in refusal(text)


def test_a_config_map_of_nvidias_plugin_has_its_files_by_name() -> None:
    text = config_map("nvdp-configs", "nvidia-device-plugin", default="version: v1", a100=TWICE)
    found = convert(text, "f")
    assert list(found.config.native_devices.configs) == ["default", "a100"]
    assert any(note.startswith("a100: applies to nodes whose label") for note in found.notes)
    named = "nativeDevices.configMap: {name: nvdp-configs, namespace: nvidia-device-plugin}"
    assert sum(named in note for note in found.notes) == 1
    assert "f, ConfigMap kube-system/x, a: unknown version: v3" in refusal(config_map("x", a="version: v3"))


def test_the_documents_own_config_maps_are_converted() -> None:
    for text in (each for each in piped(seed("002")) if "kind: ConfigMap" in each):
        assert list(convert(text, "f").config.native_devices.configs) == ["NVIDIA-A100-PCIE-40GB"]
    guide = html.unescape(seed("001"))
    text = guide[guide.index("kind: ConfigMap\n") :].partition("</code>")[0]
    found = convert(text, "f")
    assert found.config == load("placement: {nodePolicy: binpack, gpuPolicy: binpack}", "c")
    assert "deviceshare.VGPUEnable: Lamina serves volcano.sh/vgpu-number wherever agents run" in found.notes


def test_volcanos_scheduler_gives_its_policy_and_an_answer_to_the_rest() -> None:
    found = convert(SCHEDULER, "f")
    assert found.config == load("placement: {nodePolicy: spread, gpuPolicy: spread}", "c")
    assert found == convert(config_map("volcano-scheduler-configmap", volcano_scheduler_conf=SCHEDULER), "f")._replace(
        titles=found.titles
    )
    answered = [note.partition(":")[0] for note in found.notes]
    assert answered == [
        "action enqueue", "action allocate", "action backfill, plugin priority", "plugin gang",
        "deviceshare.VGPUEnable", "plugin ours",
    ]  # fmt: skip
    assert "plugin ours: nothing takes its place" in found.notes


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("deviceshare.SchedulePolcy: binpack", "unknown argument deviceshare.SchedulePolcy .*; did you mean device"),
        ("deviceshare.SchedulePolicy: tight", 'deviceshare.SchedulePolicy must be binpack or spread, got "tight"'),
    ],
)
def test_a_wrong_argument_for_gpus_is_refused(wrong: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        convert(f"tiers: [{{plugins: [{{name: deviceshare, arguments: {{{wrong}}}}}]}}]", "f")


@pytest.mark.parametrize("key", volcano_scheduler.DEVICESHARE)
def test_every_argument_of_the_plugin_for_gpus_is_answered(key: str) -> None:
    found = convert(f"tiers: [{{plugins: [{{name: deviceshare, arguments: {{{key}: x}}}}]}}]", "f")
    assert (found.config, found.notes) == (DEFAULT, (f"{key}: {volcano_scheduler.DEVICESHARE[key]}",))


def test_the_device_configuration_of_volcano_is_converted_raw_and_in_its_config_map() -> None:
    text = json.dumps({"nvidia": VOLCANOS, "vnpus": []})
    found = convert(text, "f")
    assert found.config == load(LIKE_VOLCANOS, "c")
    assert found.notes == ("vnpus: devices that are not NVIDIA's; Lamina leaves them alone",)
    assert convert(config_map("volcano-vgpu-device-config", device_config_yaml=text), "f").config == found.config


def test_what_volcanos_dialect_has_no_place_for_is_named() -> None:
    section = VOLCANOS | {"defaultMemory": 1000, "passDeviceSpecs": True, "resourcePriorityName": ""}
    found = convert(json.dumps({"nvidia": section}), "f")
    assert found.config == load(LIKE_VOLCANOS, "c")
    assert [note.partition(":")[0] for note in found.notes] == ["nvidia.defaultMemory", "nvidia.passDeviceSpecs"]
    assert "unknown key deviceSplitCoun in volcano; did you mean" in refusal(
        json.dumps({"nvidia": VOLCANOS | {"deviceSplitCoun": 3}})
    )


def test_the_device_configuration_of_hami_is_known_by_what_it_says() -> None:
    layouts = {"models": ["A30"], "allowedGeometries": [[{"name": "2g.12gb", "count": 2}]]}
    section = {"resourceCountName": "nvidia.com/gpu", "defaultMemory": 1000, "knownMigGeometries": [layouts]}
    assert convert(json.dumps({"nvidia": section}), "f").config == load(json.dumps({"hami": section}), "c")


def test_all_objects_of_a_manifest_make_one_configuration() -> None:
    daemon = json.dumps({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "plugin"}})
    texts = [
        config_map("volcano-vgpu-device-config", device_config_yaml=json.dumps({"nvidia": VOLCANOS})),
        config_map("volcano-vgpu-node-config", config_json=json.dumps(NODES)),
        daemon,
    ]
    found = convert("\n---\n".join(texts), "f")
    assert found.config == load(LIKE_VOLCANOS + json.dumps(NODES)[1:-1], "c")
    assert any(note.startswith("DaemonSet plugin has no part in the configuration") for note in found.notes)
    listed = {"apiVersion": "v1", "kind": "List", "items": [json.loads(text) for text in texts]}
    assert convert(json.dumps(listed), "f").config == found.config


def test_a_manifest_without_a_configuration_is_refused() -> None:
    daemon = json.dumps({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "plugin"}})
    assert refusal(f"{daemon}\n---\n{daemon}") == "f: none of its 2 objects is a ConfigMap with a configuration"


def test_files_that_contradict_each_other_are_refused() -> None:
    other = json.dumps({"nvidia": VOLCANOS | {"deviceSplitCount": 9}})
    both = config_map("a", one=json.dumps({"nvidia": VOLCANOS}), two=other)
    assert "volcano.deviceSplitCount is 4 in one file and 9 in another; keep one of them" in refusal(both)


VALUES = """
version: libopensource
resourceCores: nvidia.com/gpucores
mluResourceName: cambricon.com/mlunum
imagePullSecrets: []
scheduler:
  defaultMem: 5000
  kubeScheduler: {imageTag: v1.20.4, extraArgs: [-v=4]}
  tolerations: []
  patch: {image: webhook}
devicePlugin:
  image: 4pdosc/k8s-vdevice
  deviceSplitCount: 4
  disablecorelimit: "true"
  nvidianodeSelector: {gpu: "on"}
"""


def test_the_values_of_4paradigms_chart_are_converted_and_the_others_are_answered() -> None:
    found = convert(VALUES, "f")
    assert found.config == load(
        'scheduler: {defaultMem: 5000}\ndevicePlugin: {deviceSplitCount: 4, disablecorelimit: "true", '
        'nvidianodeSelector: {gpu: "on"}}',
        "c",
    )
    answers = REPLACED | CONVERTED
    rows = ("version", "mluResourceName", "scheduler.kubeScheduler", "scheduler.patch", "devicePlugin.image")
    assert found.notes == tuple(f"{row}: {answers[row]}" for row in rows)


@pytest.mark.parametrize("name", ["nvidia.com/gpucores", "nvidia.com/cores"])
def test_both_names_of_cores_are_accepted_in_values(name: str) -> None:
    found = convert(f"{{resourceCores: {name}, nameOverride: ''}}", "f")
    assert found.config == load(f"hami: {{resourceCoreName: {name}}}", "c")


def test_a_value_without_an_answer_is_refused_by_name() -> None:
    assert refusal(VALUES + "resorceName: x\n").startswith("f: unknown key resorceName; did you mean resourceName?")
    for section, key in (("scheduler", "defaultMen"), ("devicePlugin", "deviceSplitCoun")):
        for other in ("", "nameOverride: '', "):
            assert f"unknown key {key} in {section}" in refusal(f"{{{other}{section}: {{{key}: 1}}}}")


HAMIS_VALUES = """
global: {imageTag: v2.10.0}
schedulerName: hami-scheduler
metaxsGPUTopologyAware: "false"
scheduler:
  overwriteEnv: "true"
  defaultSchedulerPolicy: {nodeSchedulerPolicy: binpack, gpuSchedulerPolicy: spread}
devicePlugin:
  enabled: true
  nvidiaNodeSelector: {gpu: "on"}
  preConfiguredDeviceMemory: 131072
  nodeConfiguration:
    config: '{"nodeconfig": [{"name": "n", "devicesplitcount": 3}]}'
devices:
  nvidia: {gpuCorePolicy: force, libCudaLogLevel: 1}
  ascend: {enabled: true}
device-config:
  content: ""
"""


def test_the_values_of_hamis_chart_are_moved_to_hamis_keys() -> None:
    found = convert(HAMIS_VALUES, "f")
    assert found.config == load(
        "hami: {overwriteEnv: true, nodeSchedulerPolicy: binpack, gpuSchedulerPolicy: spread, gpuCorePolicy: force,"
        " preConfiguredDeviceMemory: 131072}\n"
        'nodes: {selector: {gpu: "on"}}\nnodeconfig: [{name: n, devicesplitcount: 3}]',
        "c",
    )
    assert [note.partition(":")[0] for note in found.notes] == [
        "global", "metaxsGPUTopologyAware, devices", "devicePlugin.enabled",
    ]  # fmt: skip
    content = HAMIS_VALUES.replace('content: ""', 'content: "nvidia: {deviceSplitCount: 7}"')
    assert convert(content, "f").config == convert(HAMIS_VALUES + "deviceSplitCount: 7", "f").config
    assert convert(content, "f").config.sharing.slots == 7


def test_files_among_the_values_of_nvidias_and_volcanos_charts_are_read() -> None:
    values = {"config": {"map": {"default": TWICE, "a.b": "version: v1"}, "default": "a.b", "name": ""}, "gfd": {}}
    found = convert(json.dumps(values), "f")
    native = found.config.native_devices
    assert (list(native.configs), native.default) == (["default", "a.b"], "a.b")
    assert any(note.startswith("a.b: applies to nodes whose label") for note in found.notes)
    assert refusal('{"config": {"map": {"a": "version: v3"}}}') == "f, config.map.a: unknown version: v3"
    chart = {
        "namespace": "kube-system",
        "deviceConfig": {"nvidia": VOLCANOS},
        "nodeConfig": {"configs": [{"name": "n"}]},
    }
    assert convert(json.dumps(chart), "f").config == load(LIKE_VOLCANOS + "nodeconfig: [{name: n}]", "c")


def test_values_of_other_charts_are_no_groups_of_the_configuration() -> None:
    groups = {field.encode_name for field in msgspec.structs.fields(form().configuration)}
    assert not groups & {row.partition(".")[0] for row in (*REPLACED, *CONVERTED, *MOVED)}


def test_our_own_configuration_is_read_as_it_stands() -> None:
    ours = "apiVersion: lamina.dev/v1alpha1\nkind: Configuration\nsharing: {slots: 3}\n"
    for text in (ours, "hami: {deviceSplitCount: 3}", config_map("lamina", "lamina-system", lamina_yaml=ours)):
        assert convert(text, "f") == (load(ours, "c"), (), ())
    assert "must be one YAML document" in refusal(f"{ours}---\n{TWICE}")


@pytest.mark.parametrize("text", [TWICE, SCHEDULER, json.dumps({"nvidia": VOLCANOS})])
def test_the_cluster_is_given_what_a_conversion_prints_only(text: str) -> None:
    with pytest.raises(BadInput, match="convert it with `lamina config convert`"):
        load(text, "c")
    assert load(to_yaml(convert(text, "f").config), "c") == convert(text, "f").config


def test_an_odd_text_is_refused_in_every_place_where_a_file_may_stand() -> None:
    for odd in ODD_TEXTS:
        with pytest.raises(BadInput):
            convert(config_map("x", a=odd), "f")


ODD_PARTS = [5, "x", [1], {"a": 1}, None, [{"b": 2}]]


@pytest.mark.parametrize(
    "frame",
    [
        "{{kind: ConfigMap, metadata: {0}, data: {0}}}",
        "{{kind: List, items: {0}}}",
        "{{nvidia: {0}}}",
        "{{nvidia: {{knownMigGeometries: {0}, resourceCountName: {0}}}}}",
        "{{actions: {0}, tiers: {0}}}",
        "{{tiers: [{{plugins: {0}}}]}}",
        "{{tiers: [{{plugins: [{{name: {0}, arguments: {0}}}]}}]}}",
        "{{tiers: [{{plugins: [{{name: deviceshare, arguments: {0}}}]}}]}}",
        "{{version: v1, flags: {0}, sharing: {0}}}",
        "{{nameOverride: x, scheduler: {0}, devicePlugin: {0}}}",
    ],
)
def test_odd_values_in_odd_places_are_converted_or_refused(frame: str) -> None:
    for part in ODD_PARTS:
        try:
            found = convert(frame.format(json.dumps(part)), "f")
        except BadInput as problem:
            assert len(str(problem).splitlines()) == 1
        else:
            assert all(len(note.splitlines()) == 1 for note in found.notes)
