"""The processes that one command starts, known to the kernel as descendants of a keeper.

`keeper` is the program that holds them, and `record` finds and ends it later, also from another process.
"""

from lamina.ports.kept_tree.record import KeptTree, keeping

__all__ = ["KeptTree", "keeping"]
