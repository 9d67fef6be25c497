"""The agent may be killed at any step of bringing a daemon up or taking it down: the next one comes to the same end."""

import itertools
from pathlib import Path

import pytest

from tests.agent.mps import FACTS, FIRST, MpsNode, died


@pytest.mark.parametrize(("first", "then"), [(0, 10), (10, 4), (10, 0)], ids=["up", "other limits", "down"])
async def test_killed_at_any_step_the_next_agent_comes_to_the_same_end(tmp_path: Path, first: int, then: int) -> None:
    for at in itertools.count():
        node = MpsNode(tmp_path / str(at), FACTS[:1])
        node.start(first)
        await node.reconcile()
        dead = await died(node, at, then)
        node.start(then)
        await node.reconcile(3)
        if then:
            assert node.state() == ("ready", ""), at
            assert node.mps.daemons[FIRST].memory == f"{40960 // then}M", at
            assert node.nvml.exclusive == {FIRST}, at
        else:
            assert node.traces() == ([], [], [], b"{}"), at
        if not dead:
            assert at >= 10, "there are moments before and after all that the agent does"
            return


async def test_a_client_keeps_its_daemon_wherever_the_agent_dies(tmp_path: Path) -> None:
    for at in itertools.count():
        node = MpsNode(tmp_path / str(at), FACTS[:1])
        node.start(10)
        await node.reconcile()
        node.hold("client")
        daemon = node.mps.daemons[FIRST]
        dead = await died(node, at, 4)
        node.start(4)
        await node.reconcile(3)
        assert node.mps.daemons[FIRST] is daemon, at
        assert (daemon.memory, daemon.percent) == ("4096M", 10.0), at
        if not dead:
            return
