"""The documents that the scenarios are taken from, and the manifests inside them, as they stand there.

They are next to the checkout in `../shared/seeds`, or where LAMINA_SEEDS points. A clone alone does not have them; the
tests that replay them then skip.
"""

import html
import os
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def seed(number: str) -> str:
    """The text of the document whose file name begins with `number`, such as "004"; skips where it is not there."""
    folder = Path(os.environ.get("LAMINA_SEEDS", ROOT.parent / "shared" / "seeds"))
    found = sorted(folder.glob(f"{number}_*.txt")) if folder.is_dir() else []
    if not found:
        pytest.skip(f"the seed document {number} is not at {folder}; set LAMINA_SEEDS to the folder that holds it")
    return found[0].read_text()


def manifests(text: str) -> list[str]:
    """Every block of the document that is a Kubernetes manifest, in order, unchanged but for the fence around it."""
    found = []
    for block in re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        heredoc = re.search(r"<<?EOF\n(.*?)^EOF$", block, re.MULTILINE | re.DOTALL)
        body = heredoc.group(1) if heredoc else block
        if body.lstrip().startswith("apiVersion:"):
            found.append(body)
    return found


def piped(text: str) -> list[str]:
    """Every manifest of the document that a shell pipes into kubectl or oc, in order."""
    found = re.findall(r"^(?:\$ )?cat <<-? ?EOF \| (?:kubectl|oc) [^\n]*\n(.*?)^EOF$", text, re.MULTILINE | re.DOTALL)
    return [body.removeprefix("---\n") for body in found]


def indented_manifests(text: str) -> list[str]:
    """The manifests of a document in reStructuredText, freed of the indentation that marks them as literal."""
    found = []
    for marker in re.finditer(r"^( *)\.\. code-block::\n\n", text, re.MULTILINE):
        literal = re.match(rf"(?:(?:{marker[1]} +.*)?\n)+", text[marker.end() :])
        found.append(textwrap.dedent(literal[0]) if literal else "")
    return [block for block in found if block.startswith("apiVersion:")]


def html_manifests(text: str) -> list[str]:
    """The pods of a document that shows them as HTML from their metadata on, with the two lines that it omits."""
    blocks = re.findall(r"<pre><code[^>]*>\n(metadata:.*?)</code></pre>", text, re.DOTALL)
    return [f"apiVersion: v1\nkind: Pod\n{html.unescape(block)}" for block in blocks]


def with_amount(manifest: str, resource: str, amount: int) -> str:
    """The manifest with another amount of one resource, as the document tells its reader to edit it."""
    changed, count = re.subn(rf"({re.escape(resource)}: )\d+", rf"\g<1>{amount}", manifest)
    assert count == 1, f"{resource} stands {count} times in the manifest"
    return changed


def with_replicas(manifest: str, replicas: int) -> str:
    """The manifest with another number of replicas."""
    changed, count = re.subn(r"(replicas: )\d+", rf"\g<1>{replicas}", manifest)
    assert count == 1
    return changed
