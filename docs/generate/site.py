"""mkdocs hooks: what the site shows of the repository without it being in docs/.

The changelog becomes a page. The examples are copied, and links to them, which are written as a reader of the
repository needs them (`../../examples/mig.yaml`), are changed to where the site has them. The icon is that of the
dashboard, and long names in tables may be broken after a dot, a slash or an underscore, so that columns stay narrow.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from lamina import __version__
from lamina.core.component_names import SITE

ROOT = Path(__file__).resolve().parents[2]
ICON = ROOT / "src/lamina/operations/dashboard/page/icon.svg"
_CODE_IN_CELL = re.compile(r"(?<=<code>)[^<\s]{16,}(?=</code>)")
_BREAKS = re.compile(r"(?<=[./_\]])(?=\w)")
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_TO_EXAMPLES = re.compile(r"\]\(((?:\.\./)+)examples/")


def on_config(config: Any) -> Any:
    """Where the site is and for which version; `mkdocs serve` has an address of its own."""
    config.site_url = config.site_url or f"{SITE}/"
    config.extra["version"] = __version__
    return config


def on_files(files: Any, config: Any) -> Any:
    files.append(File.generated(config, "changelog.md", abs_src_path=str(ROOT / "CHANGELOG.md")))
    files.append(File.generated(config, "assets/icon.svg", abs_src_path=str(ICON)))
    for path in sorted((ROOT / "examples").rglob("*.yaml")):
        files.append(File.generated(config, str(path.relative_to(ROOT)), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """`docs/` is the site's root, so a link that leaves it is one level too long there."""
    return _TO_EXAMPLES.sub(lambda link: f"]({link[1].removeprefix('../')}examples/", markdown)


def on_page_content(content: str, **_: Any) -> str:
    """A long name in a cell may continue on the next line."""

    def broken(code: re.Match[str]) -> str:
        return _BREAKS.sub("<wbr>", code[0])

    return _TABLE.sub(lambda table: _CODE_IN_CELL.sub(broken, table[0]), content)
