"""What the generator makes is what the API server accepts, and the same for the same seed."""

import json
import re

from lamina.core.object_names import is_object_name
from lamina.ports.kube import GRANTS, INVENTORIES, PODS, Object
from tests.hostile_objects.objects import MAX_OBJECT, objects
from tests.hostile_objects.unusable import is_unusable

QUANTITY = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?\d+))?")
SEED, COUNT = 1, 300


def quantities(pod: Object) -> set[str]:
    parts = [container.get("resources") or {} for container in pod["spec"]["containers"]]
    return {amount for part in parts for key in ("limits", "requests") for amount in (part.get(key) or {}).values()}


def test_all_kinds_are_made_and_valid() -> None:
    made = list(objects(SEED, COUNT, []))
    assert len({resource for resource, _ in made}) == 11
    for resource, obj in made:
        assert len(json.dumps(obj, ensure_ascii=False).encode()) <= MAX_OBJECT
        assert is_object_name(obj["metadata"]["name"]), obj["metadata"]["name"]
        if resource is PODS:
            assert obj["spec"]["containers"]
            assert all(QUANTITY.fullmatch(amount) for amount in quantities(obj))
    kinds = {resource for resource, obj in made if is_unusable(resource, obj)}
    assert {INVENTORIES, GRANTS} <= kinds, "some cannot be used"
    assert max(len(json.dumps(obj)) for _, obj in made) > MAX_OBJECT / 3, "there are large ones"


def test_a_seed_decides_everything() -> None:
    assert list(objects(SEED, 20, [])) == list(objects(SEED, 20, []))
    assert list(objects(SEED, 20, [])) != list(objects(SEED + 1, 20, []))
