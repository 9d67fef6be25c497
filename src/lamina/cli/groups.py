"""The commands of `lamina`, grouped by who uses them. Ctrl-C ends each of them with one sentence.

The module of a command is imported when the command is asked for, so that it starts with what it needs alone, and
`lamina --help` without any of them.
"""

from collections import UserDict
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer.core
import typer.main

from lamina.cli.exit_codes import Interrupted
from lamina.errors import BadInput

LAB = "Lab (lamina-lab)"
GROUPS: Mapping[str, Mapping[str, str]] = {
    "On one machine": {
        "run": "Run a command under a GPU memory and compute limit.",
        "ps": "List runs of `lamina run` on this machine: limit, use, peak, refused allocations and processes.",
        "load": "Hold memory of a GPU and launch kernels, and print what it got: try it under `lamina run`.",
        "verify": "Test on this machine that memory and compute limits hold, and what the facade costs.",
        "simulate": "Replay pods on nodes and compare policies: allocated and stranded GPU, and which pods wait and "
        "why.",
        "completion": "Print a script that completes commands and options: `source <(lamina completion bash)`.",
    },
    "For users of a cluster": {
        "gpus": "List GPUs: memory and compute granted, used and free, slots, mode, health, and the pods on them.",
        "top": "Show live what GPUs and containers use: memory, peak, compute and refusals.",
        "pods": "List pods that request GPUs: node, GPU, memory, compute, and the reason if pending.",
        "why": "Explain why a pod is pending, per node or group of equal nodes, in numbers, or when it was refused GPU "
        "memory.",
        "fits": "Tell whether the pods of a manifest would fit now, on which GPUs, or what is missing in numbers.",
        "dashboard": "Serve a live, read-only page about GPUs, shares and waiting pods, on 127.0.0.1 only without "
        "--bind.",
        "quotas": "List quotas on GPU memory and compute in all namespaces, with current usage.",
        "resize": "Give running containers more or less of their GPUs, without a restart.",
    },
    "Cost and advice": {
        "cost": "Show GPU-hours requested, used, borrowed and lent, and their cost by the prices of the configuration.",
        "advise": "Suggest a way to share GPUs for a workload; subcommands give other advice.",
    },
    "For administrators of a cluster": {
        "install": "Print manifests to apply: `lamina install | kubectl apply -f -`.",
        "scheduler-config": "Print a kube-scheduler configuration with Lamina's profiles and extender.",
        "config": "Work with configuration files and the configuration in force.",
        "doctor": "Check driver, runtime, Kubernetes, webhook, agents, scheduler and other plugins, and suggest fixes.",
        "mig": "Show MIG profiles and the MIG devices of nodes, and partition GPUs.",
        "cordon": "Stop placing new work on a GPU.",
        "uncordon": "Place work on a cordoned GPU again.",
        "defrag": "Move pods so that GPUs become idle, by eviction, and stop when a pod does not move.",
        "reset": "Stop offering GPUs and remove labels, annotations, resources and the webhook.",
        "uninstall": "Remove Lamina: the webhook first, then all components and their files on nodes.",
    },
    LAB: {
        "demo": "Start a lab with two GPUs, request ten shares, and show where they run and why the others wait.",
        "lab": "Run an embedded cluster with simulated GPUs.",
    },
    "Components, started by manifests": {
        "agent": "Run the node agent: device plugin and limit enforcement.",
        "controller": "Run the controller: scheduler extender, grants and the registration of admission.",
        "admission": "Run admission: the webhook that checks and completes the requests of new pods.",
        "mps": "Run the MPS service: starts, asks and ends MPS daemons for the agent of this node.",
        "mount-files": "Mount a tmpfs for the files that containers of this node write, before its agent starts.",
        "clean-node": "Remove MPS daemons, CDI specs, sockets and state that an agent left on this node.",
    },
}
"""The groups in the order of the help, with their commands and the first sentence of the help of each."""
_OWN = [name for group, names in GROUPS.items() if group != LAB for name in names]
_MODULES = {"scheduler-config": "install", "uncordon": "cordon", "mount-files": "clean_node", "reset": "uninstall"}
"""The commands that share a module with another one, whose name the module has."""
_SETTINGS = {"run": {"allow_interspersed_args": False}}


class _Commands(UserDict[str, Any]):  # click's own types, or a copy of them within typer
    """The commands by name, those of other distributions included, each loaded when it is looked up."""

    def __missing__(self, name: str) -> Any:
        if name not in _OWN:
            raise KeyError(name)
        self.data[name] = _load(name)
        return self.data[name]

    def __contains__(self, name: object) -> bool:
        return name in self.data or name in _OWN

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*_OWN, *self.data]))

    def __len__(self) -> int:
        return len(list(iter(self)))


class GroupedCommands(typer.core.TyperGroup):
    """A group that lists its commands under the headings of `GROUPS`, and all others under `Other`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands(self.commands)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in GROUPS[LAB] and args[0] not in self.commands:
            raise BadInput(f"the command {args[0]} is in another package; `pip install 'lamina[lab]'` installs it")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stopped:
            raise Interrupted(f"{ctx.invoked_subcommand} was interrupted before it was done") from stopped

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for heading, commands in self._sections():
            with formatter.section(heading):
                formatter.write_dl(commands)

    def _sections(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        for heading, summaries in GROUPS.items():
            if commands := [(name, summary) for name, summary in summaries.items() if name in self.commands]:
                yield heading, commands
        known = {name for names in GROUPS.values() for name in names}
        if others := [(name, self.commands[name].get_short_help_str()) for name in self.commands if name not in known]:
            yield "Other", others


def _load(name: str) -> Any:
    """The command of this name: a function of its module, or a group of commands there."""
    word = name.replace("-", "_")
    found = getattr(import_module(f"lamina.cli.{_MODULES.get(name, word)}"), word)
    holder = typer.Typer(rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name, context_settings=_SETTINGS.get(name))(found)
    return typer.main.get_group(holder).commands[name]
