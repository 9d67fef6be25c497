"""A batch of a defragmentation plan: what is in it, and when it is done, waits or has failed."""

import msgspec
import pytest

from lamina.placement.eviction.defrag import DefragStep, Move
from lamina.placement.eviction.relocation import Batch, BatchState, MovedPod, batches, changed, outcome


def holder(name: str, gpu: str = "a-0", *, owner: str = "set", running: bool = True, group: str = "") -> MovedPod:
    gpus = frozenset({gpu}) if gpu else frozenset()
    return MovedPod(
        uid=f"uid-{name}", namespace="default", name=name, owner=owner, gpus=gpus, running=running, group=group
    )


OLD, TWIN = holder("old"), holder("twin")
ONE, BOTH = Batch("a-0", (OLD,)), Batch("a-0", (OLD, TWIN))


def test_members_of_a_group_move_together_and_others_by_themselves() -> None:
    pods = [holder("a", group="g"), holder("b"), holder("c", group="g"), holder("d", group="h")]
    moves = tuple(Move(str(pod), "n", ("a-0",), "n", ("a-1",)) for pod in pods)
    found = batches(DefragStep("n", "a-0", moves), pods)
    assert [[pod.name for pod in batch.pods] for batch in found] == [["a", "c"], ["b"], ["d"]]
    assert {batch.frees for batch in found} == {"a-0"}


@pytest.mark.parametrize(
    ("batch", "now", "state"),
    [
        (ONE, [holder("new", "a-1")], BatchState.DONE),
        (ONE, [OLD, holder("new", "a-1")], BatchState.WAITING),
        (ONE, [], BatchState.WAITING),
        (ONE, [holder("new", "")], BatchState.WAITING),
        (ONE, [holder("new", "a-1", running=False)], BatchState.WAITING),
        (ONE, [holder("known", "a-1")], BatchState.WAITING),
        (ONE, [holder("new", "a-1", owner="other")], BatchState.WAITING),
        (ONE, [holder("new", "a-0")], BatchState.FAILED),
        (BOTH, [holder("new", "a-1")], BatchState.WAITING),
        (BOTH, [holder("new", "a-1"), holder("newer", "b-0")], BatchState.DONE),
    ],
)
def test_the_state_of_a_batch(batch: Batch, now: list[MovedPod], state: BatchState) -> None:
    known = {"uid-old", "uid-twin", "uid-known"}
    assert outcome(batch, now, known, waited_s=9, patience_s=10).state is state
    late = outcome(batch, now, known, waited_s=10, patience_s=10)
    assert late.state is (BatchState.FAILED if state is BatchState.WAITING else state)
    assert bool(late.reason) is (late.state is BatchState.FAILED)


def test_a_pod_that_has_changed_is_named() -> None:
    assert changed(ONE, [OLD, TWIN]) == ""
    assert changed(ONE, [TWIN]) == "pod default/old has ended since the plan was made"
    moved = msgspec.structs.replace(OLD, gpus=frozenset({"b-0"}))
    assert changed(ONE, [moved]) == "pod default/old holds other GPUs than when the plan was made"
