"""The ResourceClaims of the cluster, and which GPUs kube-scheduler has allocated to them.

The scheduler writes an allocation into the status of a claim some time before the agent of the node prepares the claim
and publishes it. Meanwhile only that status says that the GPU takes no grants.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any

from msgspec import Struct, structs

from lamina.core.gpus import Inventory, Mode
from lamina.dra.containers import claims_by_entry, claims_of, entries_by_container
from lamina.dra.names import DRIVER, class_names, device_number
from lamina.dra.quota_amounts import alternatives


class ObservedClaim(Struct, frozen=True, kw_only=True):
    """`results` are the devices of the driver that it has, and `gpus` the numbers of their GPUs by node. `for_gpus`: it
    asks for devices by a class of the driver, or has some. `pods` are the UIDs of those for which it is reserved."""

    namespace: str
    name: str
    uid: str
    requests: tuple[Mapping[str, Any], ...]
    results: tuple[Mapping[str, Any], ...]
    gpus: Mapping[str, Set[int]]
    for_gpus: bool
    pods: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ObservedClaims:
    """Those of one driver. `changed` is called with each node on which other GPUs are allocated than before."""

    def __init__(self, driver: str = DRIVER) -> None:
        self._driver = driver
        self._made = class_names(driver)
        self._classes = set(self._made)
        self._claims: dict[tuple[str, str], ObservedClaim] = {}
        self._templates: dict[tuple[str, str], Mapping[str, Any]] = {}
        self.changed: Callable[[str], None] = lambda node: None
        self.followed = False
        """Whether the claims of the cluster are read at all."""
        self.deallocations = 0
        """How often a GPU was no longer allocated to a claim."""

    def observe(self, claim: Mapping[str, Any]) -> None:
        """The claim is as given."""
        self._put(self._read(claim), _key(claim))

    def observe_class(self, found: Mapping[str, Any], *, gone: bool = False) -> None:
        """The DeviceClass is as given, or gone. One that names the driver in an expression counts as a class of it."""
        name, selectors = found["metadata"]["name"], (found.get("spec") or {}).get("selectors") or ()
        expressions = [str((each.get("cel") or {}).get("expression") or "") for each in selectors]
        named = any(f"{quote}{self._driver}{quote}" in each for each in expressions for quote in "'\"")
        if named and not gone:
            self._classes.add(name)
        elif name not in self._made:
            self._classes.discard(name)

    def is_own_class(self, name: str) -> bool:
        """Whether the DeviceClass selects devices of the driver."""
        return name in self._classes

    def observe_template(self, template: Mapping[str, Any]) -> None:
        """The ResourceClaimTemplate is as given. The controller needs none: it waits until the claims are made."""
        self._templates[_key(template)] = (template.get("spec") or {}).get("spec") or {}

    def remove(self, claim: Mapping[str, Any]) -> None:
        """The claim is gone."""
        self._put(None, _key(claim))

    def of(self, pod: Mapping[str, Any]) -> list[ObservedClaim]:
        """The claims of a pod that have been observed."""
        return self.named(pod["metadata"].get("namespace") or "", claims_of(pod))

    def named(self, namespace: str, names: Iterable[str]) -> list[ObservedClaim]:
        """Those of these names that have been observed, each once."""
        return [found for name in dict.fromkeys(names) if (found := self._claims.get((namespace, name)))]

    def by_entry(self, pod: Mapping[str, Any]) -> dict[str, ObservedClaim]:
        """The claims by their entry in the spec of the pod: those that have been observed, and those that will be made
        of observed templates."""
        entries = (pod.get("spec") or {}).get("resourceClaims")
        if not entries:
            return {}
        meta, made = pod["metadata"], claims_by_entry(pod)
        found = {}
        for each in entries:
            entry, namespace = each["name"], meta.get("namespace") or ""
            template = self._templates.get((namespace, each.get("resourceClaimTemplateName") or ""))
            if claim := self._claims.get((namespace, made[entry])):
                found[entry] = claim
            elif not made[entry] and template is not None:
                uid = f"{meta.get('uid')}/{entry}"
                named = {"namespace": namespace, "name": f"{meta.get('name')}-{entry}", "uid": uid}
                found[entry] = self._read({"metadata": named, "spec": template})
        return found

    def refusal(self, pod: Mapping[str, Any], ticket_holders: Set[str]) -> str:
        """Why a container cannot have what it asks for by a claim and by a grant, as a sentence, or nothing. A claim
        that kube-scheduler makes stands for resources, and is not one more."""
        entries = {entry for entry, claim in self.by_entry(pod).items() if claim.for_gpus}
        uses = entries_by_container(pod) if entries else {}
        both = [name for name in sorted(ticket_holders) if not entries.isdisjoint(uses.get(name, ()))]
        if not both:
            return ""
        return (
            f'container "{both[0]}" uses a ResourceClaim for GPUs and requests GPUs by resources, but a container has '
            "one set of limits; ask for both in the claim, or use two containers"
        )

    def marked(self, inventory: Inventory) -> Inventory:
        """The inventory with GPUs that are allocated to claims as those that take no grants."""
        here = self.allocated_on(inventory)
        if all(gpu.mode is Mode.TIMESLICE for gpu in inventory.gpus if gpu.uuid in here):
            return inventory
        gpus = (structs.replace(gpu, mode=Mode.TIMESLICE) if gpu.uuid in here else gpu for gpu in inventory.gpus)
        return structs.replace(inventory, gpus=tuple(gpus))

    def allocated_on(self, inventory: Inventory) -> frozenset[str]:
        """The UUIDs of the GPUs of a node that are allocated to claims."""
        numbers = self._numbers_on(inventory.node)
        return frozenset(gpu.uuid for gpu in inventory.gpus if gpu.number in numbers)

    def __iter__(self) -> Iterator[ObservedClaim]:
        return iter(list(self._claims.values()))

    def _numbers_on(self, node: str) -> Set[int]:
        return {number for claim in self._claims.values() for number in claim.gpus.get(node, ())}

    def _put(self, claim: ObservedClaim | None, key: tuple[str, str]) -> None:
        before = self._claims.pop(key, None)
        if claim is not None:
            self._claims[key] = claim
        had, has = before.gpus if before else {}, claim.gpus if claim else {}
        for node in had.keys() | has.keys():
            if had.get(node) != has.get(node):
                self.deallocations += bool(set(had.get(node, ())) - set(has.get(node, ())))
                self.changed(node)

    def _read(self, claim: Mapping[str, Any]) -> ObservedClaim:
        status = claim.get("status") or {}
        devices = (status.get("allocation") or {}).get("devices") or {}
        results = [each for each in devices.get("results") or () if each.get("driver") == self._driver]
        gpus: dict[str, set[int]] = {}
        for result in results:
            number = device_number(str(result.get("device")))
            if number is not None and not result.get("adminAccess"):
                gpus.setdefault(str(result.get("pool")), set()).add(number)
        requests = ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ()
        asked = {str(each.get("deviceClassName")) for request in requests for each in alternatives(request)}
        namespace, name = _key(claim)
        return ObservedClaim(
            namespace=namespace,
            name=name,
            uid=claim["metadata"]["uid"],
            requests=tuple(requests),
            results=tuple(results),
            gpus=gpus,
            for_gpus=bool(gpus) or any(map(self.is_own_class, asked)),
            pods=tuple(each["uid"] for each in status.get("reservedFor") or () if each.get("resource") == "pods"),
        )


def _key(claim: Mapping[str, Any]) -> tuple[str, str]:
    return claim["metadata"]["namespace"], claim["metadata"]["name"]
