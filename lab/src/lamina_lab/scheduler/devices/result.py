"""The result of an allocation, as `status.allocation` of a claim has it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lamina.ports.kube import Object
from lamina_lab.kubernetes import objects
from lamina_lab.kubernetes.quantities import written
from lamina_lab.scheduler.devices.requests import ClaimRequests
from lamina_lab.scheduler.devices.search import Chosen


def allocation(
    claim: ClaimRequests,
    chosen: Sequence[Chosen],
    classes: Mapping[str, Object],
    node: Object,
    new_id: Callable[[], str],
) -> Object:
    """The allocation of `claim` to the devices `chosen` for it on `node`."""
    devices: Object = {"results": [_result(entry, new_id) for entry in chosen]}
    if config := [*_of_classes(chosen, classes), *_of_claim(claim, chosen)]:
        devices["config"] = config
    made: Object = {"devices": devices}
    if selector := _node_selector(chosen, node):
        made["nodeSelector"] = selector
    return made


def _result(entry: Chosen, new_id: Callable[[], str]) -> Object:
    id = entry.device.id
    result: Object = {"request": entry.alternative.name, "driver": id.driver, "pool": id.pool, "device": id.device}
    if entry.alternative.admin:
        result["adminAccess"] = True
    if entry.alternative.tolerations:
        result["tolerations"] = [dict(toleration) for toleration in entry.alternative.tolerations]
    if entry.device.conditions:
        result["bindingConditions"] = list(entry.device.conditions)
        result["bindingFailureConditions"] = list(entry.device.failures)
    if entry.consumed is not None:
        result["shareID"] = new_id()
        result["consumedCapacity"] = {name: written(value) for name, value in entry.consumed.items()}
    return result


def _of_classes(chosen: Sequence[Chosen], classes: Mapping[str, Object]) -> Iterator[Object]:
    """The configuration of classes comes first, so that a claim's own overrides it."""
    for name, device_class in {entry.alternative.name: entry.alternative.device_class for entry in chosen}.items():
        for config in objects.spec(classes[device_class]).get("config") or ():
            yield {**config, "source": "FromClass", "requests": [name]}


def _of_claim(claim: ClaimRequests, chosen: Sequence[Chosen]) -> Iterator[Object]:
    """Configuration for alternatives that were not chosen is left out."""
    for config in (objects.spec(claim.claim).get("devices") or {}).get("config") or ():
        names = tuple(config.get("requests") or ())
        if any(entry.alternative.named_by(names) for entry in chosen):
            yield {**config, "source": "FromClaim"}


def _node_selector(chosen: Sequence[Chosen], node: Object) -> Object:
    """Where the devices can be used: this node if one is local to it, else where all of them can be."""
    terms: list[Mapping[str, Any]] = []
    for device in (entry.device for entry in chosen):
        if device.place.get("nodeName") or device.binds_to_node:
            name = {"key": "metadata.name", "operator": "In", "values": [objects.name(node)]}
            return {"nodeSelectorTerms": [{"matchFields": [name]}]}
        terms += (device.place.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    if not terms:
        return {}
    together = {
        key: [requirement for term in terms for requirement in term.get(key) or ()]
        for key in ("matchExpressions", "matchFields")
    }
    return {"nodeSelectorTerms": [{key: found for key, found in together.items() if found}]}
