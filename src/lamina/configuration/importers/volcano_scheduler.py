"""The configuration of Volcano's scheduler, `volcano-scheduler.conf`: its policy for GPUs, and an answer to the rest.

Source: the scheduler's own types (pkg/scheduler/conf) and its actions and plugins, of Volcano 1.8 to 1.15.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from msgspec import Struct, field

from lamina.configuration import strict
from lamina.configuration.importers.tables import by_answer
from lamina.configuration.yaml_documents import shown
from lamina.core.component_names import documentation
from lamina.core.field_types import must_be
from lamina.dialects.volcano.dialect import SCHEDULE_POLICY
from lamina.errors import BadInput
from lamina.name_hints import nearest

_NO_QUEUES = f"Lamina has no queues; see {documentation('how-to/queues.md')} for Kueue"
_UNKNOWN = "nothing takes its place"
_KUBE_SCHEDULER = "kube-scheduler does this"
_PREEMPTION = "by PriorityClass, with controller.preemption=true when installing"
ACTIONS = {
    "enqueue": _NO_QUEUES,
    "allocate": "kube-scheduler places pods, and asks Lamina about GPUs",
    "backfill": _KUBE_SCHEDULER,
    "preempt": _PREEMPTION,
    "gangpreempt": _PREEMPTION,
    "reclaim": _NO_QUEUES,
    "gangreclaim": _NO_QUEUES,
    "shuffle": "`lamina defrag` moves pods that leave GPUs unusable",
    "elect": _NO_QUEUES,
    "reserve": "the controller keeps room for pod groups itself",
}
PLUGINS = {
    "predicates": _KUBE_SCHEDULER,
    "priority": _KUBE_SCHEDULER,
    "conformance": _KUBE_SCHEDULER,
    "nodeorder": _KUBE_SCHEDULER,
    "resource-strategy-fit": _KUBE_SCHEDULER,
    "pdb": _KUBE_SCHEDULER,
    "nodegroup": "node affinity and taints keep pods of a team on its nodes",
    **dict.fromkeys(("cdp", "network-topology-aware", "sla", "task-topology", "tdm", "usage"), _UNKNOWN),
    "gang": f"pod groups are read as they are; see {documentation('how-to/priority-and-groups.md')}",
    "binpack": "kube-scheduler scores CPU and memory; GPUs are placed by placement.nodePolicy",
    "numaaware": "GPUs of one NUMA node: the annotation nvidia.com/numa-bind",
    "resourcequota": "ResourceQuotas count GPU memory and compute",
    "rescheduling": "`lamina defrag` moves pods that leave GPUs unusable",
    **dict.fromkeys(("overcommit", "drf", "proportion", "capacity", "capacity-card"), _NO_QUEUES),
    "extender": "Lamina is an extender of kube-scheduler; give another one its own `extenders` entry there",
}
DEVICESHARE = {
    "deviceshare.VGPUEnable": "Lamina serves volcano.sh/vgpu-number wherever agents run",
    "deviceshare.ScheduleWeight": "set scheduler.weight when installing",
    "deviceshare.NodeLockEnable": "the controller decides on one pod after the other, so nodes need no lock",
    "deviceshare.KnownGeometriesCMName": "convert that ConfigMap too: geometries are mig.rules",
    "deviceshare.KnownGeometriesCMNamespace": "convert that ConfigMap too: geometries are mig.rules",
    "deviceshare.VGPUPodGroupDeviceSpread": "nothing keeps pods of a group from sharing a GPU",
    "deviceshare.GPUExclusiveRules": "nothing keeps pods by their labels from sharing a GPU; request 100 % of its time",
    "deviceshare.GPUSharingEnable": "request volcano.sh/vgpu-memory instead of volcano.sh/gpu-memory",
    "deviceshare.GPUNumberEnable": "request volcano.sh/vgpu-number instead of volcano.sh/gpu-number",
    "deviceshare.AscendMindClusterVNPUEnable": "a device that is not NVIDIA's; Lamina leaves it alone",
    "deviceshare.AscendHAMiVNPUEnable": "a device that is not NVIDIA's; Lamina leaves it alone",
}
"""Arguments of the plugin deviceshare besides the policy. Others are refused, since they could be misspelled ones."""


class Tier(Struct, frozen=True, kw_only=True):
    """Plugins of one tier."""

    plugins: Annotated[list[dict[str, Any]], must_be("a list of plugins with a name each")]


class SchedulerConfiguration(Struct, frozen=True, kw_only=True):
    """The whole file."""

    actions: Annotated[str, must_be("a list of actions, separated by commas")] = ""
    tiers: Annotated[list[Tier], must_be("a list of tiers with plugins")] = field(default_factory=list)
    configurations: Any = None
    metrics: Any = None


def is_meant(document: Mapping[str, Any]) -> bool:
    return bool({"actions", "tiers"} & document.keys())


def read(document: Mapping[str, Any], name: str, where: str) -> tuple[dict[str, Any], list[str]]:
    """The policy for GPUs, and an answer to each action, plugin and argument. Raises BadInput."""
    conf = strict.decode(document, SchedulerConfiguration, where)
    answers = {f"action {action}": ACTIONS.get(action, _UNKNOWN) for action in _words(conf.actions)}
    found: dict[str, Any] = {}
    for number, plugin in enumerate(plugin for tier in conf.tiers for plugin in tier.plugins):
        called = str(plugin.get("name") or "")
        if not called:
            raise BadInput(f"{where}: plugin {number + 1} of tiers must have a name")
        arguments = plugin.get("arguments") or {}
        if not isinstance(arguments, dict):
            raise BadInput(f"{where}: arguments of the plugin {called} must be a mapping, got {shown(arguments)}")
        if called == "deviceshare":
            found |= _policy(arguments, where)
            answers |= _answers(arguments, where)
        else:
            answers[f"plugin {called}"] = PLUGINS.get(called, _UNKNOWN)
    answers |= {key: _UNKNOWN for key in ("configurations", "metrics") if document.get(key)}
    return found, by_answer(answers)


def _words(actions: str) -> Iterator[str]:
    return (word.strip() for word in actions.split(",") if word.strip())


def _policy(arguments: Mapping[str, Any], where: str) -> dict[str, Any]:
    policy = arguments.get(SCHEDULE_POLICY) or ""
    if policy not in ("", "binpack", "spread"):
        raise BadInput(f"{where}: {SCHEDULE_POLICY} must be binpack or spread, got {shown(policy)}")
    return {SCHEDULE_POLICY: policy} if policy else {}


def _answers(arguments: Mapping[str, Any], where: str) -> dict[str, str]:
    answers = {}
    for key, value in arguments.items():
        if key == SCHEDULE_POLICY:
            continue
        if key not in DEVICESHARE:
            hint = nearest(str(key), (SCHEDULE_POLICY, *DEVICESHARE))
            raise BadInput(f"{where}: unknown argument {key} of the plugin deviceshare{hint}")
        if str(value).lower() != "false":
            answers[key] = DEVICESHARE[key]
    return answers
