"""Whether an agent starts honest pods."""

from lamina.ports.kube import PODS
from tests.agent.node import container
from tests.agent.planted import MinedAgent, attempt


async def works(agent: MinedAgent, name: str) -> None:
    """The container of a pod starts, and what was its own goes with it."""
    await agent.node.pod(name, container("main"))
    await agent.until(lambda: attempt(agent, name, f"ticket-{name}"), f"{name} starts")
    agent.kubelet.held = []
    await agent.kube.delete(PODS, name, namespace="default")
    await agent.until(lambda: not list(agent.settings.containers.iterdir()), f"{name} is released")
