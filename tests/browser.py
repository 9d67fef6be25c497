"""A headless Chromium, for tests and pictures of the dashboard."""

import importlib.util
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


def missing_browser() -> str:
    """What this machine lacks of a browser that can be controlled, in a sentence, or nothing."""
    lacking = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    lacking += [] if importlib.util.find_spec("selenium") else ["selenium"]
    return f"{' and '.join(lacking)} must be installed for tests in a browser" if lacking else ""


@contextmanager
def browser(*, width: int = 1280, height: int = 900) -> "Iterator[Chrome]":
    """A browser with a profile of its own, which ends afterwards."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory(prefix="lam", ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for option in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", "hide-scrollbars"):
            options.add_argument(f"--{option}")
        options.add_argument(f"--user-data-dir={profile}")
        options.add_argument(f"--window-size={width},{height}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options, Service(shutil.which("chromedriver") or ""))
        try:
            yield driver
        finally:
            driver.quit()


def use_scheme(driver: "Chrome", scheme: str) -> None:
    """Show pages as for a person who prefers `light` or `dark`."""
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
