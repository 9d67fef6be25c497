"""`python -m bench`: all benchmarks with their parts, what each part needs, and whether it is there."""

from rich.console import Console
from rich.table import Table

from bench.catalog import benchmarks
from bench.parts import Part
from lamina.cli.terminal import print_table


def needs(part: Part) -> str:
    """What the part needs, each with what is missing."""
    said = []
    for need in part.needs:
        state = need.missing() or "is there"
        some = (
            ", for some of its measures"
            if need.only_some
            else f", unless --{need.unless} is given"
            if need.unless
            else ""
        )
        said.append(f"{need.name}{some} ({state})")
    return "\n".join(said)


def main() -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("python -m", "part", "measures", "needs"):
        table.add_column(heading)
    for name, parts in benchmarks().items():
        for part_name, part in parts.items():
            shown = part_name if part.usual or len(parts) == 1 else f"{part_name} (only if named)"
            table.add_row(name, shown, part.about, needs(part))
    print_table(Console(), table)


if __name__ == "__main__":
    main()
