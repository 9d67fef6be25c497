"""The real NVML port over a simulated machine, in a process that loads the simulated library as a driver's."""

import json
import os
import subprocess
import sys
from pathlib import Path

from lamina_lab import simgpu
from lamina_lab.simgpu import native

SCRIPT = """
import asyncio, json, sys
from pathlib import Path
from lamina_lab import simgpu
from lamina.ports.nvml import DriverNvml

async def main(machine):
    nvml = DriverNvml()
    gpus = await nvml.gpus()
    found = {"driver": await nvml.driver_version(), "gpus": [(g.name, g.memory_mib, g.mig_capable) for g in gpus]}
    places = {g.uuid: g.index for g in gpus}
    found["links"] = [{places[other]: score for other, score in g.links.items()} for g in gpus]
    found["quiet"] = await nvml.wait_event(0.01)
    simgpu.inject_xid(machine, gpus[1].uuid, 79)
    found["event"] = await nvml.wait_event(5) == (gpus[1].uuid, 79)
    simgpu.set_lost(machine, gpus[0].uuid, True)
    found["lost"] = [g.index for g in await nvml.gpus()]
    simgpu.set_lost(machine, gpus[0].uuid, False)
    found["back"] = [g.index for g in await nvml.gpus()]
    await nvml.close()
    print(json.dumps(found))

asyncio.run(main(Path(sys.argv[1])))
"""


def test_a_simulated_machine(tmp_path: Path) -> None:
    machine = tmp_path / "machine"
    description = "gpus: [{model: V100-SXM2-32GB, nvlinks: 6, bridge: 1}, {model: A100-SXM4-40GB}, "
    description += "{model: V100-SXM2-32GB, nvlinks: 4, bridge: 1}, {model: A100-SXM4-40GB}]"
    simgpu.write(simgpu.parse(description), machine)
    driver = str(native.path("simgpu/libnvidia-ml.so.1").parent)
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(machine)],
        env={**os.environ, "SIMGPU_MACHINE": str(machine), "LD_LIBRARY_PATH": driver},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {
        "driver": "515.86.01",
        "gpus": [["Tesla V100-SXM2-32GB", 32768, False], ["NVIDIA A100-SXM4-40GB", 40960, True]] * 2,
        # six links lead to the next GPU, which has four back; the A100s meet on the switch with twelve each
        "links": [
            {"1": 20, "2": 410, "3": 10},
            {"0": 20, "2": 10, "3": 1210},
            {"0": 410, "1": 10, "3": 20},
            {"0": 10, "1": 1210, "2": 20},
        ],
        "quiet": None,
        "event": True,
        "lost": [1, 2, 3],
        "back": [0, 1, 2, 3],
    }
