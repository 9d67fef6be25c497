"""`lamina mig`: what GPUs can be cut into."""

from typing import Annotated

import typer

mig = typer.Typer(help="What GPUs can be cut into by MIG.", no_args_is_help=True)


@mig.callback()
def _verbs() -> None:
    """What GPUs can be cut into by MIG."""


@mig.command()
def profiles(
    card: Annotated[str, typer.Argument(help="Only cards whose name has this in it, such as A100-40GB.")] = "",
) -> None:
    """List the profiles of the cards that can be cut, with their places; the table that placement goes by."""
    from rich.table import Table

    from lamina.cli.terminal import console, print_table
    from lamina.errors import BadInput
    from lamina.model.mig_cards import MIG_CARDS

    chosen = [each for name, each in MIG_CARDS.items() if card.casefold() in name.casefold()]
    if not chosen:
        raise BadInput(f"no card is named like {card!r}; there are {', '.join(MIG_CARDS)}")
    table = Table("CARD", "PROFILE", "ID", "MEMORY", "COMPUTE", "SMS", "MOST", "PLACES", box=None, pad_edge=False)
    for each in chosen:
        for profile in each.profiles:
            table.add_row(
                each.model,
                profile.name,
                str(profile.id),
                "" if profile.memory_mib is None else f"{profile.memory_mib} MiB",
                f"{profile.slices}/{each.profiles[-1].slices}",
                "" if profile.sms is None else str(profile.sms),
                str(each.most(profile)),
                f"{','.join(map(str, profile.starts))}:{profile.size}",
            )
    print_table(console, table)
