"""The form of the page that asks whether pods would fit now: `lamina fits` without a manifest."""

import asyncio
from collections.abc import Mapping
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from lamina.dialects import quota_names
from lamina.errors import BadInput
from lamina.operations.dashboard.answers import HEADERS
from lamina.report.cluster_reader import ClusterObjects, view_of
from lamina.report.pod_templates import PodTemplate
from lamina.report.what_fits import FitCheck

_MOST_MIB = 1 << 24
ONE_AT_A_TIME = asyncio.Semaphore(1)
"""An answer takes as long as a reading of the whole cluster."""


class WantedPods(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pods that are alike. Without memory and cores they get whole GPUs."""

    pods: Annotated[int, Meta(ge=1, le=1000)] = 1
    gpus: Annotated[int, Meta(ge=1, le=1024)] = 1
    memory: Annotated[int, Meta(ge=0, le=_MOST_MIB)] = 0
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
        async with ONE_AT_A_TIME:
            answer = await asyncio.to_thread(what_if, objects, wanted, namespace)
    except BadInput as problem:
        return web.Response(status=400, text=str(problem), headers=HEADERS)
    return web.Response(body=msgspec.json.encode(answer), content_type="application/json", headers=HEADERS)
