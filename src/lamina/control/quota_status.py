"""Tell in each ResourceQuota what of our resources is used, so that `kubectl describe quota` shows the truth.

Kubernetes' own quota controller keeps keys of `status.used` that it does not count itself, so both can write there.
"""

import logging
from collections.abc import Mapping

from lamina.control.ledger import Ledger
from lamina.control.quotas import Quotas
from lamina.dialects import hami
from lamina.dialects.config import Config
from lamina.errors import BadInput, Outside
from lamina.model.kube_quantity import parse_quantity
from lamina.model.ledger import Taken
from lamina.ports.kube import RESOURCE_QUOTAS, Kube, NotFound, Object

log = logging.getLogger(__name__)


def usage(quota: Object, taken: Taken, config: Config) -> dict[str, tuple[int, str]]:
    """By key of the quota that is ours: what is used of it, and what it allows as it is written."""
    names = hami(config)
    factor = config.hami.memory_factor
    used = {f"limits.{names.memory}": -(-taken.memory_mib // factor), f"limits.{names.cores}": taken.cores}
    hard = (quota.get("spec") or {}).get("hard") or {}
    return {key: (amount, str(hard[key])) for key, amount in used.items() if key in hard}


async def tell(kube: Kube, quotas: Quotas, ledger: Ledger, config: Config) -> None:
    """Write the status of every quota that says something else. What cannot be written is tried again next time."""
    for namespace, found in quotas.objects():
        ours = usage(found, ledger.taken_in(namespace), config)
        status = found.get("status") or {}
        used = {key: amount for key, (amount, _) in ours.items()}
        hard = {key: allowed for key, (_, allowed) in ours.items()}
        if _says(status.get("used"), used) and _says(status.get("hard"), hard):
            continue
        body = {"status": {"hard": hard, "used": {key: str(amount) for key, amount in used.items()}}}
        name = found["metadata"]["name"]
        try:
            await kube.patch(RESOURCE_QUOTAS, name, body, namespace=namespace, subresource="status")
        except NotFound:
            continue
        except Outside as error:
            log.warning("The status of quota %s/%s could not be written: %s", namespace, name, error)


def _says(written: Mapping[str, object] | None, amounts: Mapping[str, object]) -> bool:
    return all(_same((written or {}).get(key), amount) for key, amount in amounts.items())


def _same(one: object, other: object) -> bool:
    try:
        return parse_quantity(one, where="status").value == parse_quantity(other, where="status").value
    except BadInput:
        return False
