"""The command: reads its options, queries NVML, prints. Exit codes and messages are nvidia-smi's."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pynvml

from lamina_lab.smi import log, mig, policy, query, table, words
from lamina_lab.smi.machine import SmiGpu, SmiMachine, SmiProcess, processes, read
from lamina_lab.smi.words import InvalidOption

INVALID_ARGUMENT = 2
NO_DEVICES = 6
NO_DRIVER = 9
NO_LIBRARY = 12
GPU_LOST = 15
_NO_DRIVER_TEXT = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running.\n"
)
_HELP = """\
nvidia-smi [OPTION]...

    (none)                       Table of GPUs and processes.
    -h, --help                   Print this text.
        --version                Print versions.
    -L, --list-gpus              One line per GPU.
    -i, --id=ID                  Only these GPUs: indices, UUIDs or PCI addresses, comma-separated.
    -q, --query                  All values, one per line.
    -d, --display=SECTION        With -q: MEMORY, UTILIZATION, TEMPERATURE, POWER, PIDS, comma-separated.
        --query-gpu=FIELD,...    Fields of GPUs, with --format=csv[,noheader][,nounits].
        --query-compute-apps=... Fields of processes: pid, process_name, gpu_uuid, used_memory.
    -mig, --multi-instance-gpu=0|1  Switch MIG mode off or on.
    mig -lgip | -lgi | -lci      Profiles of GPU instances; GPU instances; compute instances.
    compute-policy -l | --list   How long the turns of processes on a GPU are at most.
    compute-policy --set-timeslice=N  Change that: 0=DEFAULT, 1=SHORT, 2=MEDIUM, 3=LONG.
    dmon [-i ID] [-s pucm]       A line per GPU every second: power, utilization, clocks, memory.
    pmon [-i ID] [-s um]         A line per process. Both take -c COUNT and -d SECONDS.
    topo -m                      How the GPUs are connected.
