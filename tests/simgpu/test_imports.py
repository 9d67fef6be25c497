"""Memory that another process has opened stays on the GPU until that process closes it, even if its owner ends."""

import pytest

from tests.simgpu.machines import CONTEXT_MIB, Machine
from tests.simgpu.nvml_queries import nvml
from tests.waiting import wait_until

EXPORT = "(lambda h: (cu.cuIpcGetMemHandle(h, c_uint64({})), bytes(h)))((ctypes.c_char * 64)())"
OPEN = "(lambda at: (cu.cuIpcOpenMemHandle_v2(byref(at), Handle.from_buffer_copy({!r}), 1), at.value))(c_uint64())"
CLOSE = "cu.cuIpcCloseMemHandle(c_uint64({}))"


@pytest.mark.parametrize("end", ["free", "kill"])
@pytest.mark.parametrize("last", ["close", "kill"])
def test_memory_lives_as_long_as_its_last_user(end: str, last: str, machine: Machine) -> None:
    watcher, owner, users = machine.started(), machine.started(), [machine.started() for _ in range(2)]

    def settles_at(contexts: int, mib: int) -> bool:
        """Any process finds the ended ones."""
        return wait_until(lambda: watcher("used()") > 0 and machine.used() == contexts * CONTEXT_MIB + mib)

    _, at = owner("alloc(500)")
    code, handle = owner(EXPORT.format(at))
    opened = [user(OPEN.format(handle)) for user in users]
    assert (code, [code for code, _ in opened]) == (0, [0, 0])
    assert settles_at(4, 500)
    if end == "free":
        assert owner(f"free({at})") == 0
    else:
        owner.kill()
    contexts = 4 if end == "free" else 3
    for mib, user, (_, place) in zip((500, 0), users, opened, strict=True):
        assert settles_at(contexts, 500)
        if last == "close":
            assert user(CLOSE.format(place)) == 0
        else:
            user.kill()
            contexts -= 1
        assert settles_at(contexts, mib)


def test_a_dead_owner_is_not_listed(machine: Machine) -> None:
    owner, user = machine.started(), machine.started()
    _, at = owner("alloc(500)")
    _, handle = owner(EXPORT.format(at))
    assert user(OPEN.format(handle))[0] == 0
    owner.kill()
    assert nvml(machine, "holders(gpu0)") == {user.pid: CONTEXT_MIB}
    assert machine.used() == CONTEXT_MIB + 500


def test_what_its_owner_frees_unused_is_free(machine: Machine) -> None:
    owner = machine.started()
    _, at = owner("alloc(500)")
    assert owner(EXPORT.format(at))[0] == 0
    assert owner(f"free({at})") == 0
    assert machine.used() == CONTEXT_MIB
