"""A driver that stops the agent at a given MIG change."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from lamina.agent.cleanup.leftovers import reconcile
from lamina.core.mig import Placed
from lamina.ports.nvml import FakeNvml
from lamina.ports.nvml import MigInstanceFacts as MadeInstance
from tests.agent.dying_files import DyingFiles
from tests.agent.mig_nodes import FACTS, partitioned_node
from tests.agent.node import Node
from tests.worlds.deaths import Died


class Deaths(DyingFiles):
    """The process dies at its change number `at`, be it of the disk or of a GPU."""

    @property
    def due(self) -> bool:
        return self.left == 0 and self.torn


class DyingNvml(FakeNvml):
    """A driver that outlives the processes that use it. Where `torn` is set, an instance is left half made."""

    deaths: Deaths | None = None

    async def set_mig_mode(self, uuid: str, on: bool) -> bool:
        if self.deaths is not None:
            self.deaths.step()
        return await super().set_mig_mode(uuid, on)

    async def create_mig(self, uuid: str, place: Placed) -> MadeInstance:
        if self.deaths is not None and self.deaths.due:
            await super().create_mig(uuid, place)
            self._halve(uuid, place)
        if self.deaths is not None:
            self.deaths.step()
        return await super().create_mig(uuid, place)

    async def destroy_mig(self, uuid: str, instance: int) -> None:
        for each in self.instances[uuid]:
            if each.id == instance and self.deaths is not None and self.deaths.due:
                self._halve(uuid, Placed(each.profile, each.start))
        if self.deaths is not None:
            self.deaths.step()
        await super().destroy_mig(uuid, instance)

    def _halve(self, uuid: str, place: Placed) -> None:
        found = self.instances[uuid]
        self.instances[uuid] = tuple(
            each._replace(uuid="") if (each.profile, each.start) == place else each for each in found
        )


async def dies(node: Node, deaths: Deaths, act: Callable[[], Awaitable[None]]) -> bool:
    """Whether the agent died of it. A new one has started then."""
    assert isinstance(node.nvml, DyingNvml)
    node.start(deaths)
    node.nvml.deaths = deaths
    try:
        await act()
        return False
    except Died:
        return True
    finally:
        node.nvml.deaths = None
        node.start()
        await reconcile(node.context)
        await node.on_demand.reconcile()


def mortal(root: Path) -> Node:
    node = partitioned_node(root)
    node.nvml = DyingNvml(FACTS)
    node.start()
    return node
