"""An API server that knows viewers by their tokens, and a cluster with pods of two namespaces."""

from typing import Any

from lamina.errors import Outside
from lamina.operations.dashboard.document import ClusterDocument, ClusterFigures, GpuPart, PodCard
from lamina.ports.kube import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Object, Resource
from lamina.ports.kube.fake import FakeKube
from tests.operations.dashboard.pages import gpu, node, running

ALL = ("", "pods"), ("", "inventories")


class ViewersKube(FakeKube):
    """`rights` are what each token may list, as namespace and resource; a token without an entry is not accepted."""

    def __init__(self) -> None:
        super().__init__()
        self.rights: dict[str, tuple[tuple[str, str], ...]] = {
            "of-a": (("team-a", "pods"),),
            "of-b": (("team-b", "pods"), ("", "inventories")),
            "of-all": ALL,
            "of-none": (),
        }
        self.reviews: list[Any] = []
        self.failure: Outside | None = None

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        if resource not in (TOKEN_REVIEWS, SUBJECT_ACCESS_REVIEWS):
            return await super().create(resource, obj, namespace=namespace)
        if self.failure is not None:
            raise self.failure
        self.reviews.append(obj["spec"])
        if resource == TOKEN_REVIEWS:
            token = obj["spec"]["token"]
            return {"status": {"authenticated": token in self.rights, "user": {"username": token}}}
        asked = obj["spec"]["resourceAttributes"]
        assert asked["verb"] == "list"
        allowed = (asked["namespace"], asked["resource"]) in self.rights.get(obj["spec"]["user"], ())
        return {"status": {"allowed": allowed}}


def two_teams() -> ClusterDocument:
    """A GPU with a pod of each team, and a pod of team-a that waits."""
    parts = [GpuPart(pod=uid, name=f"team-{uid}/{uid}-pod", memory_mib=4000, cores=30) for uid in "ab"]
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
