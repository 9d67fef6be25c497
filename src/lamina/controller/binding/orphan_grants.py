"""Removal of grants that no pod holds: for grants that contradict what is known of their pods, the API server is asked.

A grant may outlive its pod in the ledger (a lost watch event), remain from an attempt to bind whose answer was lost, or
belong to a pod that runs on another node. Until the API server has answered, the grant counts.
"""

import logging

from lamina.controller.context import Context
from lamina.controller.tasks import PodLocks
from lamina.errors import Outside
from lamina.ledger.ledger import ContradictedGrant
from lamina.ledger.pod_stages import pod_state
from lamina.ports.kube import GRANTS, PODS, Conflict, NotFound

log = logging.getLogger(__name__)


async def remove_orphan_grants(context: Context, locks: PodLocks) -> None:
    """Settle all claims that are unconfirmed now. What cannot be settled is tried again at the next call."""
    for claim in context.ledger.contradicted_grants(context.now()):
        name = f"{claim.namespace}/{claim.pod}"
        try:
            async with locks.of(claim.pod_uid):
                await _settle(context, claim)
        except Outside as error:
            log.warning("Cannot find out whether pod %s holds its grant: %s", name, error)
        except Exception as error:
            context.set_aside.add("claim", name, error)


async def _settle(context: Context, claim: ContradictedGrant) -> None:
    kube, ledger = context.kube, context.ledger
    try:
        pod = await kube.get(PODS, claim.pod, namespace=claim.namespace)
    except NotFound:
        pod = None
    records = ledger.grants_of(claim.pod_uid)
    node = ""
    if pod is None or pod["metadata"]["uid"] != claim.pod_uid:
        ledger.remove_pod(claim.pod_uid, context.now())
    else:
        context.note(PODS, pod)
        state = pod_state(pod)
        ledger.observe_pod(claim.pod_uid, state, context.now())
        node = state.node
    for record in records:
        if record.grant.node != node:
            try:
                await kube.delete(GRANTS, record.name, namespace=record.namespace, uid=record.uid)
                log.info("Removed grant %s/%s, which no pod holds", record.namespace, record.name)
            except (NotFound, Conflict):
                pass
            ledger.remove_grant(record.uid, claim.pod_uid, context.now())
