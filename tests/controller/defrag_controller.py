"""A controller that only defragments."""

import dataclasses
from typing import cast

from lamina.config_source.live import LiveConfiguration
from lamina.configuration import load
from lamina.controller.assembly import Controller, assemble
from lamina.controller.eviction.defragmentation import Defragmenter
from lamina.controller.eviction.evictor import Evictor
from lamina.controller.leadership.readiness import Readiness
from lamina.controller.settings import ControllerSettings
from lamina.ports.kube import EventRecorder, Kube
from tests.worlds.clocks import JumpingClock


class Role:
    """Whether a replica leads."""

    reason = "this replica does not lead"

    def __init__(self, leads: bool = True) -> None:
        self.leads = leads

    def replaced(self) -> None:
        """Another replica leads from now on."""
        self.leads = False

    def __bool__(self) -> bool:
        return self.leads

    def ready(self) -> bool:
        return self.leads


def controller(
    kube: Kube,
    clock: JumpingClock,
    moves: int = 20,
    identity: str = "one",
    role: Role | None = None,
) -> Controller:
    text = f"apiVersion: lamina.dev/v1alpha1\nkind: Configuration\ndefragmentation: {{movesPerHour: {moves}}}\n"
    configuration = LiveConfiguration(load(text, "test"), text)
    role = Role() if role is None else role
    events = EventRecorder(kube, "lamina", now=clock.wall)
    made = assemble(kube, clock, ControllerSettings(identity=identity), configuration, events)
    evictor = Evictor(kube, events, role.ready)
    work = Defragmenter(made.context, evictor, made.watches, made.metrics, identity)
    evictions = dataclasses.replace(made.evictions, defragmentation=work)
    return dataclasses.replace(made, readiness=cast(Readiness, role), evictions=evictions)
