"""The answers over columns are those of `fit`, node by node: whether, why in which words, and how near."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.core.gpus import Gpu
from lamina.core.ledger import Taken
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest
from lamina.placement import (
    FITS,
    Cause,
    NodeState,
    NodeTable,
    Survey,
    alike,
)
from lamina.placement.state import table as table_module
from tests.placement.edges import EDGES
from tests.placement.nodes import ask, gpus, node, request
from tests.placement.strategies import gpu_lists, pods, rooms, takens
from tests.placement.survey_agreement import check


@st.composite
def states(draw: st.DrawFn, name: str) -> NodeState:
    """A node, sometimes of GPUs that are all alike, with anything taken of them."""
    given_gpus: tuple[Gpu, ...] = draw(gpu_lists)
    if given_gpus and draw(st.booleans()):
        given_gpus = tuple(msgspec.structs.replace(given_gpus[0], uuid=g.uuid, index=g.index) for g in given_gpus)
    reason = draw(st.sampled_from(["", "XID 79"]))
    if draw(st.booleans()):
        given_gpus = tuple(
            msgspec.structs.replace(
                g,
                numa=draw(st.sampled_from([None, 0, 1])),
                cordoned=draw(st.booleans()),
                native_resource=draw(st.sampled_from(["", "nvidia.com/gpu"])),
            )
            for g in given_gpus
        )
    given_gpus = tuple(g if g.healthy else msgspec.structs.replace(g, reason=reason) for g in given_gpus)
    return node(given_gpus, {gpu.uuid: draw(takens) for gpu in given_gpus if draw(st.booleans())}, name=name)


@st.composite
def requests(draw: st.DrawFn) -> PodRequest:
    selector = st.builds(
        GpuSelector,
        types=st.sampled_from([(), (), ("v100",), ("A1", "X")]),
        not_types=st.sampled_from([(), (), ("TESLA",)]),
        uuids=st.sampled_from([(), (), ("GPU-0", "GPU-9"), ("GPU-9",)]),
        not_uuids=st.sampled_from([(), (), ("GPU-1",)]),
        idle=st.sampled_from([False, False, True]),
    )
    request = msgspec.structs.replace(
        draw(pods()), selector=draw(selector), numa_bind=draw(st.sampled_from([False, False, True]))
    )
    return request.within(draw(rooms(st.integers(0, 300), st.integers(0, 300))))


@settings(max_examples=100, deadline=None)
@given(st.data(), st.lists(requests(), min_size=1, max_size=3))
def test_a_survey_says_what_fit_says_after_any_changes(data: st.DataObject, wanted: list[PodRequest]) -> None:
    table = NodeTable()
    surveys = [Survey(alike(each), table) for each in wanted]
    of: dict[str, NodeState] = {}
    for _ in range(data.draw(st.integers(1, 4))):
        for name in data.draw(st.sets(st.sampled_from("abcdef"), max_size=4)):
            if name in of and data.draw(st.booleans()):
                del of[name]
                table.drop(name)
            else:
                of[name] = data.draw(states(name))
                table.put(of[name])
        for survey, each in zip(surveys, wanted, strict=True):
            check(survey, table, each, of)


@pytest.mark.parametrize(("container", "taken", "cause"), EDGES)
def test_a_survey_knows_the_edge_of_each_rule(container: ContainerRequest, taken: Taken, cause: Cause | None) -> None:
    table, wanted, of = NodeTable(), request(container), {"a": node(gpus(1), {"GPU-0": taken}, name="a")}
    table.put(of["a"])
    survey = Survey(alike(wanted), table)
    check(survey, table, wanted, of)
    assert (survey.verdicts_on(table.rows_of(["a"])).tolist() == [FITS]) is (cause is None)


def test_only_what_changed_is_asked_again() -> None:
    table = NodeTable()
    for name in "abc":
        table.put(node(name=name))
    before = table.stamp
    table.put(node(name="b"))
    table.drop("c")
    assert table.since(before).tolist() == [1, 2] and table.since(table.stamp).size == 0


def test_what_comes_and_goes_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """New UUIDs, models, faults and instances of a few nodes, for as long as the process runs."""
    monkeypatch.setattr(table_module, "_MAX_UNUSED", 10)
    table, wanted = NodeTable(), request(ask(1000, count=2))
    survey, numbers = Survey(alike(wanted), table), []
    for i in range(100):
        given_gpus = [
            msgspec.structs.replace(gpu, uuid=f"{gpu.uuid}-{i}", model=f"V{i}", healthy=i % 3 > 0) for gpu in gpus(2)
        ]
        of = {name: node(given_gpus, name=name) for name in (f"n{i}", "a", "b")}
        for state in of.values():
            table.put(state)
        numbers.append(table.numbers)
        check(survey, table, wanted, of)
        table.drop(f"n{i}")
    assert max(numbers) < 30


def test_a_wider_node_and_many_nodes_fit() -> None:
    table, wanted = NodeTable(), request(ask(1000))
    survey = Survey(alike(wanted), table)
    of = {f"n{i}": node(gpus(1 + i % 9), name=f"n{i}") for i in range(200)}
    for state in of.values():
        table.put(state)
    check(survey, table, wanted, of)


def test_a_request_beyond_any_number_of_a_column_fits_nowhere() -> None:
    table, wanted = NodeTable(), request(ask(1 << 70))
    table.put(node(name="a"))
    check(Survey(alike(wanted), table), table, wanted, {"a": node(name="a")})


def test_requests_that_differ_in_what_does_not_matter_share_a_survey() -> None:
    one = request(ask(1000, name="x", priority=1), node_policy="spread", gpu_policy="spread")
    assert alike(one) == alike(request(ask(1000, name="y")))
    assert alike(one) != alike(request(ask(1001, name="x")))
