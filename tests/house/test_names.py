"""Names say what a thing is: one class name per thing, nouns for modules, few parameters."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAX_PARAMETERS = 7

SHARED_NAMES: dict[str, str] = {}
"""Class names that may stand for several things otherwise, each with the reason."""

NOUNS = {
    "binding": "the subresource pods/binding of Kubernetes",
    "finding": "the result of one check",
    "holding": "what one pod holds",
    "packing": "the problem of placing pods on few GPUs",
    "patching": "of objects, by the API server",
    "polling": "the standard word for asking at intervals",
    "printing": "kubectl's word for the columns of a table, as in additionalPrinterColumns",
    "ranking": "nodes in their order",
    "reporting": "as in the events API, which has a reportingController",
    "scheduling": "what kube-scheduler does with a pod",
    "serving": "as in the serving certificate of a kubelet",
    "sharing": "of GPUs, what the project is about",
}
"""Modules and packages may end in these words, though they end in -ing; each with what it stands for."""


@cache
def sources() -> dict[str, ast.Module]:
    """The trees of all modules of both distributions, without generated ones, by module name."""
    return {
        ".".join(path.relative_to(ROOT / folder).with_suffix("").parts).removesuffix(".__init__"): ast.parse(
            path.read_text()
        )
        for folder in ("src", "lab/src")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "_pb2" not in path.name and "_native" not in path.parts
    }


def classes(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """The modules that define each public class."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module)
    return found


def ambiguous(trees: Mapping[str, ast.Module]) -> list[str]:
    """Public class names that stand for several things."""
    return [
        f"{name}: {', '.join(modules)}"
        for name, modules in classes(trees).items()
        if len(modules) > 1 and name not in SHARED_NAMES
    ]


def gerunds(modules: Iterable[str]) -> list[str]:
    """Modules and packages that are named by what is done instead of by what they hold."""
    return [
        module
        for module in modules
        if (last := module.rpartition(".")[2].rpartition("_")[2]).endswith("ing") and last not in NOUNS
    ]


def long_signatures(trees: Mapping[str, ast.Module]) -> Iterator[str]:
    """Functions with more than MAX_PARAMETERS parameters; self and cls do not count."""
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_command(module, node.name):
                names = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                count = len(names) - (names[:1] in (["self"], ["cls"]))
                if count > MAX_PARAMETERS:
                    yield f"{module}.{node.name}: {count}"


def _is_command(module: str, function: str) -> bool:
    """Commands are exempt: their parameters are the options that typer reads from the signature."""
    return module.startswith(("lamina.cli.", "lamina_lab.cli.")) and not function.startswith("_")


def parsed(**modules: str) -> dict[str, ast.Module]:
    return {module.replace("__", "."): ast.parse(text) for module, text in modules.items()}


def test_a_class_name_stands_for_one_thing() -> None:
    assert ambiguous(sources()) == []


def test_modules_are_nouns() -> None:
    assert gerunds(sources()) == []


def test_functions_have_few_parameters() -> None:
    assert list(long_signatures(sources())) == []


def test_each_exception_is_needed() -> None:
    trees = sources()
    endings = {module.rpartition(".")[2].rpartition("_")[2] for module in trees}
    assert set(NOUNS) - endings == set()
    assert {name for name in SHARED_NAMES if len(classes(trees)[name]) < 2} == set()


def test_ambiguous_names_are_found() -> None:
    text = "class Gpu: ..."
    assert ambiguous(parsed(a=text)) == []
    assert ambiguous(parsed(a=text, b=text)) == ["Gpu: a, b"]
    assert ambiguous(parsed(a="class _Gpu: ...", b="class _Gpu: ...")) == []


def test_gerunds_are_found() -> None:
    modules = ["lamina.dialects.parsing", "lamina.core.sharing", "lamina.x.bulk_loading", "lamina.x.string_map"]
    assert gerunds(modules) == ["lamina.dialects.parsing", "lamina.x.bulk_loading"]


def test_long_signatures_are_found() -> None:
    seven, eight = "a, b, c, d, e, f, g", "a, b, c, d, *, e, f, g, h"
    text = f"class C:\n  def m(self, {seven}): ...\n  async def n(self, {eight}): ...\ndef command({eight}): ..."
    assert list(long_signatures(parsed(lamina__x=text))) == ["lamina.x.command: 8", "lamina.x.n: 8"]
    assert list(long_signatures(parsed(lamina__cli__x=text))) == []


def test_the_default_namespace_is_named_once() -> None:
    """Everything else takes the namespace of the installation."""
    naming = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if "lamina-system" in line
    ]
    assert len(naming) == 1 and naming[0].startswith("src/lamina/core/component_names.py:"), naming
