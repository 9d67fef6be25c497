"""Which pods tainted devices evict and when, as pure functions of claims, slices and rules."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lamina.dra.selectors import selects
from lamina.ports.kube import PODS, Object
from lamina.ports.kube.moments import rfc3339
from lamina_lab.kubernetes import objects
from lamina_lab.kubernetes.device_taints import added_taints, taint_of, taints_of_slice
from lamina_lab.kubernetes.taints import eviction_delay_s, untolerated

EVICTING = "EvictionInProgress"
Find = Callable[[str], Object | None]
"""Finds a pod by its key."""


def results(claim: Object) -> Sequence[Mapping[str, Any]]:
    """The devices that are allocated for a claim."""
    allocation = objects.status(claim).get("allocation") or {}
    found: Sequence[Mapping[str, Any]] = (allocation.get("devices") or {}).get("results") or ()
    return found


def delay_s(claim: Object, slices: Iterable[Object], rules: Iterable[Object], now: float) -> float | None:
    """Seconds until the pods of a claim are evicted. None means never; 0 or less means now."""
    known, given = list(slices), list(rules)
    delays = [
        eviction_delay_s(
            result.get("tolerations") or (), (*taints_of_slice(known, result), *added_taints(given, result)), now
        )
        for result in results(claim)
    ]
    return min((delay for delay in delays if delay is not None), default=None)


def users(claim: Object, find: Find) -> Iterator[Object]:
    """The pods that have a claim and have not ended."""
    for entry in objects.status(claim).get("reservedFor") or ():
        pod = find(f"{objects.namespace(claim)}/{entry.get('name')}") if entry.get("resource") == PODS.plural else None
        if pod is not None and objects.uid(pod) == entry.get("uid") and not objects.is_finished(pod):
            yield pod


def condition(rule: Object, claims: Iterable[Object], find: Find, now: float) -> Object:
    """What a rule says about the pods that it evicts, or with the effect None would evict."""
    taint = taint_of(rule)
    as_eviction = {**taint, "effect": "NoExecute"}
    evicted = {
        objects.key(pod): objects.namespace(pod)
        for claim in claims
        if any(
            selects(rule, result) and untolerated([as_eviction], result.get("tolerations") or ())
            for result in results(claim)
        )
        for pod in users(claim, find)
    }
    evicts = taint.get("effect") == "NoExecute" and bool(evicted)
    number, namespaces = len(evicted), len(set(evicted.values()))
    counted = f"{number} pod{'' if number == 1 else 's'} in {namespaces} namespace{'' if namespaces == 1 else 's'}"
    said = {
        "NoExecute": f"{counted} {'needs' if number == 1 else 'need'} to be evicted",
        "None": f"the effect NoExecute would evict {counted}",
    }
    return {
        "type": EVICTING,
        "status": "True" if evicts else "False",
        "reason": "PodsPendingEviction" if evicts else "NoPods" if not evicted else "NoEffect",
        "message": said.get(str(taint.get("effect")), "the effect evicts no pods"),
        "observedGeneration": objects.meta(rule).get("generation", 1),
        "lastTransitionTime": rfc3339(now),
    }
