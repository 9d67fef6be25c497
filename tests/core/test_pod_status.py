"""What the states of containers come to."""

from typing import Any

import pytest

from lamina.core.pod_status import has_terminated, runs_containers

RUNS, ENDED, WAITS = {"running": {}}, {"terminated": {"exitCode": 0}}, {"waiting": {"reason": "ContainerCreating"}}


@pytest.mark.parametrize("field", ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"])
@pytest.mark.parametrize(
    ("states", "runs", "terminated"),
    [
        ([RUNS], True, False),
        ([ENDED], False, True),
        ([WAITS], False, False),
        ([{}], False, False),
        ([None], False, False),
        ([ENDED, RUNS], True, False),
        ([ENDED, ENDED], False, True),
        ([ENDED, WAITS], False, False),
        ([], False, False),
    ],
)
def test_containers_of_each_kind_count(field: str, states: list[Any], runs: bool, terminated: bool) -> None:
    pod = {"status": {field: [{"name": "c", "state": state} for state in states]}}
    assert (runs_containers(pod), has_terminated(pod)) == (runs, terminated)


@pytest.mark.parametrize("pod", [{}, {"status": None}, {"status": {"containerStatuses": None}}])
def test_a_pod_without_a_status_says_nothing(pod: dict[str, Any]) -> None:
    assert (runs_containers(pod), has_terminated(pod)) == (False, False)
