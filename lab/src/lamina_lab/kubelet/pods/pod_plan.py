"""What to do next for a pod, decided from its records and the time."""

from collections.abc import Sequence

from msgspec import Struct, field

from lamina_lab.kubelet.model.records import CRASH_LOOP, Container, Kind, Running, Terminated, Waiting, of_kind


class PodPlan(Struct):
    """`start` and `stop` name containers. `waits` is what others show in the meantime. `wake_at` is when to plan
    again if nothing happens before. `ended` says that no container runs and none will run again.
    """

    start: list[str] = field(default_factory=list)
    stop: list[str] = field(default_factory=list)
    waits: dict[str, Waiting] = field(default_factory=dict)
    wake_at: float | None = None
    ended: bool = False

    def wake(self, at: float) -> None:
        self.wake_at = at if self.wake_at is None else min(at, self.wake_at)


def restarts(container: Container, policy: str, end: Terminated) -> bool:
    """Whether a container that ended this way is restarted under the pod's restart `policy`."""
    if container.kind is Kind.EPHEMERAL:
        return False
    if container.kind is Kind.SIDECAR:
        return True
    if container.kind is Kind.INIT:
        return end.exit_code != 0 and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and end.exit_code != 0)


def initialized(containers: Sequence[Container]) -> bool:
    """Whether app containers may run. It stays true when a sidecar restarts later."""
    apps = of_kind(containers, Kind.APP)
    if any(app.container_id or app.starting or app.last for app in apps):
        return True
    return all(
        container.started if container.kind is Kind.SIDECAR else container.completed
        for container in of_kind(containers, Kind.INIT, Kind.SIDECAR)
    )


def failed_init(containers: Sequence[Container], policy: str) -> bool:
    """Whether an init container has failed permanently."""
    return any(
        isinstance(init.state, Terminated) and init.state.exit_code != 0 and not restarts(init, policy, init.state)
        for init in of_kind(containers, Kind.INIT)
    )


def plan(containers: Sequence[Container], policy: str, now: float, *, ending: bool) -> PodPlan:
    """The next steps. `ending` says that the pod must end: it is deleted or over its deadline."""
    result = PodPlan()
    apps = of_kind(containers, Kind.APP)
    if ending or failed_init(containers, policy):
        _end(result, containers)
        return result
    if not initialized(containers):
        _initialize(result, containers, policy, now)
    elif all(_is_over(app, policy) for app in apps):
        _end(result, containers)
        return result
    else:
        for container in of_kind(containers, Kind.SIDECAR, Kind.APP):
            _keep_running(result, container, policy, now)
    for container in of_kind(containers, Kind.EPHEMERAL):
        _keep_running(result, container, policy, now)
    return result


def _is_over(container: Container, policy: str) -> bool:
    return isinstance(container.state, Terminated) and not restarts(container, policy, container.state)


def _end(result: PodPlan, containers: Sequence[Container]) -> None:
    """Stop all but sidecars first, then sidecars in reverse order."""
    active = [container for container in containers if container.running or container.starting]
    first = of_kind(active, Kind.APP, Kind.INIT, Kind.EPHEMERAL)
    if first:
        result.stop = [container.name for container in first]
    elif active:
        result.stop = [active[-1].name]
    result.ended = not active


def _initialize(result: PodPlan, containers: Sequence[Container], policy: str, now: float) -> None:
    """One at a time: the first unfinished container is started, and sidecars before it are kept running."""
    for container in of_kind(containers, Kind.INIT, Kind.SIDECAR):
        if container.kind is Kind.INIT and container.completed:
            continue
        _keep_running(result, container, policy, now)
        if container.kind is Kind.INIT or not container.started:
            return


def _keep_running(result: PodPlan, container: Container, policy: str, now: float) -> None:
    """Start `container` if it is due; otherwise note when it will be."""
    if isinstance(container.state, Running) or container.starting or _is_over(container, policy):
        return
    end = container.latest_end
    crash_over = container.crash.not_before(end.finished_at) if end else 0.0
    due = max(crash_over, container.retry.not_before)
    if now >= due:
        result.start.append(container.name)
        return
    result.wake(due)
    if crash_over > now:
        delay = container.crash.delay_s
        result.waits[container.name] = Waiting(CRASH_LOOP, f"back-off {delay:g}s restarting failed")
