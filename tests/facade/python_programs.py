"""Python programs that call the driver in a container."""

import subprocess
import sys

from tests.facade.conftest import PRELUDE, Container


def python(box: Container, script: str, **more: str) -> subprocess.CompletedProcess[str]:
    return box.run(sys.executable, "-c", PRELUDE + script, **more)
