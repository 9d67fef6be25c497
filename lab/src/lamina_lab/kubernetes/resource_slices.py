"""Resource slices: of each pool, only those of the newest generation count."""

from collections.abc import Iterable

from lamina.ports.kube import Object
from lamina_lab.kubernetes import objects


def newest_slices(slices: Iterable[Object]) -> dict[tuple[str, str], list[Object]]:
    """The slices that count, by driver and pool."""
    newest: dict[tuple[str, str], list[Object]] = {}
    for entry in slices:
        spec = objects.spec(entry)
        found = newest.setdefault((spec["driver"], spec["pool"]["name"]), [])
        if found and _generation(entry) > _generation(found[0]):
            found.clear()
        if not found or _generation(entry) == _generation(found[0]):
            found.append(entry)
    return newest


def _generation(entry: Object) -> int:
    return int(objects.spec(entry)["pool"].get("generation") or 0)
