"""NVIDIA's program `nvidia-cuda-mps-control`.

`-d` starts a daemon, which leaves its starter's session and lives on by itself; without options the program passes its
standard input on to the daemon of its pipe directory. A keeper holds the daemon and its server: they are found by their
descent from it, which no other process of the node can claim.

A daemon and its clients exchange data in /dev/shm. The clients have the directory `shm` of the daemon there, so the
daemon runs in a mount namespace in which that directory is mounted at /dev/shm.
"""

import asyncio
import errno
import os
import shutil
from collections.abc import Mapping

from lamina.errors import Outside
from lamina.ports.kept_tree import KeptTree, keeping
from lamina.ports.mps.protocol import Hangs, Home

CONTROL = "nvidia-cuda-mps-control"
MULTI_USER = "-multiuser-server"
ANSWER_S = 5.0
_WITH_OWN_SHM = (
    *("unshare", "--mount", "--propagation", "slave", "--"),
    *("sh", "-c", 'mount --bind "$0" /dev/shm && exec "$@"'),
)
"""Runs a program with a directory as its /dev/shm."""
_END_S = 5.0


class ControlProgram:
    """`program` is the path of nvidia-cuda-mps-control, or its name to be looked for on PATH. With `own_shm`, each
    daemon has its home's directory as /dev/shm, otherwise that of its starter. With `multi_user`, clients of all users
    are served at the same time; only root may start such a daemon."""

    def __init__(
        self, program: str, *, own_shm: bool = False, multi_user: bool = False, answer_s: float = ANSWER_S
    ) -> None:
        self._program = program
        self._own_shm = own_shm
        self._start = ("-d", MULTI_USER) if multi_user else ("-d",)
        self._answer_s = answer_s

    async def start(self, home: Home) -> None:
        if keeper := KeptTree(home.keeper).keeper:
            raise Outside(
                f"the MPS control daemon of {home.gpu} does not start: one runs already, below process {keeper}"
            )
        log = home.log / "start.log"
        try:
            output = log.open("w+b")  # not a pipe: the daemon may keep it open
        except OSError as error:
            raise Outside(f"cannot write {log}: {error.strerror}") from error
        with output:
            code = await self._run(home, stdout=output.fileno())
            output.seek(0)
            answer = " ".join(output.read().decode(errors="replace").split())
        if code != 0:
            raise Outside(f"the MPS control daemon of {home.gpu} does not start: {answer or f'it ended with {code}'}")

    async def ask(self, home: Home, command: str) -> str:
        process = await self._process(
            home,
            self._program,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(self._answer_s):
                output, _ = await process.communicate(f"{command}\n".encode())
        except TimeoutError as error:
            process.kill()
            await process.wait()
            raise Hangs(f"the MPS control daemon of {home.gpu} gives no answer within {self._answer_s:g} s") from error
        answer = output.decode(errors="replace").strip()
        if process.returncode != 0:
            raise Outside(f"the MPS control daemon of {home.gpu} does not answer: {answer or process.returncode}")
        return answer

    async def end(self, home: Home) -> None:
        try:
            await KeptTree(home.keeper).end(_END_S)
        except Outside as error:
            raise Outside(f"MPS on {home.gpu} does not end: {error}") from error

    async def _run(self, home: Home, *, stdout: int) -> int:
        if shutil.which(self._program) is None:
            raise Outside(f"{self._program} cannot be run: {os.strerror(errno.ENOENT)}; it comes with NVIDIA's driver")
        inside = (*_WITH_OWN_SHM, str(home.shm)) if self._own_shm else ()
        command = keeping(home.keeper, (*inside, self._program, *self._start))
        process = await self._process(home, *command, stdin=asyncio.subprocess.DEVNULL, stdout=stdout, stderr=stdout)
        try:
            async with asyncio.timeout(self._answer_s):
                return await process.wait()
        except TimeoutError as error:
            process.kill()
            await process.wait()
            await self.end(home)
            raise Outside(f"the MPS control daemon of {home.gpu} did not start within {self._answer_s:g} s") from error

    async def _process(
        self, home: Home, *command: str, stdin: int, stdout: int, stderr: int
    ) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *command,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=environment(home, os.environ),
                start_new_session=True,
            )
        except OSError as error:
            raise Outside(f"{command[0]} cannot be run: {error.strerror}; it comes with NVIDIA's driver") from error


def environment(home: Home, base: Mapping[str, str]) -> dict[str, str]:
    """The environment of the program: its one GPU and its folders."""
    kept = {name: value for name, value in base.items() if not name.startswith("CUDA_")}
    return kept | {
        "CUDA_VISIBLE_DEVICES": home.gpu,
        "CUDA_MPS_PIPE_DIRECTORY": str(home.pipe),
        "CUDA_MPS_LOG_DIRECTORY": str(home.log),
    }
