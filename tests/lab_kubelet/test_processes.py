"""Nothing that a container made outlives it, its supervisor or the kubelet."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.lab_kubelet.cluster import OneKubelet, container, is_running, marked, restarts, state
from tests.waiting import wait_until

STUBBORN = "trap '' TERM; setsid sleep 611 & sleep 612 & sleep 613; sleep 614"


def shims_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_killing_the_kubelet_leaves_no_process(cluster: OneKubelet) -> None:
    cluster.start_kubelet()
    name = cluster.create(container(STUBBORN))
    cluster.until(name, is_running, "running")
    lab = f"LAMINA_LAB={cluster.root}\0"
    wait_until(lambda: len(marked(lab)) >= 5, "the shim and its processes")
    cluster.end_kubelet(signal.SIGKILL)
    wait_until(lambda: marked(lab) == [], lambda: f"all have ended; {marked(lab)}")
    cluster.start_kubelet()
    pod = cluster.until(name, lambda pod: is_running(pod) and restarts(pod) == 1, "it runs again")
    last = pod["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert (last["reason"], last["exitCode"]) == ("ContainerStatusUnknown", 137)
    assert [event for event in cluster.events(name) if event["reason"] == "KubeletRestarted"]


def test_the_next_kubelet_cleans_up_after_kubelet_and_shims_were_killed(cluster: OneKubelet) -> None:
    cluster.start_kubelet()
    name = cluster.create(container(STUBBORN))
    cluster.until(name, is_running, "running")
    lab = f"LAMINA_LAB={cluster.root}\0"
    wait_until(lambda: len(marked(lab)) >= 5, "the shim and its processes")
    assert cluster.process is not None
    old = marked(lab)
    # Stopped first, so that the shim cannot do its duty between the two signals.
    for shim in shims_of(cluster.process.pid):
        os.kill(shim, signal.SIGSTOP)
    for shim in shims_of(cluster.process.pid):
        os.kill(shim, signal.SIGKILL)
    cluster.end_kubelet(signal.SIGKILL)
    cluster.start_kubelet()
    wait_until(lambda: not set(old) & set(marked(lab)), "leftovers are gone")
    cluster.until(name, lambda pod: is_running(pod) and restarts(pod) == 1, "it runs again")


def test_killing_a_shim_ends_its_container_and_restarts_it(shared_cluster: OneKubelet) -> None:
    name = shared_cluster.create(container(STUBBORN))
    shared_cluster.until(name, is_running, "running")
    mine = f"HOSTNAME={name}\0"
    wait_until(lambda: len(marked(mine)) == 4, "four processes")
    old = marked(mine)
    assert shared_cluster.process is not None
    kubelet = shared_cluster.process.pid
    parents = {parent_of(pid) for pid in old}
    (shim,) = [pid for pid in shims_of(kubelet) if pid in parents]
    os.kill(shim, signal.SIGKILL)
    pod = shared_cluster.until(name, lambda pod: is_running(pod) and restarts(pod) == 1, "it runs again")
    last = pod["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert (last["exitCode"], last["message"]) == (137, "the container's supervisor was killed")
    wait_until(lambda: not set(old) & set(marked(mine)), "what the first one made is gone")


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_what_a_container_leaves_behind_ends_with_it(shared_cluster: OneKubelet) -> None:
    name = shared_cluster.create(container("setsid sleep 621 & (sleep 622 &) ; exit 0"), restartPolicy="Never")
    shared_cluster.until(name, lambda pod: "terminated" in state(pod), "ended")
    assert marked(f"HOSTNAME={name}\0") == []


def test_a_clean_stop_ends_containers_and_says_that_the_node_is_not_ready(cluster: OneKubelet) -> None:
    cluster.start_kubelet()
    name = cluster.create(container(STUBBORN))
    cluster.until(name, is_running, "running")
    cluster.end_kubelet(signal.SIGTERM)
    assert cluster.process is not None
    assert cluster.process.returncode == 0
    assert marked(f"LAMINA_LAB={cluster.root}\0") == []
    assert cluster.node_is("False")
