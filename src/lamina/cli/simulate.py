"""`lamina simulate`: replay a cluster dump or a trace and compare placement policies."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from lamina.cli.terminal import console, print_charts, print_table
from lamina.configuration import DEFAULT, load
from lamina.errors import BadInput
from lamina.operations.charts import svg_file
from lamina.operations.simulate import Result, SimNode, SimPod, read_nodes, read_pods
from lamina.operations.simulate.picture import charts, page
from lamina.operations.simulate.what_if import added, shared, whole, without, without_mig
from lamina.ports.user_files import read_text, write
from lamina.simulation.replay import check_policy, replay

_MAX_REASONS = 10


def simulate(
    nodes: Annotated[
        Path | None, typer.Option("--nodes", help="Nodes: a dump (JSON or YAML) or a trace (CSV). Required.")
    ] = None,
    pods: Annotated[
        Path | None, typer.Option("--pods", help="Pods: a dump, a trace or manifests. May be the same dump. Required.")
    ] = None,
    policy: Annotated[list[str] | None, typer.Option("--policy", help="Policy. Repeat it to compare several.")] = None,
    add_nodes: Annotated[list[str] | None, typer.Option("--add-nodes", help="Add nodes, as N:MODEL:GPUS.")] = None,
    remove_nodes: Annotated[
        list[str] | None, typer.Option("--remove-nodes", help="Remove nodes by name. * matches anything.")
    ] = None,
    split_count: Annotated[
        int | None, typer.Option("--split-count", min=1, max=1000, help="Maximum number of shares per GPU.")
    ] = None,
    memory_scaling: Annotated[
        float | None,
        typer.Option("--memory-scaling", min=0.01, max=100, help="Memory to grant per GPU, as a multiple."),
    ] = None,
    core_scaling: Annotated[
        float | None,
        typer.Option("--core-scaling", min=0.01, max=100, help="Compute to grant per GPU, as a multiple."),
    ] = None,
    mode: Annotated[str, typer.Option("--mode", help="quota, or whole (GPUs are not shared).")] = "quota",
    departures: Annotated[bool, typer.Option("--departures", help="Pods end as the trace says.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Running pods stay where they are.")] = False,
    config: Annotated[Path | None, typer.Option("--config", help="Configuration file, for the pods of a dump.")] = None,
    picture: Annotated[Path | None, typer.Option("--picture", help="Write a chart over time to this SVG file.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write charts and figures to this HTML page.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all results to this JSON file.")] = None,
) -> None:
    """Replay pods on nodes and compare policies: allocated and stranded GPU, and which pods wait and why.

    Whether a manifest fits into a cluster now is what `lamina fits -f FILE` says.
    """
    if nodes is None or pods is None:
        raise _missing("--nodes" if nodes is None else "--pods")
    policies = policy or ["binpack", "packing"]
    for each in policies:
        check_policy(each)
    made, coming, missing = _input(nodes, pods, config)
    made = _what_if(made, add_nodes or [], remove_nodes or [], split_count, memory_scaling, core_scaling)
    if mode not in ("quota", "whole"):
        raise BadInput(f"--mode must be quota or whole, got {mode!r}")
    if mode == "whole":
        coming = whole(coming)
    results = _replayed(made, coming, policies, departures=departures, keep=keep)
    gpus = sum(len(node.gpus) for node in made)
    for sentence in missing:
        console.print(sentence, markup=False, soft_wrap=True)
    size = f"{len(coming)} pods on {len(made)} nodes with {gpus} GPUs"
    console.print(size)
    _print(results)
    if picture is not None:
        write(picture, svg_file(charts(results)), "--picture")
    if html is not None:
        write(html, page(results, {"replayed": size, "nodes": str(nodes), "pods": str(pods)}), "--html")
    if json_file is not None:
        write(json_file, msgspec.json.format(msgspec.json.encode(results)), "--json")


def _missing(option: str) -> BadInput:
    return BadInput(
        f"{option} is missing: simulate replays pods of one file on nodes of another or the same; whether a manifest "
        "fits into your cluster now is what `lamina fits -f FILE` says"
    )


def _input(nodes: Path, pods: Path, config: Path | None) -> tuple[list[SimNode], list[SimPod], list[str]]:
    """Nodes, pods, and sentences about what of the files is left out."""
    settings = DEFAULT if config is None else load(read_text(config, "--config"), str(config))
    made, coming, missing = without_mig(read_nodes(nodes), read_pods(pods, settings))
    if not coming:
        raise BadInput(f"{pods} has no pods that can be replayed: {'; '.join(missing)}")
    return made, coming, missing


def _what_if(
    nodes: list[SimNode],
    add: Sequence[str],
    remove: Sequence[str],
    slots: int | None,
    memory_scaling: float | None,
    core_scaling: float | None,
) -> list[SimNode]:
    for pattern in remove:
        nodes = without(nodes, pattern)
    for written in add:
        nodes = [*nodes, *added(written, nodes)]
    if not nodes:
        raise BadInput("no node is left to place pods on")
    return shared(nodes, slots=slots, memory_scaling=memory_scaling, core_scaling=core_scaling)


def _replayed(
    nodes: list[SimNode], pods: list[SimPod], policies: Sequence[str], *, departures: bool, keep: bool
) -> list[Result]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        results = []
        for policy in policies:
            task = bar.add_task(policy, total=len(pods))

            def report(done: int, task: int = int(task)) -> None:
                bar.update(task, completed=done)  # type: ignore[arg-type]

            results.append(replay(nodes, pods, policy, departures=departures, keep=keep, progress=report))
    return results


def _print(results: Sequence[Result]) -> None:
    table = Table("POLICY", "ASKED", "ALLOCATED", "STRANDED", "PLACED", "WAITING", box=None, pad_edge=False)
    for result in results:
        end = result.end
        parts = [f"{100 * part:.2f} %" for part in (end.asked, end.allocated, end.stranded)]
        table.add_row(result.policy, *parts, str(result.placed), str(end.waiting))
    print_table(console, table)
    course = Table("PODS", *[f"{result.policy}: ALLOCATED, STRANDED" for result in results], box=None, pad_edge=False)
    count = len(results[0].points)
    for place in sorted({round(part * (count - 1) / 9) for part in range(10)}):
        cells = [f"{100 * r.points[place].allocated:.1f} %, {100 * r.points[place].stranded:.1f} %" for r in results]
        course.add_row(str(results[0].points[place].pods), *cells)
    console.print("\nover time")
    print_table(console, course)
    print_charts(console, charts(results))
    for result in results:
        if result.reasons:
            console.print(f"\n{result.policy}: {len(result.waiting)} pods wait")
        for reason, number in result.reasons[:_MAX_REASONS]:
            console.print(f"  {number}: {reason}", markup=False, soft_wrap=True)
        if len(result.reasons) > _MAX_REASONS:
            rest = sum(number for _, number in result.reasons[_MAX_REASONS:])
            console.print(f"  {rest}: {len(result.reasons) - _MAX_REASONS} other reasons")
