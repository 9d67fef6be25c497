"""Every page of the site side by side, to be looked at: `python -m docs.screenshots.contact_sheet FOLDER`.

Builds the site, opens each page as wide as a desktop and as a phone, in light and dark colors, prints what does not fit
into the width, and saves sheets of small pictures in FOLDER.
"""

import base64
import functools
import html
import http.server
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from docs.screenshots.charts import ROOT
from tests.browser import browser, missing_browser, use_scheme

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

WIDTHS = {"desktop": 1280, "phone": 390}
SCHEMES = ("light", "dark")
_HEIGHTS = {"desktop": 1600, "phone": 1600}
"""How much of a page is on a sheet."""
_SCALES, _COLUMNS = {"desktop": 0.3, "phone": 0.55}, {"desktop": 4, "phone": 7}
_ROWS = 3
STILL = """
const style = document.createElement('style');
style.textContent = '*, *::before, *::after { transition: none !important; animation: none !important }';
document.head.append(style);
"""
"""What moves when the width changes, such as a menu, is in its new place at once."""
MISFITS = """
const wide = innerWidth + 1, found = [];
const name = (each) => each.tagName.toLowerCase() + ': ' + (each.innerText || each.alt || '').trim().slice(0, 40);
const scrolls = (each) => ['auto', 'scroll'].includes(getComputedStyle(each).overflowX);
const held = (each) => {
  for (let up = each.parentElement; up; up = up.parentElement)
    if (scrolls(up) && up.getBoundingClientRect().right <= wide) return true;
  return false;
};
if (document.documentElement.scrollWidth > wide) found.push('the page is ' + document.documentElement.scrollWidth);
for (const each of document.querySelectorAll('article *, .md-header__title, .md-header__option, .md-footer *')) {
  const box = each.getBoundingClientRect(), style = getComputedStyle(each);
  if (!box.width || !each.checkVisibility({checkOpacity: true, checkVisibilityCSS: true})) continue;
  if (box.right > wide && !held(each)) found.push(name(each) + ' ends at ' + Math.round(box.right));
  if (['hidden', 'clip'].includes(style.overflowX) && style.display !== 'inline' && each.clientWidth > 1
      && each.scrollWidth > each.clientWidth + 1) found.push(name(each) + ' is cut');
}
return found.slice(0, 5);
"""
"""What is wider than the page and cannot be scrolled to, or is cut off."""


def build(folder: Path) -> None:
    """The site, as `make docs` builds it."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr


def pages(site: Path) -> list[str]:
    """The address of each page below the site's."""
    return sorted(f"{path.parent.relative_to(site)}/".removeprefix("./") for path in site.rglob("index.html"))


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of the site on this machine."""
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Requests of the browser are not news."""


def without_search(driver: "Chrome") -> None:
    """Pages do not load the index of the search, which takes longer than all the rest."""
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/search_index.json", "*/workers/search*"]})


def as_wide_as(driver: "Chrome", device: str) -> None:
    """Lay out pages for `desktop` or `phone`, of any height."""
    metrics = {"width": WIDTHS[device], "height": _HEIGHTS[device], "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def misfits(driver: "Chrome", address: str) -> dict[str, list[str]]:
    """What does not fit on the page at this address, by device. Pages that are right have no entry."""
    driver.get(address)
    driver.execute_script(STILL)
    found = {}
    for device in WIDTHS:
        as_wide_as(driver, device)
        if wrong := driver.execute_script(MISFITS):
            found[device] = wrong
    return found


def _picture(driver: "Chrome", device: str) -> str:
    clip = {"x": 0, "y": 0, "width": WIDTHS[device], "height": _HEIGHTS[device], "scale": _SCALES[device]}
    data = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})["data"]
    return f"data:image/png;base64,{data}"


def _save_sheet(driver: "Chrome", path: Path, device: str, pictures: Sequence[tuple[str, str]]) -> None:
    cells = "".join(f"<figure><figcaption>{html.escape(name)}</figcaption><img src='{at}'></figure>"
                    for name, at in pictures)  # fmt: skip
    style = f"body{{margin:8px;display:grid;gap:8px;grid-template-columns:repeat({_COLUMNS[device]},auto)}}"
    style += "figure{margin:0;font:12px sans-serif}img{border:1px solid #888}"
    with tempfile.NamedTemporaryFile("w", suffix=".html") as file:
        file.write(f"<style>{style}</style>{cells}")
        file.flush()
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        driver.get(f"file://{file.name}")
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True})
    path.write_bytes(base64.b64decode(shot["data"]))


def save(driver: "Chrome", address: str, names: Sequence[str], folder: Path) -> None:
    """The sheets of all devices and schemes."""
    for device in WIDTHS:
        for scheme in SCHEMES:
            use_scheme(driver, scheme)
            driver.get(address)
            driver.execute_script("localStorage.clear()")  # the scheme of the page before
            size = _COLUMNS[device] * _ROWS
            for first in range(0, len(names), size):
                pictures = []
                for name in names[first : first + size]:
                    as_wide_as(driver, device)
                    driver.get(address + name)
                    pictures.append((name or "home", _picture(driver, device)))
                _save_sheet(driver, folder / f"{device}-{scheme}-{first // size + 1:02}.png", device, pictures)


def main() -> None:
    if lacking := missing_browser():
        sys.exit(lacking)
    if len(sys.argv) < 2:
        sys.exit("contact_sheet: name the folder for the sheets, and then pages if not all are wanted")
    folder, wanted = Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lam") as site:
        build(Path(site))
        names = [name for name in pages(Path(site)) if not wanted or name in wanted]
        with served(Path(site)) as address, browser(width=1300, height=1600) as driver:
            without_search(driver)
            for name in names:
                for device, wrong in misfits(driver, address + name).items():
                    print(f"{name or 'home'} ({device}): {'; '.join(wrong)}")
            save(driver, address, names, folder)
    print(f"{len(names)} pages, sheets in {folder}")


if __name__ == "__main__":
    main()
