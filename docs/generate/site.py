"""mkdocs hooks: files of the repository that the site shows without being in docs/.

The changelog becomes a page. The examples are copied, and links to them, which are written as a reader of the
repository needs them (`../../examples/mig.yaml`), are changed to where the site has them.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from lamina.core.component_names import SITE

ROOT = Path(__file__).resolve().parents[2]
_TO_EXAMPLES = re.compile(r"\]\(((?:\.\./)+)examples/")


def on_config(config: Any) -> Any:
    """`mkdocs serve` has an address of its own."""
    config.site_url = config.site_url or f"{SITE}/"
    return config


def on_files(files: Any, config: Any) -> Any:
    files.append(File.generated(config, "changelog.md", abs_src_path=str(ROOT / "CHANGELOG.md")))
    for path in sorted((ROOT / "examples").rglob("*.yaml")):
        files.append(File.generated(config, str(path.relative_to(ROOT)), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """`docs/` is the site's root, so a link that leaves it is one level too long there."""
    return _TO_EXAMPLES.sub(lambda link: f"]({link[1].removeprefix('../')}examples/", markdown)
