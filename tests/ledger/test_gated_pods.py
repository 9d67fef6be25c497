"""Which claims kube-scheduler may allocate once their pods have lost the gate."""

from lamina.dialects.claim_gate import GATE
from lamina.ledger.gated_pods import GatedPod, claims_to_allocate
from lamina.ledger.observed_claims import ObservedClaims
from lamina.ports.kube import Object


def pod(name: str, *gates: str, namespace: str = "team", node: str = "", **status: object) -> Object:
    return {
        "metadata": {"namespace": namespace, "name": name, "resourceVersion": "7"},
        "spec": {
            "nodeName": node,
            "schedulingGates": [{"name": gate} for gate in gates],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": f"of-{name}"}],
        },
        "status": status,
    }


def claims(*names: str) -> ObservedClaims:
    observed = ObservedClaims()
    for namespace in ("team", "other"):
        for name in names:
            observed.observe({"metadata": {"namespace": namespace, "name": name, "uid": f"{namespace}-{name}"}})
    return observed


def test_claims_of_pods_of_the_namespace_without_the_gate_are_next() -> None:
    written = [pod("a"), pod("b", GATE), pod("c", "example.com/other"), pod("d", namespace="other")]
    waiting = [found for each in written if (found := GatedPod.of(each)) is not None]
    observed = claims("of-a", "of-b", "of-c", "of-d")
    assert [each.uid for each in claims_to_allocate("team", waiting, observed)] == ["team-of-a", "team-of-c"]
    assert [each.uid for each in claims_to_allocate("other", waiting, observed)] == ["other-of-d"]


def test_pods_with_a_node_and_pods_that_are_over_wait_no_more() -> None:
    assert GatedPod.of(pod("a", node="node-0")) is None
    assert GatedPod.of(pod("a", phase="Failed")) is None


def test_a_claim_that_is_not_made_yet_is_known_to_lack() -> None:
    made = pod("a")
    unmade = pod("b")
    unmade["spec"]["resourceClaims"].append({"name": "more", "resourceClaimTemplateName": "t"})
    found = [GatedPod.of(made), GatedPod.of(unmade)]
    assert [each and (each.claims, each.unmade) for each in found] == [(("of-a",), False), (("of-b",), True)]
