"""Who reaches the extender, which has no login."""

from typing import Any

import pytest

from lamina.install import values
from lamina.install.chart import objects
from lamina.install.names import SCHEDULER, chosen

EXTENDER_PORT, ADMISSION_PORT, METRICS_PORT, ADMISSION_METRICS_PORT = 8445, 8443, 9395, 9396
CLIENT = [{"ipBlock": {"cidr": "10.0.0.0/28"}}]


def admitted(*settings: str) -> dict[int, Any]:
    """Who may connect to the controller, by port; None is everybody."""
    made = objects(values.plain(values.read([], settings)), (1, 30, 0))
    (policy,) = (
        one for one in made if (one["kind"], one["metadata"]["name"]) == ("NetworkPolicy", "lamina-controller")
    )
    return {rule["ports"][0]["port"]: rule.get("from") for rule in policy["spec"]["ingress"]}


def test_the_scheduler_alone_asks_the_extender() -> None:
    scheduler = {"podSelector": {"matchLabels": chosen(SCHEDULER)}}
    open_to_all = dict.fromkeys((ADMISSION_PORT, METRICS_PORT, ADMISSION_METRICS_PORT))
    assert admitted() == {EXTENDER_PORT: [scheduler]} | open_to_all


def test_named_clients_may_connect() -> None:
    assert admitted(f"networkPolicy.extenderFrom={CLIENT}")[EXTENDER_PORT] == CLIENT


@pytest.mark.parametrize("scheduler", ["true", "false"])
def test_no_client_may_connect_where_none_is_named(scheduler: str) -> None:
    """To Kubernetes an empty list is everybody."""
    assert EXTENDER_PORT not in admitted("networkPolicy.extenderFrom=[]", f"scheduler.enabled={scheduler}")
