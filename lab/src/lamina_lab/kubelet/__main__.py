"""`python -m lamina_lab.kubelet`: the kubelet of one node, until SIGTERM or SIGINT."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from lamina.errors import BadInput, LaminaError
from lamina_lab.kubelet.containers.environment import assignments
from lamina_lab.kubelet.kubelet import Kubelet
from lamina_lab.kubelet.model.settings import Settings

MAX_SOCKET_PATH = 107  # bytes in the path of a Unix socket


def settings(words: Sequence[str]) -> Settings:
    """The settings on the command line. Raises BadInput; unknown arguments end the process."""
    parser = argparse.ArgumentParser(prog="python -m lamina_lab.kubelet", description=__doc__)
    parser.add_argument("--node", required=True, help="name of the node")
    parser.add_argument("--lab-id", required=True, help="marker of every process of the lab")
    for name, text in (
        ("--kubeconfig", "kubeconfig of the API server"),
        ("--kubelet-dir", "directory of device-plugins/ and pod-resources/"),
        ("--programs", "directory that comes first in every container's PATH"),
        ("--root-dir", "directory of pods' working directories and logs"),
        ("--socket", "Unix socket that serves logs and exec"),
    ):
        parser.add_argument(name, required=True, type=Path, help=text)
    parser.add_argument("--cdi-dir", required=True, type=Path, action="append", help="directory of CDI specifications")
    for name, text in (
        ("--label", "label of the node"),
        ("--container-env", "environment variable of every container"),
        ("--gpu-env", "environment variable of every container with a CDI device"),
    ):
        parser.add_argument(name, action="append", default=[], metavar="KEY=VALUE", help=text)
    refused = "let NVIDIA's runtime ignore NVIDIA_VISIBLE_DEVICES, so that only mounts name GPUs"
    parser.add_argument("--refuse-visible-devices", action="store_true", help=refused)
    parser.add_argument("--node-ip", default="127.0.0.1")
    parser.add_argument("--cpus", type=int, default=64)
    parser.add_argument("--memory-mib", type=int, default=256 * 1024)
    given = parser.parse_args(words)
    for socket in (given.socket, given.kubelet_dir / "device-plugins" / "kubelet.sock"):
        if len(bytes(socket)) > MAX_SOCKET_PATH:
            raise BadInput(f"{socket} is too long for a socket, which allows at most {MAX_SOCKET_PATH} bytes")
    try:
        return Settings(
            node=given.node,
            lab_id=given.lab_id,
            kubeconfig=given.kubeconfig,
            kubelet_dir=given.kubelet_dir.absolute(),
            cdi_dirs=tuple(folder.absolute() for folder in given.cdi_dir),
            programs=given.programs.absolute(),
            root_dir=given.root_dir.absolute(),
            socket=given.socket.absolute(),
            labels=assignments(given.label, "--label"),
            container_env=assignments(given.container_env, "--container-env"),
            gpu_env=assignments(given.gpu_env, "--gpu-env"),
            cpus=given.cpus,
            memory_mib=given.memory_mib,
            node_ip=given.node_ip,
            refuse_visible_devices=given.refuse_visible_devices,
        )
    except ValueError as error:
        raise BadInput(str(error)) from error


async def serve(what: Settings) -> None:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    async with Kubelet(what) as kubelet:
        reasons = [asyncio.create_task(asked.wait()), asyncio.create_task(kubelet.broken())]
        ended, _ = await asyncio.wait(reasons, return_when=asyncio.FIRST_COMPLETED)
        for reason in ended:
            reason.result()


def main() -> int:
    try:
        asyncio.run(serve(settings(sys.argv[1:])))
    except LaminaError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
