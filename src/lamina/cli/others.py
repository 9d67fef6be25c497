"""What other systems that hand out GPUs do in a cluster of ours: their device plugins, schedulers and webhooks. Pure.

They are known by parts of the names of their images, pods and webhooks. What is no trouble for Lamina is not told.
"""

from collections.abc import Collection, Iterator

from lamina.cli.finding import Finding, State
from lamina.control.webhook_configuration import NAME as OURS
from lamina.dialects import schedulers
from lamina.dialects.config import Config
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
"""Of those that offer the same resources to kubelet."""
SCHEDULERS = {
    "hami-scheduler": "hami-scheduler",
    "4pd-vgpu-scheduler": "4pd-scheduler",
    "volcano-scheduler": "volcano",
    "vc-scheduler": "volcano",
}
"""Of other schedulers, and the name in pods that each of them serves."""
WEBHOOKS = ("hami", "4pd", "vgpu")
"""Of webhooks that change pods with GPUs, and do so in the words that Lamina reads too."""


def others(config: Config, pods: list[Object], ours: Collection[str], webhooks: list[Object]) -> Iterator[Finding]:
    """Their findings; `ours` are the nodes that Lamina serves, `webhooks` all MutatingWebhookConfigurations."""
    yield _plugins([pod for pod in pods if pod["spec"].get("nodeName", "") in ("", *ours)])
    yield from _schedulers(pods, schedulers(config))
    yield from _webhooks(webhooks)


def _plugins(pods: list[Object]) -> Finding:
    """Of pods on our nodes, or on none yet."""
    found = sorted({_name(pod) for pod in pods if any(_is_called(pod, part) for part in PLUGINS)})
    if not found:
        return Finding("other device plugins", State.OK, "none")
    nodes = " ".join(sorted({name.partition(" on ")[2] for name in found} - {""}))
    mend = (
        "keep them off the nodes that Lamina serves, since kubelet knows one plugin for a resource, the last one; "
        f"of NVIDIA's operator: kubectl label node {nodes or 'NODE'} "
        "nvidia.com/gpu.deploy.device-plugin=false --overwrite; "
        "of others: take the label away by which their DaemonSet chooses the node, or remove it"
    )
    return Finding("other device plugins", State.FAILED, ", ".join(found), mend)


def _name(pod: Object) -> str:
    meta, node = pod["metadata"], pod["spec"].get("nodeName")
    return f"{meta['namespace']}/{meta['name']}" + (f" on {node}" if node else "")


def _is_called(pod: Object, part: str) -> bool:
    images = [container.get("image", "") for container in pod["spec"]["containers"]]
    return any(part in text for text in (*images, pod["metadata"]["name"]))


def _schedulers(pods: list[Object], names: Collection[str]) -> Iterator[Finding]:
    """Two schedulers for one name would both place the pods that name it."""
    found = {
        name: sorted(_name(pod) for pod in pods if _is_called(pod, part))
        for part, name in SCHEDULERS.items()
        if name in names
    }
    twice = sorted(name for name, serving in found.items() if serving)
    if twice:
        serving = ", ".join(sorted({pod for name in twice for pod in found[name]}))
        mend = f"remove them, or leave {', '.join(twice)} out of `schedulers` in the configuration"
        yield Finding("other schedulers", State.FAILED, f"pods of {', '.join(twice)} are placed by {serving} too", mend)


def _webhooks(configurations: list[Object]) -> Iterator[Finding]:
    told = sorted(
        f"{one['metadata']['name']} ({hook['name']})"
        for one in configurations
        for hook in one.get("webhooks") or ()
        if one["metadata"]["name"] != OURS and _of_pods(hook) and _is_theirs(one["metadata"]["name"], hook["name"])
    )
    if told:
        mend = (
            "where nobody needs them any more, kubectl delete mutatingwebhookconfiguration with their names; else have "
            "them leave out the namespaces in which Lamina's pods are"
        )
        yield Finding("other webhooks", State.WARNING, f"they change pods with GPUs too: {', '.join(told)}", mend)


def _of_pods(hook: Object) -> bool:
    return any({"pods", "*", "*/*"} & set(rule.get("resources") or ()) for rule in hook.get("rules") or ())


def _is_theirs(*names: str) -> bool:
    return any(part in name for part in WEBHOOKS for name in names)