"""


@dataclass
class SmiOptions:
    """The options of the command line."""

    action: str = "table"
    ids: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    format: tuple[str, ...] = ()
    mode: tuple[str, ...] = ()
    slice: tuple[str, ...] = ()


_FLAGS = {
    "-h": "help", "--help": "help", "--version": "version", "-L": "list", "--list-gpus": "list", "-q": "log",
    "--query": "log",
    "-lgip": "mig-profiles", "--list-gpu-instance-profiles": "mig-profiles", "-lgi": "mig-instances",
    "--list-gpu-instances": "mig-instances", "-lci": "mig-computes", "--list-compute-instances": "mig-computes",
    "-l": "policy-list", "--list": "policy-list",
}  # fmt: skip
_VALUES = {
    "-i": "ids", "--id": "ids", "-d": "sections", "--display": "sections", "--format": "format",
    "--query-gpu": "fields", "--query-compute-apps": "fields", "-mig": "mode",
    "--multi-instance-gpu": "mode", "--set-timeslice": "slice",
}  # fmt: skip
_HELPS = {"help": _HELP, "policy-help": policy.HELP}
_ACTIONS = {"mode": "mig-mode", "slice": "policy-set"}
_WORDS = ("mig", "compute-policy")


_MIG_LISTS = {
    "mig-profiles": mig.profile_lines,
    "mig-instances": mig.instance_lines,
    "mig-computes": mig.compute_lines,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = given[0] if given and given[0] in words.WORDS else ""
    try:
        options: SmiOptions | words.Command = words.parse(command, given[1:]) if command else parse(given)
    except InvalidOption as wrong:
        print(f"{wrong}\nPlease run 'nvidia-smi -h' for help.\n")
        return INVALID_ARGUMENT
    if isinstance(options, SmiOptions) and options.action in _HELPS:
        print(_HELPS[options.action], end="")
        return 0
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        print("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.")
        return NO_LIBRARY
    except pynvml.NVMLError:
        print(_NO_DRIVER_TEXT)
        return NO_DRIVER
    try:
        return _run(options) if isinstance(options, SmiOptions) else _repeat(options)
    except query.UnknownField as wrong:
        print(f'Field "{wrong}" is not a valid field to query.\n')
        return INVALID_ARGUMENT
    except pynvml.NVMLError_GpuIsLost as wrong:
        print(f"Unable to determine the device handle for a GPU: {wrong}.")
        return GPU_LOST
    finally:
        pynvml.nvmlShutdown()


def parse(arguments: Sequence[str]) -> SmiOptions:
    """Parse the options. Raises InvalidOption."""
    options = SmiOptions()
    word = arguments[0] if arguments and arguments[0] in _WORDS else ""
    rest: Iterator[str] = iter(arguments[1:] if word else arguments)
    for argument in rest:
        name, separator, value = argument.partition("=")
        if name in _FLAGS and not separator:
            options.action = _FLAGS[name]
        elif name in _VALUES:
            text = value if separator else next(rest, "")
            if not text:
                raise InvalidOption(f"Option {name} needs a value.")
            setattr(options, _VALUES[name], tuple(part.strip() for part in text.split(",")))
            if name.startswith("--query-"):
                options.action = name.removeprefix("--")
            options.action = _ACTIONS.get(_VALUES[name], options.action)
        else:
            raise InvalidOption(f"Invalid combination of input arguments: {argument!r} is not an option.")
    if (word == "mig") != (options.action in _MIG_LISTS):
        raise InvalidOption("The listings -lgip, -lgi and -lci go with the word mig, and it with one of them.")
    if word == "compute-policy" and options.action == "help":
        options.action = "policy-help"
    if (word == "compute-policy") != options.action.startswith("policy-"):
        raise InvalidOption("--list and --set-timeslice go with the word compute-policy, and it with one of them.")
    _check(options)
    return options


def _check(options: SmiOptions) -> None:
    if options.action == "mig-mode" and options.mode not in (("0",), ("1",)):
        raise InvalidOption("MIG mode is 0 or 1.")
    if options.action == "policy-set" and options.slice not in [(str(number),) for number in range(len(policy.SLICES))]:
        raise InvalidOption("A timeslice is 0=DEFAULT, 1=SHORT, 2=MEDIUM or 3=LONG.")
    if options.action.startswith("query-") and "csv" not in options.format:
        raise InvalidOption('"--format=" switch is missing or is not csv.')
    strange = set(options.format) - {"csv", "noheader", "nounits"}
    if strange:
        raise InvalidOption(f"Format {', '.join(sorted(strange))} is not one of csv, noheader, nounits.")
    options.sections = tuple(name.upper() for name in options.sections)
    unknown = log.unknown_sections(options.sections)
    if unknown:
        raise InvalidOption(f"Section {', '.join(unknown)} cannot be displayed.")


def _run(options: SmiOptions) -> int:
    machine = read()
    count = len(machine.gpus)
    if options.ids:
        machine = replace(machine, gpus=tuple(gpu for gpu in machine.gpus if _named(gpu, options.ids)))
    if not machine.gpus and options.action != "version":
        print("No devices were found")
        return NO_DEVICES
    if options.action.startswith(("mig-", "policy-")):
        lines, well = _mig(options, machine) if options.action.startswith("mig-") else _policy(options, machine)
        print("\n".join(lines))
        return 0 if well else NO_DEVICES
    print("\n".join(_lines(options, machine, count)))
    return 0


def _repeat(command: words.Command) -> int:
    """Prints until it is done or interrupted."""

    def gpus() -> list[SmiGpu]:
        return [gpu for gpu in read().gpus if not command.ids or _named(gpu, command.ids)]

    if not gpus():
        print("No devices were found")
        return NO_DEVICES
    with suppress(KeyboardInterrupt):
        for lines in words.blocks(command, gpus):
            print("\n".join(lines), flush=True)
    return 0


def _mig(options: SmiOptions, machine: SmiMachine) -> tuple[list[str], bool]:
    if options.action == "mig-mode":
        return mig.set_mode(machine.gpus, options.mode == ("1",))
    return _MIG_LISTS[options.action](machine.gpus)


def _policy(options: SmiOptions, machine: SmiMachine) -> tuple[list[str], bool]:
    if options.action == "policy-set":
        return policy.set_slice(machine.gpus, int(options.slice[0]))
    return policy.list_lines(machine.gpus)


def _lines(options: SmiOptions, machine: SmiMachine, count: int) -> list[str]:
    header, units = "noheader" not in options.format, "nounits" not in options.format
    match options.action:
        case "version":
            return [
                f"NVIDIA-SMI version  : {machine.driver}",
                f"NVML version        : {machine.nvml}",
                f"DRIVER version      : {machine.driver}",
                f"CUDA Version        : {machine.cuda}",
            ]
        case "list":
            return [
                line
                for gpu in machine.gpus
                for line in (f"GPU {gpu.index}: {gpu.name} (UUID: {gpu.uuid})", *mig.list_lines(gpu.devices))
            ]
        case "log":
            return log.lines(machine, count, options.sections, time.time())
        case "query-gpu":
            return query.gpu_lines(machine, options.fields, header, units)
        case "query-compute-apps":
            return query.process_lines(_holders(machine), options.fields, header, units)
        case _:
            return table.lines(machine, _holders(machine), time.time())


def _holders(machine: SmiMachine) -> list[tuple[SmiGpu, SmiProcess]]:
    return [(gpu, process) for gpu in machine.gpus for process in processes(gpu)]


def _named(gpu: SmiGpu, ids: tuple[str, ...]) -> bool:
    names = (str(gpu.index), gpu.uuid.casefold(), gpu.bus_id.casefold())
    return any(wanted.casefold() in names for wanted in ids)
