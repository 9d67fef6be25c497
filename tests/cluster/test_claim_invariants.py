"""Every violation of what claims may have is found: claims that agree, and one changed fact. No cluster is needed."""

from typing import Any

import pytest
from msgspec import structs

from lamina.agent.state.holdings import Bound, Holding, Instance, PreparedClaim, PreparedRequest
from lamina.core.gpus import Gpu, Mode
from lamina.core.grants import ContainerGrant, MigInstance, Share
from lamina.core.quantities import MIB
from lamina.dra.claims import ClaimedDevice
from tests.cluster.invariants import Container, Folder, Observation, OnNode, Pod, disagreements, over_committed

A, B = "GPU-a", "GPU-b"
GPUS = tuple(
    Gpu(uuid=uuid, index=at, model="m", memory_mib=1000, capacity_mib=1000, slots=2) for at, uuid in enumerate((A, B))
)
MAIN = ContainerGrant(name="main", shares=(Share(gpu=A, memory_mib=400),))
BY_PLUGIN = Holding(
    name="ticket",
    tickets=frozenset({"ticket-1"}),
    bound=Bound(namespace="d", pod="pod-1", pod_uid="1", container="main", grant=MAIN),
)


def claim(uid: str, gpu: str = A, memory: int = 400, cores: int = 30) -> PreparedClaim:
    grant = ContainerGrant(name="gpu", shares=(Share(gpu=gpu, memory_mib=memory, cores=cores),))
    device = ClaimedDevice(request="gpu", device="gpu-0", pool="n", memory_mib=memory)
    request = PreparedRequest(name="gpu", grant=grant, devices=(device,), limited=True)
    return PreparedClaim(namespace="d", name=f"claim-{uid}", uid=uid, requests=(request,), ready=True)


NODE = OnNode(
    claims=(claim("1"), claim("2")),
    claim_specs=frozenset({"name-1", "name-2"}),
    specs={"name-1": (A,), "name-2": (A,)},
    folders={f"{uid}_gpu": Folder({A: 400 * MIB}, {A: 30}, {A: 100 * MIB}) for uid in "12"},
    containers=tuple(Container(f"p{uid}", f"container-{uid}", (A,), f"{uid}_gpu", {A: 100}) for uid in "12"),
)
SEEN = Observation(
    grants=(),
    pods={f"p{uid}": Pod("d", f"pod-{uid}", "n") for uid in "12"},
    gpus={"n": GPUS},
    ledger=None,
    nodes={"n": NODE},
    claims={uid: frozenset({f"p{uid}"}) for uid in "12"},
)


def with_node(**changed: Any) -> Observation:
    return SEEN._replace(nodes={"n": NODE._replace(**changed)})


def test_claims_that_agree_are_left_alone() -> None:
    assert (over_committed(SEEN), disagreements(SEEN)) == ([], [])


def test_a_whole_gpu_has_no_folder() -> None:
    container = Container("p1", "container-1", (A,))
    observed = with_node(claims=(claim("1", memory=1000),), containers=(container,), folders={}, specs={})
    assert (over_committed(observed), disagreements(observed)) == ([], [])


def by_mig(profile: str = "1g.5gb") -> Observation:
    """A container with the MIG device of its claim, which is an instance of 1g.5gb."""
    made = claim("1", memory=100)
    share = structs.replace(made.shares[0], mode=Mode.MIG, mig=MigInstance(profile=profile, start=6))
    request = structs.replace(made.requests[0], grant=structs.replace(made.requests[0].grant, shares=(share,)))
    there = Instance(gpu=A, profile="1g.5gb", start=6)
    container = Container("p1", "container-1", ("MIG-1",))
    return with_node(
        claims=(structs.replace(made, requests=(request,)),),
        containers=(container,),
        instances={"MIG-1": there},
        noted=frozenset({there}),
        folders={},
        specs={},
    )


def test_a_container_may_have_the_mig_device_of_its_claim() -> None:
    assert disagreements(by_mig()) == []
    found = [each.says for each in disagreements(by_mig("2g.10gb"))]
    assert any("sees MIG-1, which the record does not know" in each for each in found)
    assert any("no one has 1g.5gb at 6 of GPU-a, which was made" in each for each in found)


@pytest.mark.parametrize(
    ("observed", "says"),
    [
        (with_node(claims=(claim("1"), claim("2", memory=601))), "claims have 1001 MiB of GPU-a, which has 1000"),
        (with_node(claims=(claim("1"), claim("2", cores=71))), "claims have 101 percent of GPU-a"),
        (with_node(allocations=(BY_PLUGIN,))._replace(pods=dict(SEEN.pods) | {"1": Pod("d", "pod-1", "n")}),
         "GPU-a is in use by claims and by a device plugin"),
        (with_node(containers=(Container("p1", "c", (A,), "1_gpu", {A: 401}),)), "its limit is 400 MiB"),
    ],
)  # fmt: skip
def test_what_is_given_away_twice_is_found(observed: Observation, says: str) -> None:
    assert any(says in found for found in over_committed(observed))


@pytest.mark.parametrize(
    ("observed", "says"),
    [
        (SEEN._replace(claims={"1": frozenset({"p1"})}), "the record keeps the claim d/claim-2 (2), which is gone"),
        (SEEN._replace(claims=dict(SEEN.claims) | {"2": frozenset()}), "claim d/claim-2, which no pod has"),
        (with_node(specs=dict(NODE.specs) | {"name-9": (A,)}), "no one owns the CDI spec name-9"),
        (with_node(folders=dict(NODE.folders) | {"9_gpu": Folder()}), "no one owns the container folder 9_gpu"),
        (with_node(folders=dict(NODE.folders) | {"1_gpu": Folder({A: 1}, {}, {A: 2})}), "exceeds the limits on GPU-a"),
        (with_node(containers=(Container("p1", "container-1", (B,), "1_gpu"),)), "sees GPU-b, which the record does"),
        (with_node(containers=(Container("p1", "container-1", (A,), "9_gpu"),)), "which is of none of its claims"),
        (with_node(containers=(Container("p9", "container-9", (A,), "1_gpu"),)), "runs, its pod does not"),
    ],
)  # fmt: skip
def test_what_does_not_agree_is_found(observed: Observation, says: str) -> None:
    found = disagreements(observed)
    assert any(says in each.says for each in found), found
