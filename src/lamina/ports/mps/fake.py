"""MPS without a program, for tests: daemons that can die, hang and refuse."""

from dataclasses import dataclass, field

from lamina.errors import Outside
from lamina.ports.mps.protocol import Hangs, Home


@dataclass
class FakeDaemon:
    """One daemon: the commands it got, and whether it hangs."""

    percent: float = 100.0
    memory: str = "0G"
    hangs: bool = False
    commands: list[str] = field(default_factory=list)


class FakeMps:
    """`daemons` are those that run, by GPU. `refuses` is a sentence with which every start fails.

    `deaf` daemons forget limits.
    """

    def __init__(self) -> None:
        self.daemons: dict[str, FakeDaemon] = {}
        self.refuses = ""
        self.deaf = False
        self.started: list[str] = []
        self.ended: list[str] = []

    async def start(self, home: Home) -> None:
        if self.refuses:
            raise Outside(self.refuses)
        assert home.pipe.is_dir(), "the pipe directory is made before the daemon is started"
        assert home.log.is_dir(), "and so is that of its log"
        assert home.gpu not in self.daemons, "one daemon at a time"
        self.started.append(home.gpu)
        self.daemons[home.gpu] = FakeDaemon()

    async def ask(self, home: Home, command: str) -> str:
        daemon = self.daemons.get(home.gpu)
        if daemon is None:
            raise Outside(f"the MPS control daemon of {home.gpu} does not answer: it is not there")
        if daemon.hangs:
            raise Hangs(f"the MPS control daemon of {home.gpu} gives no answer within 5 s")
        return "\n".join(self._obey(home.gpu, daemon, line) for line in command.splitlines())

    def _obey(self, gpu: str, daemon: FakeDaemon, command: str) -> str:
        daemon.commands.append(command)
        name, *words = command.split()
        if name == "quit":
            del self.daemons[gpu]
        elif name == "set_default_active_thread_percentage" and not self.deaf:
            daemon.percent = float(words[0])
        elif name == "set_default_device_pinned_mem_limit" and not self.deaf:
            daemon.memory = words[1]
        return {
            "get_default_active_thread_percentage": f"{daemon.percent}",
            "get_default_device_pinned_mem_limit": daemon.memory,
        }.get(name, "")

    async def end(self, home: Home) -> None:
        self.ended.append(home.gpu)
        self.daemons.pop(home.gpu, None)
