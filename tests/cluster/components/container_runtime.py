"""What NVIDIA's container runtime does before a container is made, for simulated GPUs.

It reads mounts of /dev/null below `/var/run/nvidia-container-devices`, or `NVIDIA_VISIBLE_DEVICES` from the container's
environment, as the settings of a node say by the names of NVIDIA's own. Then it adds the driver's files to its mounts;
after those that are there already, so that they win over a mount for the same path. In the place of device nodes comes
the machine's folder, and the node's /proc, by which the simulated driver knows processes of all containers apart as a
kernel does. Run as `container_runtime.py SETTINGS ARGUMENTS-OF-RUNC` for every container, so with nothing but the
standard library.
"""

import json
import sys
from pathlib import Path

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
NOTHING = ("", "void")
BY_VARIABLE = "accept-nvidia-visible-devices-envvar-when-unprivileged"
BY_MOUNTS = "accept-nvidia-visible-devices-as-volume-mounts"
VOLUMES = "/var/run/nvidia-container-devices"


def bundle(arguments: list[str]) -> Path:
    """The folder of the container that runc makes."""
    for i, argument in enumerate(arguments):
        if argument in ("--bundle", "-b"):
            return Path(arguments[i + 1])
        if argument.startswith("--bundle="):
            return Path(argument.partition("=")[2])
    return Path.cwd()


def mounted(spec: dict) -> str:
    """The devices that mounts of /dev/null name."""
    below = [each["destination"] for each in spec.get("mounts", []) if each.get("source") == "/dev/null"]
    return ",".join(path.removeprefix(f"{VOLUMES}/") for path in below if path.startswith(f"{VOLUMES}/"))


def privileged(spec: dict) -> bool:
    return "CAP_SYS_ADMIN" in spec["process"].get("capabilities", {}).get("bounding", [])


def visible(spec: dict, settings: dict) -> str:
    """Mounts count before the variable, which may be for privileged containers only."""
    if settings.get(BY_MOUNTS, False) and (devices := mounted(spec)):
        return devices
    return variable(spec) if settings.get(BY_VARIABLE, True) or privileged(spec) else ""


def variable(spec: dict) -> str:
    """The last value of the variable counts, as in a shell."""
    pairs = [entry.partition("=") for entry in spec["process"].get("env", [])]
    named = [value for name, _, value in pairs if name == "NVIDIA_VISIBLE_DEVICES"]
    return named[-1] if named else ""


def mount(source: str, destination: str, *options: str) -> dict:
    return {"source": source, "destination": destination, "type": "bind", "options": ["rbind", "nosuid", *options]}


def edit(spec: dict, machine: str, driver: str) -> None:
    """Add what a container with GPUs gets."""
    spec.setdefault("mounts", []).extend(
        [
            mount(machine, "/run/simgpu", "nodev", "rw"),
            mount("/proc", "/run/simgpu/proc", "ro"),
            *(mount(f"{driver}/{name}", f"{LIBRARIES}/{name}", "ro") for name in ("libcuda.so.1", "libnvidia-ml.so.1")),
            mount(f"{driver}/nvidia-smi", "/usr/bin/nvidia-smi", "ro"),
        ]
    )


def main() -> None:
    settings = json.loads(Path(sys.argv[1]).read_text())
    config = bundle(sys.argv[2:]) / "config.json"
    spec = json.loads(config.read_text())
    if visible(spec, settings) not in NOTHING:
        edit(spec, settings["machine"], settings["driver"])
        config.write_text(json.dumps(spec))


if __name__ == "__main__":
    main()
