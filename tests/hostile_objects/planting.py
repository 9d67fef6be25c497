"""Puts odd objects into a cluster: `python -m tests.hostile_objects.planting KUBECONFIG SEED COUNT`.

It prints how many of each kind the API server has taken. It can run where only a cluster's own network is.
"""

import asyncio
import sys
from collections import Counter
from pathlib import Path

from lamina.errors import Outside
from lamina.ports.kube import CONFIG_MAPS, PODS, Object
from lamina.ports.kube.client import connect
from tests.hostile_objects.objects import objects, put

_OF_OTHERS = ("overhead", "runtimeClassName", "priority", "env", "restartPolicy")
"""Fields of pods and containers that need objects of other kinds, or that old servers do not know."""


async def plant(kubeconfig: Path, seed: int, count: int) -> Counter[str]:
    """Create odd objects, or replace those with their names; how many of each kind were taken. Pods fit no node."""
    kube = await connect(kubeconfig)
    taken: Counter[str] = Counter()
    try:
        for resource, obj in objects(seed, count, []):
            if resource is CONFIG_MAPS:
                continue  # A controller that starts with a configuration that is refused rightly waits for another.
            if resource is PODS:
                obj = _admissible(obj)
            try:
                await put(kube, resource, obj)
                taken[resource.plural] += 1
            except Outside:
                pass  # The server checks more than the generator knows, and does not serve all kinds.
    finally:
        await kube.close()
    return taken


def _admissible(pod: Object) -> Object:
    """The pod without what only other plug-ins of the API server would refuse, and for no node that there is."""
    spec = {key: value for key, value in pod["spec"].items() if key not in _OF_OTHERS and value is not None}
    for kind in ("containers", "initContainers"):
        spec[kind] = [_named(each) for each in spec.get(kind) or ()]
    return {"metadata": pod["metadata"], "spec": spec | {"nodeSelector": {"odd": "odd"}}}


def _named(container: Object) -> Object:
    """A container with an image, and with as much requested as limited of what is no CPU or memory."""
    kept = {key: value for key, value in container.items() if key not in _OF_OTHERS and value is not None}
    limits = (kept.pop("resources", None) or {}).get("limits") or {}
    return kept | {"image": "none", "resources": {"limits": limits}}


def main() -> int:
    kubeconfig, seed, count = sys.argv[1:]
    taken = asyncio.run(plant(Path(kubeconfig), int(seed), int(count)))
    print(*(f"{kind}={number}" for kind, number in sorted(taken.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
