"""How long a pod that ended counts without a word of its agent, and how long it is remembered."""

import pytest

from lamina.core.ledger import Taken
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
