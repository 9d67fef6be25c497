"""Objects as YAML for people: without anchors, which appear where two objects share a part in memory."""

from collections.abc import Iterable
from typing import Any

import yaml

_WIDTH = 116


class _PlainDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def yaml_text(document: Any) -> str:
    """One document."""
    return yaml.dump(document, Dumper=_PlainDumper, sort_keys=False, width=_WIDTH, allow_unicode=True)


def yaml_documents(documents: Iterable[Any]) -> str:
    """Several documents, each of which begins with `---`."""
    return yaml.dump_all(documents, Dumper=_PlainDumper, sort_keys=False, width=_WIDTH, explicit_start=True)
