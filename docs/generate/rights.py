"""The pages of rights, from the rules of which the installation makes roles and with which the commands work."""

from collections.abc import Iterator, Mapping

from docs.generate.markdown import code, page, table
from lamina.install.rights import OF_COMPONENTS, Rule
from lamina.install.rights_of_commands import OF_COMMANDS

_COMPONENTS = """
The least rights that each component works with. The installation makes roles from the same rules. Tests compare these
rules with what components request. [Rights of commands](rbac-commands.md) lists what people need.

From Kubernetes 1.30 on, an admission policy reserves grants for the controller, and from 1.32 on another one limits
each agent to its own node ([Security model](../concepts/security.md#what-is-protected)).
"""
_COMMANDS = """
The least rights that each command works with, for roles of people. Tests compare these rules with what commands
request. [RBAC](rbac.md) lists the rights of components, whose roles the installation makes.

The installation makes the cluster role `lamina-view` for the commands that only read: `gpus`, `top`, `pods`, `why`,
`fits`, `quotas`, `advise`, `mig list`, `config` and `dashboard`. Who has Kubernetes' role `view` in the whole cluster
has these rights too. For others: `kubectl create clusterrolebinding NAME --clusterrole=lamina-view --group=GROUP`.

Names can be `resourceNames` of the rule, except for `create`, which Kubernetes cannot limit to a name.
"""
_HEAD = ("resource", "verbs", "names", "note")


def pages() -> Iterator[tuple[str, str]]:
    source = "src/lamina/install"
    yield "rbac.md", page("RBAC", f"{source}/rights.py", _COMPONENTS, *_sections(OF_COMPONENTS))
    commands = page("Rights of commands", f"{source}/rights_of_commands.py", _COMMANDS, *_sections(OF_COMMANDS))
    yield "rbac-commands.md", commands


def _sections(rules: Mapping[str, tuple[Rule, ...]]) -> Iterator[str]:
    for title, of_title in rules.items():
        yield f"## {title}"
        yield table(_HEAD, _rows(of_title))


def _rows(rules: tuple[Rule, ...]) -> Iterator[tuple[str, str, str, str]]:
    for rule in rules:
        names = ", ".join(code(name) for name in rule.names) or "all"
        yield code(rule.resource), rule.verbs, names, rule.why
