"""How long a pod that ended counts without a word of its agent, and how long it is remembered."""

import pytest

from lamina.core.grants import ContainerGrant, Share
from lamina.core.ledger import Taken
from lamina.core.survivors import Survivor
from lamina.ledger.lingering_pods import REMEMBERED_S, REPORT_S, LingeringPods

HELD = {"node-0": {"GPU-0": Taken(1, 1000)}}


def ended(*, stopped: bool = False) -> LingeringPods:
    pods = LingeringPods()
    pods.end("u", "team", HELD, 100.0, stopped=stopped)
    return pods


def test_a_pod_counts_until_its_agent_has_had_the_time_to_publish_it() -> None:
    pods = ended()
    assert pods.expire(100 + REPORT_S - 1) == [] and pods.held("u")
    assert pods.expire(100 + REPORT_S) == ["u"] and not pods.held("u")
    assert pods.expire(100 + REPORT_S) == [], "once"


def test_a_pod_whose_containers_had_stopped_never_counts() -> None:
    pods = ended(stopped=True)
    assert not pods.held("u") and pods.expire(100 + REPORT_S) == []


@pytest.mark.parametrize(("later", "remembered"), [(REMEMBERED_S - 1, True), (REMEMBERED_S, False)])
def test_what_a_pod_held_is_remembered_for_a_while(later: float, remembered: bool) -> None:
    pods = ended()
    pods.expire(100 + later)
    assert pods.namespace("u") == ("team" if remembered else "")


@pytest.mark.parametrize(("confirmed", "nodes"), [(False, {"node-0", "node-1"}), (True, {"node-0"})])
def test_a_pod_counts_where_it_had_a_grant_or_wherever_agents_say_it_was(confirmed: bool, nodes: set[str]) -> None:
    share = Share(gpu="GPU-0", memory_mib=1000)
    survivor = Survivor(namespace="team", pod="p", pod_uid="u", containers=(ContainerGrant(name="c", shares=(share,)),))
    pods = LingeringPods()
    pods.publish("node-0", [survivor], ["team/u"] if confirmed else [])
    pods.publish("node-1", [survivor])
    assert pods.held("u").keys() == nodes
    assert pods.namespace("u") == ("team" if confirmed else "")
