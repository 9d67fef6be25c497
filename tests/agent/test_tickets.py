"""The number of healthy tickets follows the healthy GPUs; which they are spares running pods."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from lamina.agent.inventory.tickets import KubeletDevice, advertised_tickets
from lamina.core.gpus import Gpu, MigInstance, Mode
from tests.agent.node import KIND, MEMORY, VGPU, container, share


def gpu(number: int, *, slots: int = 10, healthy: bool = True) -> Gpu:
    return Gpu(
        uuid=f"GPU-{number}", index=number, model="V100", memory_mib=1, capacity_mib=1, slots=slots, healthy=healthy
    )


GPUS = st.lists(st.tuples(st.integers(1, 20), st.booleans()), max_size=8).map(
    lambda made: [gpu(number, slots=slots, healthy=healthy) for number, (slots, healthy) in enumerate(made)]
)


def unhealthy(reported: tuple[KubeletDevice, ...]) -> set[str]:
    return {ticket.id for ticket in reported if not ticket.healthy}


def test_ids_name_no_gpu() -> None:
    gpus = [gpu(0, slots=2), gpu(1, slots=1)]
    assert [ticket.id for ticket in advertised_tickets(KIND, gpus)] == ["ticket-0", "ticket-1", "ticket-2"]
    assert [ticket.id for ticket in advertised_tickets(VGPU, gpus)] == ["vgpu-0", "vgpu-1", "vgpu-2"]


@pytest.mark.parametrize(("memory", "units"), [(16160, 126), (128, 1), (127, 0), (81920, 640)])
def test_a_resource_of_memory_has_a_ticket_for_each_unit(memory: int, units: int) -> None:
    one = Gpu(uuid="GPU-0", index=0, model="V100", memory_mib=memory, capacity_mib=memory)
    sick = Gpu(uuid="GPU-1", index=1, model="V100", memory_mib=memory, capacity_mib=memory, healthy=False)
    reported = advertised_tickets(MEMORY, [one, sick])
    assert (len(reported), len(reported) - len(unhealthy(reported))) == (2 * units, units)


def test_kubelet_gives_a_container_as_many_as_its_grant_says() -> None:
    two = container("main", share(0, 5120), share(1, 5120))
    assert [kind.count_for(two) for kind in (KIND, VGPU, MEMORY)] == [2, 2, 80]
    assert [count for count in range(100) if MEMORY.matches(two, count)] == [80]
    partitioned = container("main", share(0, 512, mode=Mode.MIG, mig=MigInstance(profile="1g.5gb", start=0)))
    assert [count for count in range(100) if MEMORY.matches(partitioned, count)] == [1, 2, 3, 4]
    assert [count for count in range(100) if KIND.matches(partitioned, count)] == [1]
    entire = container("main", structs.replace(share(0, 512), exclusive=True))
    assert [count for count in range(100) if MEMORY.matches(entire, count)] == [1, 2, 3, 4], "and all of its GPU"


@given(GPUS, st.sets(st.integers(0, 200)), st.sets(st.integers(0, 200)))
def test_an_unhealthy_gpu_takes_as_many_tickets_away_as_it_has_slots(
    gpus: list[Gpu], held: set[int], before: set[int]
) -> None:
    reported = advertised_tickets(
        KIND, gpus, held={f"ticket-{n}" for n in held}, before=[KubeletDevice(f"ticket-{n}", False) for n in before]
    )
    assert len(reported) == sum(gpu.slots for gpu in gpus)
    assert len(reported) - len(unhealthy(reported)) == sum(gpu.slots for gpu in gpus if gpu.healthy)
    assert len({ticket.id for ticket in reported}) == len(reported)


@given(GPUS, st.sets(st.integers(0, 160)))
def test_a_held_ticket_goes_only_when_no_other_is_left(gpus: list[Gpu], held: set[int]) -> None:
    ids = {f"ticket-{n}" for n in held}
    reported = advertised_tickets(KIND, gpus, held=ids)
    free = {ticket.id for ticket in reported} - ids
    assert unhealthy(reported) <= free or unhealthy(reported) >= free


def test_what_was_taken_away_stays_away_until_it_comes_back() -> None:
    sick = [gpu(0, slots=2), gpu(1, slots=2, healthy=False)]
    first = advertised_tickets(KIND, sick, held={"ticket-3"})
    assert unhealthy(first) == {"ticket-2", "ticket-1"}
    second = advertised_tickets(KIND, sick, held=set(), before=first)
    assert second == first
    assert unhealthy(advertised_tickets(KIND, [gpu(0, slots=2), gpu(1, slots=2)], before=second)) == set()
