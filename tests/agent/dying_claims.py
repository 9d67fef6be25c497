"""An agent that dies while it prepares or releases a claim."""

from lamina.agent.cleanup.leftovers import reconcile
from tests.agent.claim_nodes import ClaimNode
from tests.agent.dying_files import Died, DyingFiles


async def dies(node: ClaimNode, at: int, name: str = "c", *, torn: bool, preparing: bool) -> bool:
    """Whether the agent died at this step. Another one has started."""
    node.start(DyingFiles(at, torn=torn))
    died = False
    try:
        await (node.prepare(name) if preparing else node.unprepare(name))
    except Died:
        died = True
    node.start()
    await reconcile(node.context)
    return died
