"""What is sent of a document after another one: little, and enough to make the later one of the earlier one."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.operations.dashboard.changes import changes
from lamina.operations.dashboard.document import ClusterDocument, ContainerLimits, GpuPart, HealthSpan, PodCard
from tests.browser import missing_browser
from tests.operations.dashboard.pages import Page, gpu, node, running

PARTS = st.builds(
    lambda pod, used: GpuPart(pod=pod, name=pod, memory_mib=1, cores=0, used_mib=used),
    st.sampled_from("ab"), st.none() | st.integers(0, 2),
)  # fmt: skip
GPUS = st.builds(
    lambda index, parts, spans, busy: gpu("n", index, *parts, health=tuple(spans), busy_percent=busy),
    st.integers(0, 1),
    st.lists(PARTS, max_size=2),
    st.lists(st.builds(HealthSpan, st.integers(0, 2), st.just("healthy")), max_size=2),
    st.none() | st.integers(0, 1),
)
NODES = st.builds(lambda gpus, ready: node("n", *gpus, ready=ready), st.lists(GPUS, max_size=2), st.booleans())
LIMITS = st.builds(
    lambda limits: (ContainerLimits(container="main", limits=limits),),
    st.dictionaries(st.sampled_from("xy"), st.just("1")),
)
PODS = st.builds(
    lambda most, limits, ways: msgspec.structs.replace(running("p", most_mib=most), limits=limits, ways_out=ways),
    st.integers(4000, 4002), LIMITS, st.lists(st.text(max_size=2), max_size=2).map(tuple),
)  # fmt: skip
DOCUMENTS = st.builds(
    lambda nodes, pods: ClusterDocument(nodes=nodes, pods=pods),
    st.dictionaries(st.sampled_from("mn"), NODES, max_size=2),
    st.dictionaries(st.sampled_from("uv"), PODS, max_size=2),
)


def plain(value: Any) -> Any:
    """As JSON has it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def patched(card: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    made = dict(card)
    for name, value in patch.items():
        known = made[name]
        by_position = isinstance(known, list) and isinstance(value, dict)
        made[name] = [patched(each, value.get(str(at), {})) for at, each in enumerate(known)] if by_position else value
    return made


def merged(known: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    made = {key: card for key, card in known.items() if changed.get(key, card) is not None}
    return made | {key: patched(known[key], each) if key in known else each for key, each in changed.items() if each}


@given(DOCUMENTS, DOCUMENTS)
def test_changes_make_the_later_document_of_the_earlier_one(before: ClusterDocument, after: ClusterDocument) -> None:
    found = plain(changes(before, after))
    for kind in ("nodes", "pods"):
        assert merged(plain(before)[kind], found[kind]) == plain(after)[kind]


@pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())
async def test_the_page_makes_the_same_of_them(page: Page) -> None:
    cases: list[tuple[Any, Any, Any]] = []

    @given(DOCUMENTS, DOCUMENTS)
    def collect(before: ClusterDocument, after: ClusterDocument) -> None:
        for kind in ("nodes", "pods"):
            cases.append((plain(before)[kind], plain(changes(before, after))[kind], plain(after)[kind]))

    collect()
    script = """import("./patches.js").then(({ merge }) => arguments[0].map(([before, change]) => {
      merge(before, change);
      return before;
    }))"""
    assert await page.run(script, [case[:2] for case in cases]) == [case[2] for case in cases]


def test_a_figure_of_a_large_card_is_sent_alone() -> None:
    parts = [GpuPart(pod=f"u{each}", name=f"team/{each}", memory_mib=9, cores=0, used_mib=5) for each in range(9)]
    before = node("n", *(gpu("n", index, *parts) for index in range(8)))
    after = with_part(before, lambda part: msgspec.structs.replace(part, used_mib=6))
    [found] = changes(ClusterDocument(nodes={"n": before}), ClusterDocument(nodes={"n": after})).nodes.values()
    assert plain(found) == {"gpus": {"0": {"parts": {"0": {"used_mib": 6}}}}}


def with_part(card: Any, change: Callable[[GpuPart], GpuPart]) -> Any:
    """The card with another first part on its first GPU."""
    first = card.gpus[0]
    changed = msgspec.structs.replace(first, parts=(change(first.parts[0]), *first.parts[1:]))
    return msgspec.structs.replace(card, gpus=(changed, *card.gpus[1:]))


def test_a_pod_whose_use_changes_keeps_everything_else() -> None:
    before = running("web")
    after = msgspec.structs.replace(before, shares=(msgspec.structs.replace(before.shares[0], used_mib=7),))
    documents = [ClusterDocument(pods={"u": card}) for card in (before, after)]
    assert plain(changes(*documents).pods) == {"u": {"shares": {"0": {"used_mib": 7}}}}
    gone = changes(documents[1], ClusterDocument()).pods
    assert dict(gone) == {"u": None} and isinstance(before, PodCard)
