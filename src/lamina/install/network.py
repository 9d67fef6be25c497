"""Who may talk to our pods. The extender has no login, and who reaches it can have pods bound: the scheduler alone may.

Kubelet's probes pass any policy. The API server is no pod and cannot be named, so admission is open to all; it answers
what anybody may know and changes nothing.
"""

from typing import Any

from lamina.install import control, scheduler
from lamina.install.accounts import SCHEDULER_WANTED
from lamina.install.agent import METRICS_PORT
from lamina.install.names import AGENT, CONTROL, SCHEDULER, chosen, meta
from lamina.install.terms import Each, Given, Value, When

_EXTENDER_FROM = Value("networkPolicy.extenderFrom")
_METRICS_FROM = Value("networkPolicy.metricsFrom")
_ENABLED = Given(Value("networkPolicy.enabled"))


def network() -> list[Any]:
    """The policies of all parts."""
    extender = _ingress(control.EXTENDER_PORT) | {"from": [Each(_EXTENDER_FROM)]}
    # A rule with an empty list would let everybody in.
    of_control = [
        When(Given(_EXTENDER_FROM), extender),
        _ingress(control.ADMISSION_PORT),
        _of_metrics(control.METRICS_PORT),
    ]
    policies = [
        _policy(CONTROL, of_control),
        _policy(AGENT, [_of_metrics(METRICS_PORT)]),
        When(SCHEDULER_WANTED, _policy(SCHEDULER, [_of_metrics(scheduler.PORT)])),
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
    return {"ports": [{"port": port, "protocol": "TCP"}]}


def _of_metrics(port: int) -> dict[str, Any]:
    return _ingress(port) | {"from": When(Given(_METRICS_FROM), _METRICS_FROM)}
