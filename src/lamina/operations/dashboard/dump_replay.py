"""The form that replays a cluster dump: placement today against that of policies, as `lamina simulate` does."""

import asyncio

import msgspec
from aiohttp import web
from msgspec import Struct

from lamina.errors import BadInput
from lamina.operations.dashboard.answers import HEADERS
from lamina.operations.simulate import Result, read_nodes, read_pods, replay
from lamina.operations.simulate.dump import DumpText
from lamina.operations.simulate.today import today
from lamina.operations.simulate.without_mig import without_mig

MOST_BYTES = 256 << 20
MOST_PODS = 50_000
"""More take minutes, for which `lamina simulate` shows its progress."""
POLICIES = ("binpack", "packing")
ONE_AT_A_TIME = asyncio.Semaphore(1)


class PolicyResult(Struct, frozen=True):
    """One policy, or `today`. Amounts are in percent; each of `points` has pods that have come, allocated, stranded."""

    policy: str
    allocated: float
    stranded: float
    placed: int
    waiting: int
    points: tuple[tuple[int, float, float], ...]
    reasons: tuple[tuple[str, int], ...]


class ReplayAnswer(Struct, frozen=True):
    """What was replayed, in a sentence, sentences about what was left out, and the results."""

    size: str
    notes: tuple[str, ...]
    results: tuple[PolicyResult, ...]


def replay_dump(dump: bytes) -> ReplayAnswer:
    """Replay the pods of a dump on its nodes. Raises BadInput."""
    file = DumpText(dump, "the file", is_json=dump.lstrip()[:1] == b"{")
    nodes, pods, notes = without_mig(read_nodes(file), read_pods(file))
    if not pods:
        raise BadInput(f"the file has no pods that can be replayed: {'; '.join(notes)}")
    if len(pods) > MOST_PODS:
        raise BadInput(f"the file has {len(pods)} pods; with more than {MOST_PODS}, use `lamina simulate --html FILE`")
    results = [today(nodes, pods), *(replay(nodes, pods, policy) for policy in POLICIES)]
    gpus = sum(len(node.gpus) for node in nodes)
    size = f"{len(pods)} pods on {len(nodes)} nodes with {gpus} GPUs"
    return ReplayAnswer(size, tuple(notes), tuple(map(_in_percent, results)))


def _in_percent(result: Result) -> PolicyResult:
    return PolicyResult(
        policy=result.policy,
        allocated=100 * result.end.allocated,
        stranded=100 * result.end.stranded,
        placed=result.placed,
        waiting=len(result.waiting),
        points=tuple((point.pods, 100 * point.allocated, 100 * point.stranded) for point in result.points),
        reasons=result.reasons,
    )


async def replayed(request: web.Request) -> web.Response:
    """What the page gets: the answer, or a sentence about what is wrong with the file."""
    try:
        dump = await request.read()
    except web.HTTPRequestEntityTooLarge:
        sentence = f"the file has more than {MOST_BYTES >> 20} MiB; use `lamina simulate --html FILE`"
        return web.Response(status=413, text=sentence, headers=HEADERS)
    try:
        async with ONE_AT_A_TIME:
            answer = await asyncio.to_thread(replay_dump, dump)
    except BadInput as problem:
        return web.Response(status=400, text=str(problem), headers=HEADERS)
    return web.Response(body=msgspec.json.encode(answer), content_type="application/json", headers=HEADERS)
