"""The places of a plan in the ledger: all of them reserved, or none."""

from lamina.controller.gangs.search import GangPlan
from lamina.dialects.groups import GroupName
from lamina.ledger.ledger import DoesNotFit, Ledger
from lamina.ledger.pod_groups import PodGroup
from lamina.ledger.pod_holding import Reservation


def reserve_all(
    ledger: Ledger, name: GroupName, group: PodGroup, plan: GangPlan, until: float
) -> dict[str, Reservation]:
    """The reservations by UID. The places are free: nothing was awaited since the plan was made, or they are reserved
    already.

    Raises DoesNotFit for a member that has ended.
    """
    reserved = {uid: Reservation(place.node, place.taken, until) for uid, place in plan.items()}
    for uid, reservation in reserved.items():
        member = group.waiting.get(uid)
        try:
            ledger.reserve(uid, name.namespace, member.name if member else uid, reservation)
        except DoesNotFit:
            for reserved_uid in plan:
                ledger.release(reserved_uid)
            raise
    return reserved
