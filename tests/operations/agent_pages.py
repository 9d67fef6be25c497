"""Pods of agents, and the metrics that they serve."""

from lamina.install.names import AGENT, NAMESPACE, chosen
from lamina.ports.kube import NODES, PODS, Object
from lamina.ports.kube.fake import FakeKube

MIB = 1 << 20


def agent_pod(node: str, **status: str) -> Object:
    return {
        "metadata": {"name": f"agent-of-{node}", "namespace": NAMESPACE, "labels": chosen(AGENT), "uid": f"uid-{node}"},
        "spec": {"nodeName": node, "containers": [{"name": "agent"}]},
        "status": {"phase": "Running"} | status,
    }


def gpu_lines(node: str, gpu: str, used_mib: int, busy: float) -> str:
    labels = f'node="{node}",gpu="{gpu}",index="0",model="Tesla T4"'
    return (
        f"# TYPE lamina_gpu_memory_used_bytes gauge\nlamina_gpu_memory_used_bytes{{{labels}}} {used_mib * MIB}\n"
        f"lamina_gpu_utilization_percent{{{labels}}} {busy}\n"
        f'HostGPUMemoryUsage{{deviceuuid="{gpu}"}} 1.0\n'
    )


def share_lines(node: str, pod: str, gpu: str, **amounts: int) -> str:
    """`amounts` are MiB of data, context, limit, borrowed and peak, the number of refusals, and percent in busy."""
    labels = f'node="{node}",namespace="default",pod="{pod}",container="main",gpu="{gpu}"'
    values = {"data": 0, "context": 0, "limit": 0, "borrowed": 0, "peak": 0, "refusals": 0, "busy": 0} | amounts
    return (
        f'lamina_container_memory_used_bytes{{{labels},kind="data"}} {values["data"] * MIB}\n'
        f'lamina_container_memory_used_bytes{{{labels},kind="context"}} {values["context"] * MIB}\n'
        f"lamina_container_memory_limit_bytes{{{labels}}} {values['limit'] * MIB}\n"
        f"lamina_container_memory_borrowed_bytes{{{labels}}} {values['borrowed'] * MIB}\n"
        f"lamina_container_memory_peak_bytes{{{labels}}} {values['peak'] * MIB}\n"
        f"lamina_container_memory_refusals_total{{{labels}}} {values['refusals']}\n"
        f"lamina_container_utilization_percent{{{labels}}} {values['busy']}\n"
    )


def serve(kube: FakeKube, node: str, page: str, *, pod: bool = False) -> None:
    """Let the agent of the node answer with this page, through its node or its pod."""
    place = (PODS, f"agent-of-{node}:9394") if pod else (NODES, f"{node}:9394")
    kube.pages[(*place, "metrics")] = page.encode()
