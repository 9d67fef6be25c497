"""An API server that knows viewers by their tokens, and a cluster with pods of two namespaces."""

from lamina.operations.dashboard.document import ClusterDocument, ClusterFigures, GpuPart, PodCard
from lamina.ports.kube import Object
from tests.operations.dashboard.pages import gpu, node, running
from tests.worlds.reviews import ReviewingKube

ALL = ("", "pods"), ("", "inventories")


class ViewersKube(ReviewingKube):
    """`rights` are what each token may list, as namespace and resource; a token without an entry is not accepted."""

    def __init__(self) -> None:
        super().__init__(lambda token: token in self.rights, self._may_list)
        self.rights: dict[str, tuple[tuple[str, str], ...]] = {
            "of-a": (("team-a", "pods"),),
            "of-b": (("team-b", "pods"), ("", "inventories")),
            "of-all": ALL,
            "of-none": (),
        }

    def _may_list(self, review: Object) -> bool:
        asked = review["resourceAttributes"]
        assert asked["verb"] == "list"
        return (asked["namespace"], asked["resource"]) in self.rights.get(review["user"], ())


def two_teams() -> ClusterDocument:
    """A GPU with a pod of each team, and a pod of team-a that waits."""
    parts = [
        GpuPart(pod=uid, name=f"team-{uid}/{uid}-pod", namespace=f"team-{uid}", memory_mib=4000, cores=30)
        for uid in "ab"
    ]
    pods = {uid: _of(uid, running(f"{uid}-pod")) for uid in "ab"}
    pods["w"] = PodCard(
        namespace="team-a",
        name="waits",
        state="pending",
        reason="it needs 99999 MiB",
        why=("team-b/old holds 4000 MiB",),
    )
    cluster = ClusterFigures(nodes=1, gpus=1)
    return ClusterDocument(cluster=cluster, nodes={"n": node("n", gpu("n", 0, *parts, mode="quota"))}, pods=pods)


def _of(team: str, card: PodCard) -> PodCard:
    return PodCard(
        namespace=f"team-{team}", name=card.name, state=card.state, phase=card.phase, node="n", shares=card.shares
    )
