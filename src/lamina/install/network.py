"""Network policies. A client of the extender can bind pods, so only the scheduler may reach it, also where it has a
certificate.

Kubelet's probes pass any policy. The API server is not a pod and cannot be selected, so the admission port is open to
all pods; it changes nothing, tells nothing about other namespaces, and is served by a program that bounds what each
request can cost.
"""

from typing import Any

from lamina.install import controller, scheduler
from lamina.install.accounts import SCHEDULER_WANTED
from lamina.install.agent import METRICS_PORT
from lamina.install.dashboard import DASHBOARD_PORT, DASHBOARD_WANTED
from lamina.install.names import AGENT, CONTROLLER, DASHBOARD, SCHEDULER, chosen, meta
from lamina.install.terms import Each, Given, Value, When

_EXTENDER_FROM = Value("networkPolicy.extenderFrom")
_METRICS_FROM = Value("networkPolicy.metricsFrom")
_ENABLED = Given(Value("networkPolicy.enabled"))


def network() -> list[Any]:
    """The policies of all components."""
    extender = _ingress(controller.EXTENDER_PORT) | {"from": [Each(_EXTENDER_FROM)]}
    extender["ports"].append(When(controller.EXTENDER_HTTP, _port(controller.EXTENDER_HTTP_PORT)))
    # A rule with an empty list would allow all peers.
    controller_rules = [
        When(Given(_EXTENDER_FROM), extender),
        _ingress(controller.ADMISSION_PORT),
        _metrics_rule(controller.METRICS_PORT),
        _metrics_rule(controller.ADMISSION_METRICS_PORT),
    ]
    policies = [
        _policy(CONTROLLER, controller_rules),
        _policy(AGENT, [_metrics_rule(METRICS_PORT)]),
        When(SCHEDULER_WANTED, _policy(SCHEDULER, [_metrics_rule(scheduler.PORT)])),
        When(DASHBOARD_WANTED, _policy(DASHBOARD, [_ingress(DASHBOARD_PORT)])),  # it asks who calls
    ]
    return [When(_ENABLED, policy) for policy in policies]


def _policy(part: str, ingress: list[Any]) -> dict[str, Any]:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": meta(part, part),
        "spec": {"podSelector": {"matchLabels": chosen(part)}, "policyTypes": ["Ingress"], "ingress": ingress},
    }


def _ingress(port: int) -> dict[str, Any]:
    return {"ports": [_port(port)]}


def _port(port: int) -> dict[str, Any]:
    return {"port": port, "protocol": "TCP"}


def _metrics_rule(port: int) -> dict[str, Any]:
    return _ingress(port) | {"from": When(Given(_METRICS_FROM), _METRICS_FROM)}
