"""Grants that contradict what is known of their pods: the API server is asked, and what nobody holds is removed.

A grant may outlive its pod in our knowledge (a lost watch event), be left behind by an attempt to bind whose answer
was lost, or belong to a pod that runs elsewhere. Until the server has answered, it counts.
"""

import logging
from collections.abc import Callable

from lamina.control.ledger import Doubt, Ledger
from lamina.control.pod_locks import PodLocks
from lamina.control.stages import pod_state
from lamina.errors import Outside
from lamina.ports.kube import GRANTS, PODS, Conflict, Kube, NotFound

log = logging.getLogger(__name__)


async def settle(kube: Kube, ledger: Ledger, locks: PodLocks, now: Callable[[], float]) -> None:
    """Settle all present doubts. What cannot be settled now remains in doubt."""
    for doubt in ledger.doubts(now()):
        try:
            async with locks.of(doubt.pod_uid):
                await _settle(kube, ledger, doubt, now)
        except Outside as error:
            log.warning("Whether pod %s/%s holds its grant is not known: %s", doubt.namespace, doubt.pod, error)


async def _settle(kube: Kube, ledger: Ledger, doubt: Doubt, now: Callable[[], float]) -> None:
    try:
        pod = await kube.get(PODS, doubt.pod, namespace=doubt.namespace)
    except NotFound:
        pod = None
    records = ledger.grants_of(doubt.pod_uid)
    if pod is None or pod["metadata"]["uid"] != doubt.pod_uid:
        ledger.pod_gone(doubt.pod_uid, now())
        node = ""
    else:
        state = pod_state(pod)
        ledger.pod_seen(doubt.pod_uid, state, now())
        node = state.node
    for record in records:
        if record.grant.node != node:
            try:
                await kube.delete(GRANTS, record.name, namespace=record.namespace, uid=record.uid)
                log.info("Removed grant %s/%s, which nobody holds", record.namespace, record.name)
            except (NotFound, Conflict):
                pass
            ledger.grant_gone(record.uid, doubt.pod_uid, now())
