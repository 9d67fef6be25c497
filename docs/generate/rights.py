"""The page of rights, from the rules of which the installation makes roles and with which the commands work."""

from collections.abc import Iterator

from docs.generate.markdown import code, page, table
from lamina.install.rights import OF_COMPONENTS, Rule
from lamina.install.rights_of_commands import OF_COMMANDS

_INTRODUCTION = """
The least rights that each component and command works with. The installation makes roles for the components from the
same rules; you give people those of the commands. Tests compare these rules with what components and commands request.
Names can be `resourceNames` of the rule, except for `create`, which Kubernetes cannot limit to a name. From Kubernetes
1.30 on, an admission policy reserves grants for the controller, and from 1.32 on another one limits each agent to its
own node ([Security model](../concepts/security.md#what-is-protected)).
"""
_HEAD = ("resource", "verbs", "names", "note")


def pages() -> Iterator[tuple[str, str]]:
    parts = [_INTRODUCTION]
    parts += ["## Components"]
    for title, rules in OF_COMPONENTS.items():
        parts += [f"### {title}", table(_HEAD, _rows(rules))]
    parts += ["## Commands"]
    for title, rules in OF_COMMANDS.items():
        parts += [f"### {title}", table(_HEAD, _rows(rules))]
    yield "rbac.md", page("RBAC", "src/lamina/install/rights.py", *parts)


def _rows(rules: tuple[Rule, ...]) -> Iterator[tuple[str, str, str, str]]:
    for rule in rules:
        names = ", ".join(code(name) for name in rule.names) or "all"
        yield code(rule.resource), rule.verbs, names, rule.why
