"""Ask the agents for their metrics.

The API server passes the requests on, so who can reach it needs no way to the nodes. An agent that does not answer
leaves its node without figures; everything else is known without it.
"""

import asyncio
from collections.abc import Callable, Iterable

from lamina.errors import Outside
from lamina.install.names import AGENT, METRICS_PORT, chosen
from lamina.ports.kube import NODES, PODS, Object, ProxiedKube
from lamina.report.cluster_use import ClusterUse

_PAGE = "metrics"
AT_ONCE = 16
"""How many agents are asked at the same time."""


async def read_use(kube: ProxiedKube, nodes: Iterable[str], pods: Iterable[Object]) -> ClusterUse:
    """Ask the agents of these nodes. `pods` are those of the cluster."""
    use = ClusterUse()
    use.silent = await read_pages(kube, nodes, pods, use.add)
    return use


async def read_pages(
    kube: ProxiedKube, nodes: Iterable[str], pods: Iterable[Object], take: Callable[[str, str], None]
) -> dict[str, str]:
    """Call `take` with each of these nodes and the page of its agent; it may raise ValueError or KeyError.

    Returns the nodes whose agents did not answer with a page that can be read, each with the reason. Where none of the
    first ones answers, as behind a network policy, the others are not asked: each would take its time.
    """
    agents, turns = _agents(pods, kube.lamina_namespace), asyncio.Semaphore(AT_ONCE)
    silent: dict[str, str] = {}
    answered: set[str] = set()

    async def ask(node: str) -> None:
        resource, name, namespace = (PODS, agents[node], kube.lamina_namespace) if node in agents else (NODES, node, "")
        try:
            async with turns:
                if not answered and len(silent) >= AT_ONCE:
                    silent[node] = f"it was not asked, because the agents of {AT_ONCE} other nodes did not answer"
                    return
                page = await kube.proxied(resource, f"{name}:{METRICS_PORT}", _PAGE, namespace=namespace)
            answered.add(node)
            take(node, page.decode())
        except Outside as error:
            silent[node] = str(error)
        except (ValueError, KeyError) as error:
            silent[node] = f"its metrics cannot be read: {error}"

    await asyncio.gather(*map(ask, nodes))
    return silent


def _agents(pods: Iterable[Object], namespace: str) -> dict[str, str]:
    """The pod of the agent on each node. A lab, and nodes where people start the agent themselves, have none."""
    labels = chosen(AGENT).items()
    return {
        pod["spec"]["nodeName"]: pod["metadata"]["name"]
        for pod in pods
        if pod["metadata"].get("namespace") == namespace
        and labels <= (pod["metadata"].get("labels") or {}).items()
        and pod["spec"].get("nodeName")
        and (pod.get("status") or {}).get("phase") == "Running"
    }
