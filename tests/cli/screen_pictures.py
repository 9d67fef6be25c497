"""Pictures of the screen of `lamina top` as text: `python -m tests.cli.screen_pictures` writes them again."""

from collections.abc import Mapping
from pathlib import Path

from lamina.cli.screen.frame import frame
from lamina.cli.screen.state import TopScreen
from lamina.cli.screen.text import ASCII, UNICODE
from tests.cli.screen_world import busy_cluster, press

FOLDER = Path(__file__).with_name("pictures")
SIZES = ((80, 24), (200, 60), (40, 12), (40, 5))
KEYS: Mapping[str, tuple[str, ...]] = {
    "pods": (),
    "gpus": ("g",),
    "details": ("down", "enter"),
    "gpu-details": ("g", "enter"),
    "help": ("?",),
    "filter": ("/", *"status=pending"),
}


def picture(keys: tuple[str, ...], width: int, height: int, *, ascii_only: bool = False) -> str:
    """The screen after these keys."""
    shown = TopScreen(source="https://server (context test)")
    shown.take(busy_cluster())
    shown.take(busy_cluster())
    lines = frame(press(shown, *keys), width, height, ASCII if ascii_only else UNICODE)
    return "".join(f"{line.plain.rstrip()}\n" for line in lines)


def pictures() -> dict[str, str]:
    """Each picture by its name."""
    shown = {f"{name}-{w}x{h}": picture(keys, w, h) for name, keys in KEYS.items() for w, h in SIZES}
    return shown | {"pods-80x24-ascii": picture((), 80, 24, ascii_only=True)}


if __name__ == "__main__":
    for name, text in pictures().items():
        (FOLDER / f"{name}.txt").write_text(text)
