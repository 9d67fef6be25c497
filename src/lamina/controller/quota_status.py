"""Writes the used amounts into each ResourceQuota's status, so that `kubectl describe quota` shows them.

The quota controller of Kubernetes keeps keys of `status.used` that it does not count itself, so both can write there.
"""

import contextlib
import logging
from collections.abc import Mapping

from lamina.configuration import Config
from lamina.core.quantities import parse_quantity
from lamina.errors import BadInput, Outside
from lamina.ledger.ledger import Ledger
from lamina.ledger.quotas import ResourceQuotas, usage
from lamina.ports.kube import RESOURCE_QUOTAS, Kube, NotFound, Object
from lamina.ports.set_aside import SetAside

log = logging.getLogger(__name__)


async def update_statuses(
    kube: Kube, quotas: ResourceQuotas, ledger: Ledger, config: Config, set_aside: SetAside
) -> None:
    """Update the status of every quota that differs. What cannot be written is tried again at the next call."""
    for namespace, quota in quotas.objects():
        name = f"{namespace}/{quota['metadata']['name']}"
        with set_aside.around("quota status", name):
            body = _changed_status(quota, usage(quota, ledger.totals.taken_in_namespace(namespace), config))
            try:
                if body is not None:
                    await _write(kube, quota, body)
            except Outside as error:
                log.warning("Cannot update the status of ResourceQuota %s: %s", name, error)


def _changed_status(quota: Object, counted: Mapping[str, tuple[int, str]]) -> Object | None:
    """What to write into the quota, or None where its status is right."""
    status = quota.get("status") or {}
    used = {key: amount for key, (amount, _) in counted.items()}
    hard = {key: limit for key, (_, limit) in counted.items()}
    if _equal(status.get("used"), used) and _equal(status.get("hard"), hard):
        return None
    return {"status": {"hard": hard, "used": {key: str(amount) for key, amount in used.items()}}}


async def _write(kube: Kube, quota: Object, body: Object) -> None:
    metadata = quota["metadata"]
    with contextlib.suppress(NotFound):
        await kube.patch(RESOURCE_QUOTAS, metadata["name"], body, namespace=metadata["namespace"], subresource="status")


def _equal(written: Mapping[str, object] | None, amounts: Mapping[str, object]) -> bool:
    return all(_same_quantity((written or {}).get(key), amount) for key, amount in amounts.items())


def _same_quantity(one: object, other: object) -> bool:
    try:
        return parse_quantity(one, where="status").value == parse_quantity(other, where="status").value
    except BadInput:
        return False
