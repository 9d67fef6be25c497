"""The forms of the page: whether pods would fit now, and a replay of a cluster dump."""

import asyncio
from collections.abc import Mapping
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from lamina.dialects import quota_names
from lamina.errors import BadInput
from lamina.operations.dashboard.answers import HEADERS
from lamina.operations.simulate import Result, read_nodes, read_pods, replay
from lamina.operations.simulate.dump import DumpText
from lamina.operations.simulate.today import today
from lamina.operations.simulate.what_if import without_mig
from lamina.report.cluster_reader import ClusterObjects, view_of
from lamina.report.pod_templates import PodTemplate
from lamina.report.what_fits import FitCheck

_MAX_MIB = 1 << 24
ONE_ANSWER = asyncio.Semaphore(1)
"""An answer takes as long as a reading of the whole cluster."""


class WantedPods(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pods that are alike. Without memory and cores they get whole GPUs."""

    pods: Annotated[int, Meta(ge=1, le=1000)] = 1
    gpus: Annotated[int, Meta(ge=1, le=1024)] = 1
    memory: Annotated[int, Meta(ge=0, le=_MAX_MIB)] = 0
    """MiB of each GPU; 0 for none requested."""
    cores: Annotated[int, Meta(ge=0, le=100)] = 0
    """Percent of each GPU's time; 0 for none requested."""


class WhatIfAnswer(Struct, frozen=True):
    """Whether all of the pods fit, and the lines that say so."""

    fits: bool
    lines: tuple[str, ...]


def wanted_pods(query: Mapping[str, str]) -> WantedPods:
    """What the form asks. Raises BadInput with one sentence."""
    written = {name: value for name, value in query.items() if value.strip()}
    try:
        return msgspec.convert(written, WantedPods, strict=False)
    except msgspec.ValidationError as error:
        raise BadInput(f"the question cannot be read: {error}") from error


def what_if(objects: ClusterObjects, wanted: WantedPods, namespace: str) -> WhatIfAnswer:
    """Try the pods on a reading of the cluster. Raises BadInput where its configuration does not accept them."""
    cluster = view_of(objects)
    names = quota_names(cluster.config)
    amounts = {names.count: wanted.gpus, names.memory: wanted.memory, names.cores: wanted.cores}
    limits = {name: str(amount) for name, amount in amounts.items() if amount}
    spec = {"containers": [{"name": "main", "resources": {"limits": limits}}]}
    pod = {"metadata": {"name": "asked", "namespace": namespace}, "spec": spec}
    answer = FitCheck(cluster).check(PodTemplate(_title(wanted), pod, wanted.pods))
    return WhatIfAnswer(bool(answer.fits), answer.lines)


def _title(wanted: WantedPods) -> str:
    """What one of the pods has, in words."""
    gpus = f"{wanted.gpus} GPU{'s' if wanted.gpus > 1 else ''}"
    amounts = [f"{wanted.memory} MiB"] * bool(wanted.memory) + [f"{wanted.cores} % of its time"] * bool(wanted.cores)
    return f"{gpus}{' each' if wanted.gpus > 1 else ''} with {' and '.join(amounts)}" if amounts else gpus


async def answered(query: Mapping[str, str], objects: ClusterObjects | None, namespace: str) -> web.Response:
    """What the page gets: the answer, or a sentence about what is wrong with the question."""
    if objects is None:
        return web.Response(status=503, text="the cluster has not been read yet", headers=HEADERS)
    try:
        wanted = wanted_pods(query)
        async with ONE_ANSWER:
            answer = await asyncio.to_thread(what_if, objects, wanted, namespace)
    except BadInput as problem:
        return web.Response(status=400, text=str(problem), headers=HEADERS)
    return web.Response(body=msgspec.json.encode(answer), content_type="application/json", headers=HEADERS)


MAX_BYTES = 256 << 20
MAX_PODS = 50_000
"""More take minutes, for which `lamina simulate` shows its progress."""
POLICIES = ("binpack", "packing")
ONE_REPLAY = asyncio.Semaphore(1)


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
    if len(pods) > MAX_PODS:
        raise BadInput(f"the file has {len(pods)} pods; with more than {MAX_PODS}, use `lamina simulate --html FILE`")
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
        sentence = f"the file has more than {MAX_BYTES >> 20} MiB; use `lamina simulate --html FILE`"
        return web.Response(status=413, text=sentence, headers=HEADERS)
    try:
        async with ONE_REPLAY:
            answer = await asyncio.to_thread(replay_dump, dump)
    except BadInput as problem:
        return web.Response(status=400, text=str(problem), headers=HEADERS)
    return web.Response(body=msgspec.json.encode(answer), content_type="application/json", headers=HEADERS)
