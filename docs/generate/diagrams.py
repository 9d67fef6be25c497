"""Render docs/diagrams/*.dot to docs/images/*.svg: `python -m docs.generate.diagrams`. Needs Graphviz' `dot`.

Each picture ends with a comment that holds its source's checksum, so a test finds pictures that are out of date
without Graphviz.
"""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
SOURCES = DOCS / "diagrams"
IMAGES = DOCS / "images"


def mark(source: Path) -> str:
    """The last line of the picture that is made from `source`."""
    return f"<!-- {source.name} sha256:{hashlib.sha256(source.read_bytes()).hexdigest()} -->"


def out_of_date() -> Iterator[str]:
    """One sentence for each source without its picture, and for each picture without its source."""
    sources = {source.stem: source for source in SOURCES.glob("*.dot")}
    pictures = {picture.stem: picture for picture in IMAGES.glob("*.svg")}
    for name, source in sorted(sources.items()):
        if name not in pictures or pictures[name].read_text().splitlines()[-1] != mark(source):
            yield f"docs/images/{name}.svg is not made from docs/diagrams/{name}.dot as it is now"
    for name in sorted(pictures.keys() - sources.keys()):
        yield f"docs/images/{name}.svg has no source in docs/diagrams"


def main() -> int:
    dot = shutil.which("dot")
    if dot is None:
        print("the program `dot` of Graphviz is not on PATH; install Graphviz", file=sys.stderr)
        return 1
    IMAGES.mkdir(exist_ok=True)
    for source in sorted(SOURCES.glob("*.dot")):
        rendered = subprocess.run([dot, "-Tsvg", source], check=True, capture_output=True, text=True).stdout
        (IMAGES / f"{source.stem}.svg").write_text(f"{rendered.rstrip()}\n{mark(source)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
