"""GPU time is held: coarse bounds that hold on any machine; bench.compute has the exact figures."""

from pathlib import Path

from tests.facade.conftest import Container, MakeContainer
from tests.waiting import wait_until

MS = 1_000_000


def launching(programs: dict[str, Path], what: str, kernel_ms: float, count: int, way: str = "linked") -> list[str]:
    return [str(programs["launching"]), way, what, str(int(kernel_ms * MS)), str(count)]


def waited(box: Container) -> int:
    return box.usage().devices[0].waited_ns


def figures(text: str) -> list[int]:
    return list(map(int, text.split()))


def test_ten_percent_takes_about_ten_times_as_long(container: MakeContainer, programs: dict[str, Path]) -> None:
    done = container(2000, cores=10).run(*launching(programs, "plain", 2, 60))
    assert done.returncode == 0, done.stderr
    assert 600 < figures(done.stdout)[0] < 3000, "120 ms of work at a tenth of the GPU, less what is saved up"


def test_without_a_limit_nothing_waits(container: MakeContainer, programs: dict[str, Path]) -> None:
    done = container(2000).run(*launching(programs, "plain", 2, 60))
    assert figures(done.stdout)[0] < 500, done.stdout + done.stderr


def test_functions_from_cu_get_proc_address_pass_the_gate(container: MakeContainer, programs: dict[str, Path]) -> None:
    done = container(2000, cores=10).run(*launching(programs, "plain", 2, 60, "procaddress"))
    assert figures(done.stdout)[0] > 600, done.stdout + done.stderr


def test_a_capture_is_undisturbed_and_its_graph_is_charged(container: MakeContainer, programs: dict[str, Path]) -> None:
    done = container(2000, cores=10).run(*launching(programs, "graph", 10, 10))
    assert done.returncode == 0, done.stdout + done.stderr
    captured, launched = figures(done.stdout)
    assert captured < 100, "ten kernels of 10 ms are taken down without waiting for a share"
    assert launched > 700, "the second run waits until the first one's 100 ms are paid"


def test_usage_has_the_time_that_was_used_and_waited(container: MakeContainer, programs: dict[str, Path]) -> None:
    box = container(2000, cores=10)
    box.run(*launching(programs, "plain", 2, 60))
    device = box.usage().devices[0]
    assert 100 * MS < device.busy_ns < 240 * MS
    assert device.waited_ns > 400 * MS


def test_a_program_that_launches_slowly_is_not_taken_to_use_the_time_between(
    container: MakeContainer, programs: dict[str, Path]
) -> None:
    box = container(2000, cores=50)
    done = box.run(*launching(programs, "slowly", 0.001, 60_000))
    assert done.returncode == 0, done.stderr
    device = box.usage().devices[0]
    assert 20 * MS < device.busy_ns < 250 * MS, "60 ms of work, and not the 600 ms that it took"
    assert device.waited_ns < 100 * MS


def test_a_launch_does_not_wait_for_ever_for_work_that_may_wait_for_it(
    container: MakeContainer, programs: dict[str, Path]
) -> None:
    done = container(2000, cores=100).run(*launching(programs, "queue", 2000, 5))
    assert figures(done.stdout)[0] < 4000, "five launches of 2 s pass before the second is done"


def test_a_process_killed_while_it_waits_blocks_no_other(container: MakeContainer, programs: dict[str, Path]) -> None:
    box = container(2000, cores=10)
    for _ in range(5):
        victims = [box.start(*launching(programs, "until", 2, 1)) for _ in range(3)]
        for victim in victims:
            assert victim.stdout is not None and victim.stdout.readline() == "ready\n"
        before = waited(box)
        wait_until(lambda before=before: waited(box) > before + 50 * MS)
        for victim in victims:
            victim.kill()
            victim.communicate()
    done = box.run(*launching(programs, "plain", 2, 60))
    assert 400 < figures(done.stdout)[0] < 6000, "still held, and not for longer than its debt"


def test_a_lost_arbiter_file_leaves_the_share(container: MakeContainer, programs: dict[str, Path]) -> None:
    box = container(2000, cores=10)
    (box.folder / "arbiter").unlink()
    assert figures(box.run(*launching(programs, "plain", 2, 60)).stdout)[0] > 600
