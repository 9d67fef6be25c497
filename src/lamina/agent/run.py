"""The agent of one node, from its start to SIGTERM.

All parts are made, the disk is reconciled with the record, and then each part runs its own loop. Another configuration
ends the loops, and all parts are made again in the same process. A part that fails is set aside for a moment and starts
again, while the others go on.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from lamina.agent.containers.file_mount import provide_reserve, report_flags
from lamina.agent.containers.paths import FacadeLibraries, install_libraries
from lamina.agent.nvidia.config_watch import NvidiaConfigWatch, last_good_config
from lamina.agent.parts import COMPONENT, AgentPorts, Rules, make_parts, node_context
from lamina.agent.state.observed import Observable
from lamina.agent.state.settings import AgentSettings
from lamina.config_source.last_good import read_or_last_good
from lamina.config_source.live import LiveConfiguration, follow_source
from lamina.configuration import Config
from lamina.ports.clock import SystemClock
from lamina.ports.files import Files, kept_open
from lamina.ports.host import LinuxHost
from lamina.ports.kube import EventRecorder
from lamina.ports.kube.client import AGAIN_S, connect
from lamina.ports.mps import MpsServiceClient
from lamina.ports.nvml import DriverNvml
from lamina.ports.supervision import keep_running, stop_event

log = logging.getLogger(__name__)


async def run(settings: AgentSettings) -> None:
    """Run the agent of a node until SIGTERM or SIGINT. Raises BadInput or Outside if it cannot start."""
    settings = settings.checked()
    kube = await connect(settings.kubeconfig, again_s=AGAIN_S, lamina_namespace=settings.namespace)
    stop = stop_event()
    nvml = DriverNvml()
    ports = AgentPorts(
        kube=kube,
        nvml=nvml,
        mps=MpsServiceClient(settings.mps_socket),
        clock=SystemClock(),
        files=Files(settings.selinux_type),
        host=LinuxHost(),
    )
    try:
        configuration = await read_configuration(settings, ports)
        await run_agent(settings, configuration, ports, stop)
    finally:
        await nvml.close()
        await kube.close()


async def read_configuration(settings: AgentSettings, ports: AgentPorts) -> LiveConfiguration:
    return await read_or_last_good(settings.config, ports.kube, settings.configuration, ports.files, ports.aside)


async def run_agent(
    settings: AgentSettings, configuration: LiveConfiguration, ports: AgentPorts, stop: asyncio.Event
) -> None:
    """Run the agent until `stop` is set, starting with `configuration`. `settings` are checked."""
    assert settings.facade_dir is not None
    with ports.files.only_user(settings.state_dir):
        report_flags(settings.containers, ports.mounts)
        provide_reserve(settings.containers, ports.mounts)
        libraries = install_libraries(settings.facade_dir, settings.libraries, ports.files, settings.driver)
        with kept_open(settings.libraries):
            await _run_configurations(settings, configuration, ports, libraries, stop)


async def _run_configurations(
    settings: AgentSettings,
    configuration: LiveConfiguration,
    ports: AgentPorts,
    libraries: FacadeLibraries,
    stop: asyncio.Event,
) -> None:
    """Run the agent under one configuration after the other, until `stop` is set."""
    configs = Observable(configuration.value)
    configuration.listeners.append(lambda: configs.set(configuration.value))
    follow = partial(follow_source, settings.config, ports.kube, ports.clock, configuration, None, ports.aside)
    following = asyncio.create_task(keep_running("configuration", follow, ports.clock, ports.aside))
    nvidia = NvidiaConfigWatch(
        ports.kube,
        settings.node,
        last_good_config(settings.nvidia, ports.files),
        EventRecorder(ports.kube, COMPONENT, now=ports.clock.wall),
        ports.clock,
        ports.refusals,
        namespace=settings.nvidia_namespace,
    )
    try:
        first = Rules(configs.value, await nvidia.current(configs.value))
        work: Callable[[], Awaitable[None]] = partial(_run_parts, settings, first, ports, libraries)
        rules: Rules | None = first
        while rules is not None:
            rules = await _until_changed(work, partial(_next_rules, rules, configs, nvidia), stop, ports)
            if rules is not None:
                # At the start a sentence says what is wrong. Later the agent goes on, as the next rules may be better.
                run_next = partial(_run_parts, settings, rules, ports, libraries)
                work = partial(keep_running, "start", run_next, ports.clock, ports.aside)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    log.info("The agent of node %s has stopped", settings.node)


async def _until_changed(
    work: Callable[[], Awaitable[None]],
    following: Callable[[], Awaitable[Rules]],
    stop: asyncio.Event,
    ports: AgentPorts,
) -> Rules | None:
    """Run `work` until `stop` is set, or `following` returns other rules, which are returned.

    Raises what `work` raises.
    """
    stopped = asyncio.create_task(stop.wait())
    next_rules = asyncio.create_task(keep_running("next configuration", following, ports.clock, ports.aside))
    working = asyncio.ensure_future(work())
    tasks: list[asyncio.Future[Any]] = [stopped, next_rules, working]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        return None if stopped.done() else next_rules.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run_parts(settings: AgentSettings, rules: Rules, ports: AgentPorts, libraries: FacadeLibraries) -> None:
    """Make all parts and run them concurrently until this is canceled. Raises what prevents that they are made."""
    parts = await make_parts(node_context(settings, rules, ports, libraries), ports)
    log.info("The agent of node %s has started", settings.node)
    async with asyncio.TaskGroup() as group:
        for name, part in parts.items():
            group.create_task(keep_running(name, part.run, ports.clock, ports.aside))


async def _next_rules(rules: Rules, configs: Observable[Config], nvidia: NvidiaConfigWatch) -> Rules:
    """The next rules that differ from these."""
    config = asyncio.create_task(_next_config(rules.config, configs))
    applied = asyncio.create_task(nvidia.next_change(rules.config, rules.nvidia))
    try:
        await asyncio.wait([config, applied], return_when=asyncio.FIRST_COMPLETED)
        if config.done():
            return Rules(config.result(), await nvidia.current(config.result()))
        return Rules(rules.config, applied.result())
    finally:
        config.cancel()
        applied.cancel()
        await asyncio.gather(config, applied, return_exceptions=True)


async def _next_config(current: Config, configs: Observable[Config]) -> Config:
    version, config = -1, current
    while config == current:
        version, config = await configs.after(version)
    log.info("The configuration changed")
    return config
