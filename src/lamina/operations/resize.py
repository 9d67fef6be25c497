"""Asking for another size of running containers, and waiting until they have it."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import NamedTuple

from lamina.config_source.live import text_in_force
from lamina.core.config import Config
from lamina.core.gpus import Inventory
from lamina.core.grants import Grant
from lamina.core.objects import read_inventory
from lamina.core.sizes import RESIZE, RESIZE_STATUS, RESIZE_WHEN_HELD, WAIT
from lamina.dialects import WantedSize
from lamina.errors import BadInput, LaminaError, Outside
from lamina.ledger.grant_objects import grant_record
from lamina.ledger.pod_stages import pod_state
from lamina.ledger.pods import parse_pod
from lamina.ledger.resize_answers import (
    DONE,
    ENDED,
    NO_GRANT,
    NOT_APPLIED,
    NOT_PLACED,
    REFUSED,
    no_share,
    read_answer,
    without_grant,
)
from lamina.ledger.resize_requests import read_requests, wanted
from lamina.operations.template_resize import TemplateResizer
from lamina.operations.workloads import find_workload, no_such_pod, pods_of
from lamina.ports.clock import Clock
from lamina.ports.kube import GRANTS, INVENTORIES, PODS, Kube, NotFound, Object, Refused
from lamina.report.cluster_reader import readable

ANSWER_S = 60.0
"""How long the controller and the agent of the node may take."""
_EVERY_S = 0.5
Say = Callable[[str], None]
"""Takes a sentence about what happens."""


def _silent(_: str) -> None:
    """Say nothing."""


class Resize(NamedTuple):
    """Another size for one container, the first one of a pod if none is named. None leaves an amount as it is.

    `waits`: a size below what programs hold waits for them instead of being refused. `rollout`: the template of a
    workload is changed although that replaces its pods.
    """

    container: str
    memory_mib: int | None
    cores: int | None
    waits: bool = False
    rollout: bool = False


class ResizeRequest(NamedTuple):
    """What a pod was asked for, as its annotation has it."""

    namespace: str
    pod: str
    uid: str
    written: str
    waits: bool

    @property
    def title(self) -> str:
        return f"pod {self.namespace}/{self.pod}"


async def resize_pod(
    kube: Kube, clock: Clock, namespace: str, pod: str, size: Resize, *, wait: bool, say: Say = _silent
) -> str:
    """Ask, and with `wait` wait; `say` gets what happens meanwhile. Returns a sentence. Raises BadInput where the size
    is refused, and Outside where there is no answer in time."""
    _check(size)
    obj = await _pod(kube, namespace, pod)
    request = _request(obj, size)
    await _check_shares(kube, [obj], [request], await _config(kube))
    await _ask(kube, request)
    status = await wait_for(kube, clock, request, say) if wait else f"asked for {request.written}"
    return f"Pod {namespace}/{pod}: {status}."


async def resize_workload(
    kube: Kube, clock: Clock, namespace: str, which: str, size: Resize, *, wait: bool, say: Say = _silent
) -> AsyncIterator[str]:
    """Resize the running pods of kind/name, then its template. Yields sentences. Raises BadInput, Outside and NotYet.

    Nothing is changed unless each of its pods has a share that can be resized. With `wait`, the template is not changed
    unless all pods have the size.
    """
    _check(size)
    _, workload = await find_workload(kube, namespace, which)
    pods = sorted((each for each in await pods_of(kube, workload) if _runs(each)), key=_name)
    requests = [_request(pod, size) for pod in pods]
    config = (await text_in_force(kube)).config
    await _check_shares(kube, pods, requests, config)
    for request in requests:
        await _ask(kube, request)
    for number, request in enumerate(requests):
        if wait:
            say(f"{number} of {len(requests)} pods have the size; waiting for {request.title}.")
        status = await wait_for(kube, clock, request, say) if wait else f"asked for {request.written}"
        yield f"P{request.title[1:]}: {status}."
    wanted_size = WantedSize(size.memory_mib, size.cores)
    yield await TemplateResizer(kube, clock, config).resize(
        namespace, which, size.container, wanted_size, rollout=size.rollout
    )


def _name(pod: Object) -> str:
    return str(pod["metadata"]["name"])


def _runs(pod: Object) -> bool:
    return (
        bool(pod["spec"].get("nodeName")) and not pod["metadata"].get("deletionTimestamp") and not pod_state(pod).ended
    )


def _check(size: Resize) -> None:
    if size.memory_mib is None and size.cores is None:
        raise BadInput("nothing to resize; set --memory, --cores or both")


def _request(pod: Object, size: Resize) -> ResizeRequest:
    """What the pod is to be asked for, next to what it was asked for other containers. Raises BadInput."""
    meta = pod["metadata"]
    namespace, name = meta["namespace"], size.container or pod["spec"]["containers"][0]["name"]
    if name not in [
        each["name"] for field in ("initContainers", "containers") for each in pod["spec"].get(field) or ()
    ]:
        raise BadInput(f"pod {namespace}/{meta['name']} has no container {name}")
    amounts = f"{name}={size.memory_mib or ''}" + (f",{size.cores}" if size.cores else "")
    before = (meta.get("annotations") or {}).get(RESIZE) or ""
    others = [item for item in before.split(";") if item and item.partition("=")[0].strip() != name]
    request = ResizeRequest(namespace, meta["name"], meta["uid"], ";".join([*others, amounts]), size.waits)
    read_requests(request.written)
    return request


async def _config(kube: Kube) -> Config | None:
    """None where it may not be read, so that the controller alone knows what a pod requests."""
    try:
        return (await text_in_force(kube)).config
    except Refused:
        return None


async def _check_shares(kube: Kube, pods: list[Object], requests: list[ResizeRequest], config: Config | None) -> None:
    """Raises BadInput for a pod that certainly cannot have the size, before anything is written."""
    grants = await _grants(kube, pods[0]["metadata"]["namespace"]) if pods else {}
    for pod, request in zip(pods, requests, strict=True):
        if why := await _certain_refusal(kube, pod, request, config, grants):
            raise BadInput(f"{request.title} cannot be resized: {why}")


async def _certain_refusal(
    kube: Kube, pod: Object, request: ResizeRequest, config: Config | None, grants: Mapping[str, Grant] | None
) -> str:
    if pod_state(pod).ended:
        return ENDED
    if not pod["spec"].get("nodeName"):
        return f"{NOT_PLACED}, so it has no share; create it again with another request"
    if config is None:
        return ""
    parsed = parse_pod(pod, config)
    named = list(read_requests(request.written))
    if why := no_share(parsed, named[-1]):
        return why
    if grants is None:
        return ""
    if grant := grants.get(request.uid):
        try:
            wanted(grant, read_requests(request.written))
        except BadInput as problem:
            return str(problem)
        return ""
    answer = without_grant(parsed, await _inventory(kube, pod["spec"]["nodeName"]))
    return answer.why if answer.state == REFUSED else ""


async def _grants(kube: Kube, namespace: str) -> Mapping[str, Grant] | None:
    """The grants of the namespace by the UID of their pods; None where they may not be read."""
    try:
        found = (await kube.list(GRANTS, namespace=namespace)).items
    except (Refused, NotFound):
        return None
    records = [record.grant for record in readable(grant_record, found)]
    return {grant.pod_uid: grant for grant in records}


async def _inventory(kube: Kube, node: str) -> Inventory | None:
    try:
        return read_inventory(await kube.get(INVENTORIES, node))
    except LaminaError:
        return None


async def _ask(kube: Kube, request: ResizeRequest) -> None:
    """Annotate the pod."""
    annotations = {RESIZE: request.written, RESIZE_WHEN_HELD: WAIT if request.waits else None, RESIZE_STATUS: None}
    await kube.patch(
        PODS, request.pod, {"metadata": {"uid": request.uid, "annotations": annotations}}, namespace=request.namespace
    )


async def wait_for(kube: Kube, clock: Clock, request: ResizeRequest, say: Say = _silent) -> str:
    """Wait until the pod has the size; `say` gets why it does not have it yet. Returns the status.

    Raises BadInput where it is refused, and where the pod ends or is deleted before; Outside where controller and agent
    say nothing for `ANSWER_S`. Only a size that waits for programs may take longer.
    """
    known, deadline = "", clock.monotonic() + ANSWER_S
    while True:
        pod = await _same_pod(kube, request)
        annotations = pod["metadata"].get("annotations") or {}
        if annotations.get(RESIZE) != request.written:
            raise BadInput(f"{request.title} was asked for another size meanwhile")
        status = annotations.get(RESIZE_STATUS) or ""
        answer = read_answer(status, request.written)
        if answer and answer.state == DONE:
            return str(status)
        if answer and answer.state == REFUSED:
            raise BadInput(f"{request.title} is not resized: {answer.why}")
        if pod_state(pod).ended:
            raise BadInput(f"{request.title} is not resized: {ENDED}")
        if status != known:
            if answer and answer.why:
                say(f"P{request.title[1:]}: {answer.why}.")
            known, deadline = status, clock.monotonic() + ANSWER_S
        for_programs = request.waits and answer is not None and answer.why not in (NOT_APPLIED, NOT_PLACED, NO_GRANT)
        if clock.monotonic() >= deadline and not for_programs:
            why = answer.why if answer else "the controller has not answered; `lamina doctor` shows whether it runs"
            raise Outside(f"{request.title} does not have the size after {ANSWER_S:.0f} s: {why}")
        await clock.sleep(_EVERY_S)


async def _same_pod(kube: Kube, request: ResizeRequest) -> Object:
    """The pod that was asked. Raises BadInput where it is gone."""
    try:
        pod = await kube.get(PODS, request.pod, namespace=request.namespace)
    except NotFound:
        pod = None
    if pod is None or pod["metadata"]["uid"] != request.uid:
        raise BadInput(f"{request.title} was deleted before it had the size")
    return pod


async def _pod(kube: Kube, namespace: str, pod: str) -> Object:
    try:
        return await kube.get(PODS, pod, namespace=namespace)
    except NotFound as error:
        raise await no_such_pod(kube, namespace, pod) from error
