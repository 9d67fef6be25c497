"""Asking for another size of running containers, and waiting until they have it."""

from collections.abc import AsyncIterator
from typing import NamedTuple

from lamina.controller.ledger.pod_stages import pod_state
from lamina.controller.sizes.changes import DONE, WAITING
from lamina.controller.sizes.wishes import read_wishes
from lamina.dialects import WantedSize
from lamina.errors import BadInput
from lamina.model.sizes import RESIZE, RESIZE_STATUS, RESIZE_WHEN_HELD, WAIT
from lamina.operations.cluster_view import text_in_force
from lamina.operations.template_resize import TemplateResizer
from lamina.operations.workloads import find_workload, pods_of
from lamina.ports.clock import Clock
from lamina.ports.kube import PODS, Kube, NotFound, Object

_EVERY_S = 0.5


class Resize(NamedTuple):
    """Another size for one container, the first one of a pod if none is named. None leaves an amount as it is.

    `waits`: a size below what programs hold waits for them instead of being refused.
    """

    container: str
    memory_mib: int | None
    cores: int | None
    waits: bool = False


async def resize_pod(kube: Kube, clock: Clock, namespace: str, pod: str, size: Resize, *, wait: bool) -> str:
    """Ask, and with `wait` wait. Returns a sentence. Raises BadInput where the size is refused."""
    wish = await ask(kube, namespace, pod, size)
    status = await wait_for(kube, clock, namespace, pod, wish) if wait else f"asked for {wish}"
    return f"Pod {namespace}/{pod}: {status}."


async def resize_workload(
    kube: Kube, clock: Clock, namespace: str, which: str, size: Resize, *, rollout: bool, wait: bool
) -> AsyncIterator[str]:
    """Resize the running pods of kind/name, then its template. Yields sentences. Raises BadInput, Outside and NotYet.

    With `wait`, the template is not changed unless all pods have the size.
    """
    _check(size)
    _, workload = await find_workload(kube, namespace, which)
    names = sorted(each["metadata"]["name"] for each in await pods_of(kube, workload) if _runs(each))
    wishes = {name: await ask(kube, namespace, name, size) for name in names}
    for name, wish in wishes.items():
        status = await wait_for(kube, clock, namespace, name, wish) if wait else f"asked for {wish}"
        yield f"Pod {namespace}/{name}: {status}."
    templates = TemplateResizer(kube, clock, (await text_in_force(kube)).config)
    wanted = WantedSize(size.memory_mib, size.cores)
    yield await templates.resize(namespace, which, size.container, wanted, rollout=rollout)


def _runs(pod: Object) -> bool:
    return (
        bool(pod["spec"].get("nodeName")) and not pod["metadata"].get("deletionTimestamp") and not pod_state(pod).ended
    )


def _check(size: Resize) -> None:
    if size.memory_mib is None and size.cores is None:
        raise BadInput("nothing to resize; set --memory, --cores or both")


async def ask(kube: Kube, namespace: str, pod: str, size: Resize) -> str:
    """Annotate the pod. Returns the annotation. Raises BadInput."""
    _check(size)
    obj = await _pod(kube, namespace, pod)
    name = size.container or obj["spec"]["containers"][0]["name"]
    if name not in [
        each["name"] for field in ("initContainers", "containers") for each in obj["spec"].get(field) or ()
    ]:
        raise BadInput(f"pod {namespace}/{pod} has no container {name}")
    amounts = f"{name}={size.memory_mib or ''}" + (f",{size.cores}" if size.cores else "")
    before = (obj["metadata"].get("annotations") or {}).get(RESIZE) or ""
    others = [item for item in before.split(";") if item and item.partition("=")[0].strip() != name]
    wish = ";".join([*others, amounts])
    read_wishes(wish)
    annotations = {RESIZE: wish, RESIZE_WHEN_HELD: WAIT if size.waits else None, RESIZE_STATUS: None}
    change = {"metadata": {"uid": obj["metadata"]["uid"], "annotations": annotations}}
    await kube.patch(PODS, pod, change, namespace=namespace)
    return wish


async def wait_for(kube: Kube, clock: Clock, namespace: str, pod: str, wish: str) -> str:
    """Wait until the pod has the size. Returns the status. Raises BadInput where it is refused."""
    while True:
        annotations = (await _pod(kube, namespace, pod))["metadata"].get("annotations") or {}
        if annotations.get(RESIZE) != wish:
            raise BadInput(f"pod {namespace}/{pod} was asked for another size meanwhile")
        status = annotations.get(RESIZE_STATUS) or ""
        state, _, rest = status.partition(f" {wish}")
        if state == DONE:
            return status
        if status and state != WAITING:
            raise BadInput(f"pod {namespace}/{pod} is not resized{rest}")
        await clock.sleep(_EVERY_S)


async def _pod(kube: Kube, namespace: str, pod: str) -> Object:
    try:
        return await kube.get(PODS, pod, namespace=namespace)
    except NotFound as error:
        raise BadInput(f"there is no pod {namespace}/{pod}") from error
