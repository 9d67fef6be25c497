"""What a pod does next, from its records and a reading of the clock."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from lamina_lab.kubelet.model.records import CRASH_LOOP, Container, Kind, Running, Terminated, Waiting, containers_of
from lamina_lab.kubelet.pods.pod_plan import initialized, plan, restarts

NOW = 1000.0


def pod(
    *apps: str, inits: tuple[str, ...] = (), sides: tuple[str, ...] = (), added: tuple[str, ...] = ()
) -> list[Container]:
    first: list[dict[str, Any]] = [{"name": name} for name in inits]
    first += [{"name": name, "restartPolicy": "Always"} for name in sides]
    others = {
        "containers": [{"name": name} for name in apps],
        "ephemeralContainers": [{"name": name} for name in added],
    }
    return containers_of({"initContainers": first, **others})


def named(containers: list[Container], name: str) -> Container:
    return next(container for container in containers if container.name == name)


def run(container: Container, since: float = NOW) -> None:
    container.state, container.container_id, container.started = Running(since), "id", True


def end(container: Container, code: int, at: float = NOW) -> None:
    container.container_id = "id"
    container.terminated(Terminated(code, "Error" if code else "Completed", at))


@pytest.mark.parametrize(("policy", "code"), list(itertools.product(("Always", "OnFailure", "Never"), (0, 1))), ids=str)
def test_restart_policies(policy: str, code: int) -> None:
    ended = Terminated(code, "", NOW)
    app, init, side, added = (Container("c", kind, {}) for kind in (Kind.APP, Kind.INIT, Kind.SIDECAR, Kind.EPHEMERAL))
    assert restarts(app, policy, ended) is (policy == "Always" or (policy == "OnFailure" and code == 1))
    assert restarts(init, policy, ended) is (code == 1 and policy != "Never")
    assert restarts(side, policy, ended)
    assert not restarts(added, policy, ended)


def test_all_apps_start_at_once() -> None:
    assert plan(pod("a", "b"), "Always", NOW, ending=False).start == ["a", "b"]


def test_init_containers_come_one_after_the_other() -> None:
    containers = pod("app", inits=("one", "two"))
    assert plan(containers, "Always", NOW, ending=False).start == ["one"]
    run(named(containers, "one"))
    assert plan(containers, "Always", NOW, ending=False).start == []
    end(named(containers, "one"), 0)
    assert plan(containers, "Always", NOW, ending=False).start == ["two"]
    end(named(containers, "two"), 0)
    assert plan(containers, "Always", NOW, ending=False).start == ["app"]


def test_ephemeral_containers_start_at_once_and_once() -> None:
    containers = pod("app", inits=("one",), added=("look",))
    assert plan(containers, "Always", NOW, ending=False).start == ["one", "look"]
    run(named(containers, "one"))
    run(named(containers, "look"))
    end(named(containers, "look"), 1)
    end(named(containers, "one"), 0)
    assert plan(containers, "Always", NOW, ending=False).start == ["app"]


def test_ephemeral_containers_keep_no_pod_alive() -> None:
    containers = pod("app", added=("look",))
    run(named(containers, "app"))
    run(named(containers, "look"))
    end(named(containers, "app"), 0)
    assert plan(containers, "Never", NOW, ending=False).stop == ["look"]
    end(named(containers, "look"), 137)
    assert plan(containers, "Never", NOW, ending=False).ended


def test_sidecar_lets_the_rest_go_on_once_it_has_started() -> None:
    containers = pod("app", sides=("side",))
    side = named(containers, "side")
    assert plan(containers, "Never", NOW, ending=False).start == ["side"]
    run(side)
    side.started = False  # its startup probe has not succeeded
    assert plan(containers, "Never", NOW, ending=False).start == []
    side.started = True
    assert plan(containers, "Never", NOW, ending=False).start == ["app"]
    run(named(containers, "app"))
    end(side, 1)
    assert initialized(containers)
    assert plan(containers, "Never", NOW, ending=False).start == ["side"]


def test_sidecars_end_last_and_the_last_one_first() -> None:
    containers = pod("app", sides=("one", "two"))
    for container in containers:
        run(container)
    assert plan(containers, "Never", NOW, ending=True).stop == ["app"]
    end(named(containers, "app"), 0)
    for ending in (True, False):
        assert plan(containers, "Never", NOW, ending=ending).stop == ["two"]
    end(named(containers, "two"), 0)
    assert plan(containers, "Never", NOW, ending=False).stop == ["one"]
    end(named(containers, "one"), 0)
    assert plan(containers, "Never", NOW, ending=False).ended


def test_failed_init_container_ends_the_pod_or_is_tried_again() -> None:
    containers = pod("app", inits=("init",), sides=("side",))
    end(named(containers, "init"), 1)
    run(named(containers, "side"))
    assert plan(containers, "Never", NOW, ending=False).stop == ["side"]
    assert plan(containers, "OnFailure", NOW, ending=False).start == ["init"]


def test_crash_loop_waits_longer_each_time() -> None:
    containers = pod("app")
    app = containers[0]
    now, waits = NOW, []
    for _ in range(8):
        end(app, 1, now)
        decided = plan(containers, "Always", now, ending=False)
        if decided.wake_at is not None:
            assert decided.start == []
            assert decided.waits["app"].reason == CRASH_LOOP
            waits.append(decided.wake_at - now)
            now = decided.wake_at
            app.wait(decided.waits["app"])
            assert plan(containers, "Always", now - 0.01, ending=False).start == []
        assert plan(containers, "Always", now, ending=False).start == ["app"]
        ended = app.latest_end
        assert ended is not None
        app.crash.restarting(ended.finished_at, now)
        run(app, now)
    assert waits == [1, 2, 4, 8, 16, 30, 30]


def test_a_container_that_lasted_starts_over() -> None:
    containers = pod("app")
    app = containers[0]
    app.crash.delay_s, app.crash.last_start = 30.0, NOW
    end(app, 1, NOW + 61)
    assert plan(containers, "Always", NOW + 61, ending=False).start == ["app"]
    app.crash.restarting(NOW + 61, NOW + 61)
    assert app.crash.delay_s == 1


def test_what_could_not_be_made_is_tried_again_without_a_crash_loop() -> None:
    containers = pod("app")
    app = containers[0]
    now, waits = NOW, []
    for _ in range(5):
        app.retry.failed(now)
        app.wait(Waiting("CreateContainerConfigError"))
        decided = plan(containers, "Always", now, ending=False)
        assert (decided.start, decided.waits) == ([], {})
        assert decided.wake_at is not None
        waits.append(decided.wake_at - now)
        now = decided.wake_at
        assert plan(containers, "Always", now, ending=False).start == ["app"]
    assert waits == [2, 4, 8, 10, 10]
    app.retry.succeeded()
    assert app.retry.delay_s == 0


def test_nothing_is_started_twice_or_while_ending() -> None:
    containers = pod("a", "b")
    containers[0].starting = True
    run(containers[1])
    assert plan(containers, "Always", NOW, ending=False).start == []
    ending = plan(containers, "Always", NOW, ending=True)
    assert (ending.start, ending.stop, ending.ended) == ([], ["a", "b"], False)
    assert plan(pod("a"), "Always", NOW, ending=True).ended


def test_one_app_that_is_over_waits_for_the_others() -> None:
    containers = pod("a", "b")
    end(containers[0], 0)
    run(containers[1])
    decided = plan(containers, "OnFailure", NOW, ending=False)
    assert (decided.start, decided.stop, decided.ended) == ([], [], False)
    end(containers[1], 0)
    assert plan(containers, "OnFailure", NOW, ending=False).ended
