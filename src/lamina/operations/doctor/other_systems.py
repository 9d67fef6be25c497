"""Device plugins, schedulers and webhooks of other systems that manage GPUs in the same cluster. Pure.

They are recognized by parts of the names of their images, pods and webhooks. Harmless ones are not reported.
"""

from collections.abc import Collection, Iterator

from lamina.configuration import Config
from lamina.core.component_names import WEBHOOKS
from lamina.dialects import scheduler_names
from lamina.operations.doctor.finding import Finding, State
from lamina.ports.kube import Object

PLUGINS = (
    "nvidia-device-plugin",
    "k8s-device-plugin",
    "volcano-vgpu-device-plugin",
    "hami-device-plugin",
    "hami-vgpu",
    "4pd-vgpu",
    "gpushare-device-plugin",
    "gpu-manager",
)
"""Device plugins that register the same resources with kubelet."""
SCHEDULERS = {
    "hami-scheduler": "hami-scheduler",
    "4pd-vgpu-scheduler": "4pd-scheduler",
    "volcano-scheduler": "volcano",
    "vc-scheduler": "volcano",
    "kai-scheduler": "kai-scheduler",
    "runai-scheduler": "runai-scheduler",
}
"""Other schedulers, and the schedulerName that each of them serves."""
OTHER_WEBHOOKS = ("hami", "4pd", "vgpu", "kai-admission")
"""Webhooks that change pods with GPUs, in dialects that Lamina reads too."""


def other_systems(
    config: Config, pods: list[Object], served: Collection[str], webhooks: list[Object]
) -> Iterator[Finding]:
    """Their findings. `served` are the nodes that Lamina serves, `webhooks` all MutatingWebhookConfigurations."""
    yield _plugins([pod for pod in pods if pod["spec"].get("nodeName", "") in ("", *served)])
    yield from _schedulers(pods, scheduler_names(config))
    yield from _webhooks(webhooks)


def _plugins(pods: list[Object]) -> Finding:
    """Device plugins on served nodes, or not scheduled yet."""
    found = sorted({_name(pod) for pod in pods if any(_is_called(pod, part) for part in PLUGINS)})
    if not found:
        return Finding("other device plugins", State.OK, "none")
    nodes = " ".join(sorted({name.partition(" on ")[2] for name in found} - {""}))
    fix = (
        "keep them off the nodes that Lamina serves, because kubelet uses the plugin that registered last; "
        f"for NVIDIA's operator: kubectl label node {nodes or 'NODE'} "
        "nvidia.com/gpu.deploy.device-plugin=false --overwrite; "
        "for others: remove the node label that their DaemonSet selects, or the DaemonSet"
    )
    return Finding("other device plugins", State.FAILED, ", ".join(found), fix)


def _name(pod: Object) -> str:
    meta, node = pod["metadata"], pod["spec"].get("nodeName")
    return f"{meta['namespace']}/{meta['name']}" + (f" on {node}" if node else "")


def _is_called(pod: Object, part: str) -> bool:
    images = [container.get("image", "") for container in pod["spec"]["containers"]]
    return any(part in text for text in (*images, pod["metadata"]["name"]))


def _schedulers(pods: list[Object], names: Collection[str]) -> Iterator[Finding]:
    """Two schedulers that serve one name would both place its pods."""
    found = {
        name: sorted(_name(pod) for pod in pods if _is_called(pod, part))
        for part, name in SCHEDULERS.items()
        if name in names
    }
    twice = sorted(name for name, serving in found.items() if serving)
    if twice:
        serving = ", ".join(sorted({pod for name in twice for pod in found[name]}))
        fix = f"remove them, or remove {', '.join(twice)} from `schedulers` in the configuration"
        found_text = f"schedulerName {', '.join(twice)} is also served by {serving}"
        yield Finding("other schedulers", State.FAILED, found_text, fix)


def _webhooks(configurations: list[Object]) -> Iterator[Finding]:
    conflicting = sorted(
        f"{one['metadata']['name']} ({hook['name']})"
        for one in configurations
        for hook in one.get("webhooks") or ()
        if one["metadata"]["name"] != WEBHOOKS
        and _concerns_pods(hook)
        and _is_gpu_webhook(one["metadata"]["name"], hook["name"])
    )
    if conflicting:
        fix = (
            "if they are no longer needed, delete them with kubectl delete mutatingwebhookconfiguration; otherwise "
            "exclude the namespaces with Lamina's pods from them"
        )
        yield Finding(
            "other webhooks", State.WARNING, f"they also change pods with GPUs: {', '.join(conflicting)}", fix
        )


def _concerns_pods(hook: Object) -> bool:
    return any({"pods", "*", "*/*"} & set(rule.get("resources") or ()) for rule in hook.get("rules") or ())


def _is_gpu_webhook(*names: str) -> bool:
    return any(part in name for part in OTHER_WEBHOOKS for name in names)
