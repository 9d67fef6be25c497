"""Python programs that call NVML in a container."""

import json
import sys

from tests.facade.conftest import PRELUDE

NVML = """
import json, pynvml as nvml
nvml.nvmlInit()
def devices():
    return [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
def code(call, *arguments):
    try:
        call(*arguments)
    except nvml.NVMLError as error:
        return error.value
    return 0
"""


def ask(box, script: str, **more: str) -> object:
    done = box.run(sys.executable, "-c", PRELUDE + NVML + script, **more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
