"""Pods of agents, and the metrics that they serve."""

from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.install.names import AGENT, chosen
from lamina.ports.kube import NODES, PODS, Object
from lamina.ports.kube.fake import FakeKube

MIB = 1 << 20


def agent_pod(node: str, **status: str) -> Object:
    return {
        "metadata": {
            "name": f"agent-of-{node}",
            "namespace": DEFAULT_NAMESPACE,
            "labels": chosen(AGENT),
            "uid": f"uid-{node}",
        },
        "spec": {"nodeName": node, "containers": [{"name": "agent"}]},
        "status": {"phase": "Running"} | status,
    }


def gpu_lines(
    node: str, gpu: str, used_mib: int, busy: float, *, index: int = 0, memory_mib: int = 15360, reason: str = ""
) -> str:
    labels = f'node="{node}",gpu="{gpu}",index="{index}",model="Tesla T4"'
    return (
        f"# TYPE lamina_gpu_memory_used_bytes gauge\nlamina_gpu_memory_used_bytes{{{labels}}} {used_mib * MIB}\n"
        f"lamina_gpu_memory_bytes{{{labels}}} {memory_mib * MIB}\n"
        f"lamina_gpu_utilization_percent{{{labels}}} {busy}\n"
        f'lamina_gpu_healthy{{{labels},reason="{reason}"}} {0 if reason else 1}\n'
        f'HostGPUMemoryUsage{{deviceuuid="{gpu}"}} 1.0\n'
    )


def mig_lines(node: str, gpu: str, *devices: str, profile: str = "1g.5gb", memory_mib: int = 4864) -> str:
    return "".join(
        f'lamina_mig_memory_bytes{{node="{node}",gpu="{gpu}",index="0",mig="{device}",profile="{profile}",'
        f'instance="{number}"}} {memory_mib * MIB}\n'
        for number, device in enumerate(devices)
    )


def share_lines(node: str, pod: str, gpu: str, **amounts: int) -> str:
    """`amounts` are MiB of data, context, limit, borrowed and peak, the number of refusals, and percent in busy and
    cores."""
    labels = f'node="{node}",namespace="default",pod="{pod}",container="main",gpu="{gpu}"'
    return _use_lines("lamina_container", labels, amounts)


def native_lines(node: str, pod: str, device: str, limit_mib: int, used_mib: int | None = None) -> str:
    """A device that kubelet chose; its agent does not know what is used where `used_mib` is None."""
    labels = f'node="{node}",namespace="default",pod="{pod}",container="main",gpu="{device}"'
    used = f'lamina_container_memory_used_bytes{{{labels},kind="data"}} {(used_mib or 0) * MIB}\n'
    limit = f"lamina_container_memory_limit_bytes{{{labels}}} {limit_mib * MIB}\n"
    return limit if used_mib is None else limit + used


def claim_lines(node: str, request: str, gpu: str, **amounts: int) -> str:
    """`request` is `<claim>/<request>`."""
    claim, _, name = request.partition("/")
    labels = f'node="{node}",namespace="default",claim="{claim}",request="{name}",gpu="{gpu}"'
    return _use_lines("lamina_claim", labels, amounts)


def _use_lines(prefix: str, labels: str, amounts: dict[str, int]) -> str:
    values = dict.fromkeys(("data", "context", "limit", "borrowed", "peak", "refusals", "busy", "cores"), 0) | amounts
    return (
        f'{prefix}_memory_used_bytes{{{labels},kind="data"}} {values["data"] * MIB}\n'
        f'{prefix}_memory_used_bytes{{{labels},kind="context"}} {values["context"] * MIB}\n'
        f"{prefix}_memory_limit_bytes{{{labels}}} {values['limit'] * MIB}\n"
        f"{prefix}_memory_borrowed_bytes{{{labels}}} {values['borrowed'] * MIB}\n"
        f"{prefix}_memory_peak_bytes{{{labels}}} {values['peak'] * MIB}\n"
        f"{prefix}_memory_refusals_total{{{labels}}} {values['refusals']}\n"
        f"{prefix}_utilization_percent{{{labels}}} {values['busy']}\n"
        f"{prefix}_cores_percent{{{labels}}} {values['cores']}\n"
    )


def serve(kube: FakeKube, node: str, page: str, *, pod: bool = False) -> None:
    """Let the agent of the node answer with this page, through its node or its pod."""
    place = (PODS, f"agent-of-{node}:9394") if pod else (NODES, f"{node}:9394")
    kube.pages[(*place, "metrics")] = page.encode()
