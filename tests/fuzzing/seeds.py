"""What the fuzzers start from: texts and objects of the examples, and a usage file."""

import msgspec
import yaml

from tests.building import ROOT
from tests.fuzzing.targets import DESCRIBED, SOUND

EXAMPLES = ROOT / "examples"


def seeds(target: str) -> list[bytes]:
    """Sound input of a target."""
    if target == "configuration":
        return [path.read_bytes() for path in sorted((EXAMPLES / "configuration").rglob("*.yaml"))]
    if target == "usage_files":
        head = SOUND[: 1 << 15]
        return [SOUND, head[DESCRIBED:], b"\2" + head[DESCRIBED + 1 :]]
    documents = (each for path in sorted(EXAMPLES.glob("*.yaml")) for each in yaml.safe_load_all(path.read_text()))
    return [msgspec.json.encode(each) for each in documents if each and each.get("kind") == "Pod"]
