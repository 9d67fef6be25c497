"""ResourceClaims: which nodes offer devices, whether another driver hands out the same GPUs, and who waits. Pure."""

from collections.abc import Collection, Iterator

from lamina.core.field_types import ByClaimRule
from lamina.core.pod_status import is_over
from lamina.dra.names import DRIVER, HAMI_DRIVER, device_classes, differs
from lamina.dra.slices import digest_of
from lamina.operations.doctor.finding import Finding, State
from lamina.ports.kube import Object
from lamina.report.cluster_view import ClusterView
from lamina.report.device_taint_rules import tainting
from lamina.report.pods import pod_gpus
from lamina.report.reasons import CREATED, waiting_because

_OF_GPUS = (DRIVER, HAMI_DRIVER)
"""Names of drivers of other systems that hand out NVIDIA's GPUs."""
_IMAGES = ("dra-driver-nvidia-gpu", "k8s-dra-driver")
_CONTAINERS = ("gpus", "hami-kubelet-plugin")
"""Such a driver's containers; others in its pods, such as those for ComputeDomains, are harmless."""


def claim_drivers(
    slices: list[Object], pods: list[Object], served: Collection[str], by_claim: ByClaimRule = "never"
) -> Iterator[Finding]:
    """Findings about the drivers for claims on the nodes that Lamina serves. `by_claim` says which pods get claims."""
    own = [each for each in slices if digest_of(each)]
    yield _others(own, slices, pods, served)
    if own:
        yield _offering(own, served)
    elif by_claim != "never":
        fix = "set the chart value dra.enabled, or admission.byClaim to never"
        text = f"admission.byClaim is {by_claim}, but no node offers devices to claims, so such pods wait"
        yield Finding("claims", State.FAILED, text, fix)


def device_classes_of_claims(classes: list[Object], slices: list[Object]) -> Iterator[Finding]:
    """A finding about each class by which claims should get devices of Lamina, and do not get them."""
    drivers = sorted({each["spec"]["driver"] for each in slices if digest_of(each)})
    present = {each["metadata"]["name"]: each for each in classes}
    for wanted in (each for driver in drivers for each in device_classes(driver)):
        name = wanted["metadata"]["name"]
        expression = wanted["spec"]["selectors"][0]["cel"]["expression"]
        if name not in present:
            text = f"there is no DeviceClass {name}, so claims of this class wait"
            yield Finding(
                "device classes", State.FAILED, text, "the controller makes it within a minute; check its log"
            )
        elif differs(present[name], wanted):
            text = f"the DeviceClass {name} is not the one that Lamina makes, which selects {expression}"
            fix = (
                f"if nothing else needs it: kubectl delete deviceclass {name}; the controller makes it within a minute"
            )
            yield Finding("device classes", State.WARNING, text, fix)


def tainted_devices(rules: list[Object], slices: list[Object]) -> Iterator[Finding]:
    """A finding about each rule that taints devices of Lamina: a repair goes on, or the rule was forgotten."""
    for rule in tainting(rules, slices):
        fix = f"when the devices are to be used again: kubectl delete devicetaintrules {rule.name}"
        yield Finding("tainted devices", State.WARNING, rule.sentence, fix)


def _others(own: list[Object], slices: list[Object], pods: list[Object], served: Collection[str]) -> Finding:
    """Kubelet knows one driver per name, and a driver of another name would hand out the same GPUs."""
    names = {*_OF_GPUS, *(each["spec"].get("driver") for each in own)}
    publishing = {
        f"{each['spec']['driver']} on {each['spec']['nodeName']}"
        for each in slices
        if each["spec"].get("driver") in names and each["spec"].get("nodeName") in served and not digest_of(each)
    }
    running = {
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']} on {pod['spec']['nodeName']}"
        for pod in pods
        if pod["spec"].get("nodeName") in served and _is_driver(pod)
    }
    if not publishing | running:
        return Finding("other drivers for claims", State.OK, "none")
    fix = (
        "keep such drivers off the nodes that Lamina serves, because they hand out the same GPUs, and kubelet uses the "
        "driver of a name that registered last; with NVIDIA's chart: --set resources.gpus.enabled=false"
    )
    return Finding("other drivers for claims", State.FAILED, ", ".join(sorted(publishing | running)), fix)


def _is_driver(pod: Object) -> bool:
    return any(
        container.get("name") in _CONTAINERS and any(part in container.get("image", "") for part in _IMAGES)
        for container in pod["spec"]["containers"]
    )


def _offering(own: list[Object], served: Collection[str]) -> Finding:
    without = sorted(set(served) - {each["spec"].get("nodeName") for each in own})
    if not without:
        count = sum(len(each["spec"].get("devices") or ()) for each in own)
        return Finding("claims", State.OK, f"{count} device{' is' if count == 1 else 's are'} offered to claims")
    fix = "start their agents with --dra, which the chart value dra.enabled does, or check their logs"
    return Finding("claims", State.WARNING, f"nodes that offer nothing to claims: {', '.join(without)}", fix)


_SHOWN = 5


def claim_pods(cluster: ClusterView) -> Iterator[Finding]:
    """One finding where pods have such claims. The cluster's claims have been read."""
    pods = [pod for pod in cluster.pods if not is_over(pod) and pod_gpus(cluster, pod).claims]
    waiting = sorted(_name(pod) for pod in pods if _waits(cluster, pod))
    if waiting:
        more = len(waiting) - _SHOWN
        names = f"{', '.join(waiting[:_SHOWN])}{f' and {more} more' if more > 0 else ''}"
        fix = "`lamina why POD` says what each of them waits for, or why its claim is refused"
        yield Finding("pods with claims", State.WARNING, f"{len(waiting)} of {len(pods)} wait: {names}", fix)
    elif pods:
        yield Finding("pods with claims", State.OK, f"none of {len(pods)} waits")


def _waits(cluster: ClusterView, pod: Object) -> bool:
    return waiting_because(cluster, pod) not in ("", CREATED)


def _name(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
