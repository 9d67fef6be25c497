"""Claims of a random shape for the devices of `inventories`."""

from random import Random
from typing import Any

from lamina.ports.kube import Object
from tests.cluster.allocation.inventories import GPU, NIC, TAINT

NAMESPACE = "cases"
"""With the label that lets claims have adminAccess."""
SELECTORS = (
    f"device.attributes['{GPU}'].index == 0",
    f"device.attributes['{GPU}'].index in [1, 2]",
    f"device.attributes['{GPU}'].model.startsWith('H100')",
    f"device.attributes['{GPU}'].model.lowerAscii().matches('^a100.*')",
    f"device.attributes['{GPU}'].ecc",
    f"!device.attributes['{GPU}'].ecc || device.attributes['example.com'].rack == 'r1'",
    f"device.attributes['{GPU}'].driver.isGreaterThan(semver('560.0.0'))",
    f"device.attributes['{GPU}'].driver.major() == 550",
    f"device.capacity['{GPU}'].memory.compareTo(quantity('40Gi')) >= 0",
    f"device.capacity['{GPU}'].memory.isLessThan(quantity('64Gi'))",
    f"has(device.attributes['{GPU}'].numa) && device.attributes['{GPU}'].numa == 1",
    f"device.attributes['{GPU}'].numa == 0",
    f"device.attributes['{GPU}'].parent == 'card-0'",
    f"'{GPU}' in device.attributes && device.attributes['{GPU}'].type == 'mig'",
    f"device.driver == '{NIC}' ? true : device.attributes['{GPU}'].type == 'gpu'",
    "device.attributes['example.org'].absent == 1",
    "!('example.org' in device.attributes)",
    "!device.allowMultipleAllocations",
)
ATTRIBUTES = (
    f"{GPU}/model",
    f"{GPU}/numa",
    f"{GPU}/parent",
    f"{GPU}/index",
    f"{GPU}/ecc",
    f"{NIC}/numa",
    f"{GPU}/driver",
)
AMOUNTS = ("512Mi", "1Gi", "4Gi", "5Gi", "9Gi", "10Gi", "15Gi", "20Gi", "39Gi", "40Gi", "41Gi")


def claims(random: Random, name: str) -> list[Object]:
    """The claims of one pod."""
    count = random.choice((1, 1, 1, 2))
    return [_claim(random, f"{name}-{number}") for number in range(count)]


def _claim(random: Random, name: str) -> Object:
    requests = [_request(random, f"r{number}") for number in range(random.choice((1, 1, 1, 2, 2, 3)))]
    devices: Object = {"requests": requests}
    if random.random() < 0.3:
        devices["constraints"] = [_constraint(random, requests)]
    if random.random() < 0.2:
        parameters = {"apiVersion": "example.com/v1", "kind": "Own"}
        chosen = random.choice(([], [requests[0]["name"]]))
        devices["config"] = [{"requests": chosen, "opaque": {"driver": GPU, "parameters": parameters}}]
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"devices": devices}}


def _request(random: Random, name: str) -> Object:
    if random.random() < 0.25:
        alternatives = [{"name": f"s{at}", **_wanted(random)} for at in range(random.randint(2, 3))]
        return {"name": name, "firstAvailable": alternatives}
    wanted = _wanted(random)
    if random.random() < 0.12:
        wanted["adminAccess"] = True
    return {"name": name, "exactly": wanted}


def _wanted(random: Random) -> Object:
    (cls,) = random.choices(("gpu", "mig", "nic", "any", "shared", "configured", "absent"), (10, 4, 2, 3, 3, 2, 0.5))
    wanted: Object = {"deviceClassName": cls}
    if random.random() < 0.35:
        wanted["selectors"] = [{"cel": {"expression": random.choice(SELECTORS)}}]
    (mode,) = random.choices(("one", "count", "all"), (12, 3, 2))
    if mode == "count":
        wanted |= {"allocationMode": "ExactCount", "count": random.choice((2, 2, 3))}
    elif mode == "all":
        wanted["allocationMode"] = "All"
    if random.random() < 0.25:
        wanted["tolerations"] = [_toleration(random)]
    if random.random() < 0.45:
        wanted["capacity"] = {"requests": _amounts(random)}
    return wanted


def _amounts(random: Random) -> dict[str, str]:
    found = {}
    if random.random() < 0.9:
        found["memory"] = random.choice(AMOUNTS)
    if random.random() < 0.3:
        found["cores"] = random.choice(("0", "10", "50", "60", "100"))
    return found or {"absent": "1"}


def _toleration(random: Random) -> Object:
    made: dict[str, Any] = {"operator": random.choice(("Exists", "Equal")), "key": TAINT}
    if made["operator"] == "Equal":
        made["value"] = random.choice(("yes", "no"))
    elif random.random() < 0.3:
        del made["key"]
    if random.random() < 0.3:
        made["effect"] = random.choice(("NoSchedule", "NoExecute"))
    return made


def _constraint(random: Random, requests: list[Object]) -> Object:
    named = random.choice(([], [each["name"] for each in requests[:2]]))
    kind = random.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
    return {"requests": named, kind: random.choice(ATTRIBUTES)}
