"""Places for the members of a pod group, searched together: the controller holds what is found, and views say it."""

from lamina.group_plans.planner import MAX_KINDS, GroupPlanner, Lacking, NoPlan
from lamina.group_plans.search import GroupPlan, Kind, MemberPlace, PlanBasis, PlanSearch, kind_of

__all__ = [
    "MAX_KINDS",
    "GroupPlan",
    "GroupPlanner",
    "Kind",
    "Lacking",
    "MemberPlace",
    "NoPlan",
    "PlanBasis",
    "PlanSearch",
    "kind_of",
]
