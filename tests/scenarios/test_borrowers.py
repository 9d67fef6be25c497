"""examples/memory-limit.yaml where borrowers may be evicted: the neighbor has its memory at once, and works on."""

from tests.scenarios.conftest import StartLab
from tests.scenarios.examples import EXAMPLES, apply, running
from tests.scenarios.labs import Lab
from tests.scenarios.memory_lending import BORROWER, NEIGHBOR, holding
from tests.waiting import wait_until

NOTICE = "lamina.dev/borrower-notice"


def annotation(lab: Lab, pod: str) -> str:
    found = [each for each in lab.pods() if each["metadata"]["name"] == pod]
    return str(found[0]["metadata"].get("annotations", {}).get(NOTICE, "")) if found else ""


def reasons(lab: Lab, pod: str) -> set[str]:
    events = lab.read("/api/v1/namespaces/default/events")["items"]
    return {event["reason"] for event in events if event["involvedObject"]["name"] == pod}


def test_the_borrower_gets_notice_and_is_evicted_while_the_neighbor_works(start_lab: StartLab) -> None:
    lab = start_lab("borrowers", config=(EXAMPLES / "configuration" / "v1alpha1" / "borrowers.yaml").read_text())
    apply(lab, "memory-limit")
    running(lab, BORROWER)
    running(lab, NEIGHBOR)
    with holding(lab, BORROWER, 25000):
        assert annotation(lab, BORROWER) == "", "the GPU has room for it"
        with holding(lab, NEIGHBOR, 11000):
            wait_until(lambda: annotation(lab, BORROWER) != "", lambda: str(reasons(lab, BORROWER)))
            assert "BorrowerNotice" in reasons(lab, BORROWER) and annotation(lab, NEIGHBOR) == ""
            wait_until(
                lambda: [each["metadata"]["name"] for each in lab.pods()] == [NEIGHBOR], lambda: str(lab.phases())
            )
            assert "BorrowerEvicted" in reasons(lab, BORROWER)
            assert lab.phases() == {"Running": 1}
