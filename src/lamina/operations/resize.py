"""Asking for another size of a running container, and waiting until it has it."""

from lamina.controller.sizes.changes import DONE, WAITING
from lamina.controller.sizes.wishes import read_wishes
from lamina.errors import BadInput
from lamina.model.sizes import RESIZE, RESIZE_STATUS
from lamina.ports.clock import Clock
from lamina.ports.kube import PODS, Kube, NotFound, Object

_EVERY_S = 0.5


async def ask(
    kube: Kube, namespace: str, pod: str, container: str, *, memory_mib: int | None, cores: int | None
) -> str:
    """Annotate the pod; the first container if none is named. Returns the annotation. Raises BadInput."""
    if memory_mib is None and cores is None:
        raise BadInput("nothing to resize; set --memory, --cores or both")
    obj = await _pod(kube, namespace, pod)
    name = container or obj["spec"]["containers"][0]["name"]
    if name not in [
        each["name"] for field in ("initContainers", "containers") for each in obj["spec"].get(field) or ()
    ]:
        raise BadInput(f"pod {namespace}/{pod} has no container {name}")
    amounts = f"{name}={'' if memory_mib is None else memory_mib}" + ("" if cores is None else f",{cores}")
    before = (obj["metadata"].get("annotations") or {}).get(RESIZE) or ""
    others = [item for item in before.split(";") if item and item.partition("=")[0].strip() != name]
    wish = ";".join([*others, amounts])
    read_wishes(wish)
    change = {"metadata": {"uid": obj["metadata"]["uid"], "annotations": {RESIZE: wish, RESIZE_STATUS: None}}}
    await kube.patch(PODS, pod, change, namespace=namespace)
    return wish


async def wait(kube: Kube, clock: Clock, namespace: str, pod: str, wish: str) -> str:
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
