"""Arguments for a function: mostly those that fit, now and then odd ones."""

from collections import defaultdict
from random import Random

from tests.facade.differential.functions import Function, Parameter, functions
from tests.facade.differential.programs import Argument, HostFunction, Own, Place, Structure, Word

MIB = 1 << 20
_SIZES = (0, 1, 8, 512, 4096, 65536, MIB, 2 * MIB, 3 * MIB, 40 * MIB, 300 * MIB)
_HUGE = (1 << 31, 1 << 40, 1 << 62, 1 << 63, (1 << 64) - 1)
_NUMBERS = (0, 0, 0, 1, 1, 2, 3, 4, 8, 16, 32)
_KERNELS = ("spin", "spin", "empty", "other")
_KERNEL_NS = (0, 1000, 50_000, 2_000_000)
_SIZED = ("byte", "size", "count", "width", "height", "pitch", "length", "offset")
_VERSIONED = {
    "nvmlMemory_v2_t*": 40 | 2 << 24, "nvmlPciInfoExt_t*": 64 | 1 << 24, "nvmlTemperature_t*": 12 | 1 << 24,
    "nvmlGpuInstanceProfileInfo_v2_t*": 0x98 | 2 << 24,
}  # fmt: skip
"""Structures that say their version in the first word."""
_DEVICE, _PINNED = 1, 1
_LOCATION = _DEVICE  # in one word with the number of GPU 0 in its upper half
HANDLES = {
    "CUcontext", "CUstream", "CUevent", "CUgraph", "CUgraphNode", "CUgraphExec", "CUmodule", "CUfunction", "CUkernel",
    "CUlibrary", "CUmemoryPool", "CUarray", "CUmipmappedArray", "CUuserObject", "CUdeviceptr",
    "CUmemGenericAllocationHandle", "nvmlDevice_t", "nvmlEventSet_t", "nvmlGpuInstance_t", "nvmlComputeInstance_t",
}  # fmt: skip
_NO_HANDLE = {"CUdeviceptr": (0, 1, 4096, 1 << 40, 1 << 63), "CUstream": (0, 0, 0, 1, 2), "CUcontext": (0,)}


class Arguments:
    """Makes arguments, and knows which handles there are."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.known: dict[str, list[Word]] = defaultdict(list)

    def made(self, number: int, function: Function) -> None:
        """Operation `number` calls the function; later ones may use what it writes."""
        places = [each for each in function.parameters if self._is_place(each)]
        for place, each in enumerate(places):
            if each.kind[:-1] in HANDLES:
                self.known[each.kind[:-1]].append(Word(number, place))

    def inherit(self, parent: "Arguments") -> None:
        """A child has what its parent had."""
        for kind, words in parent.known.items():
            self.known[kind] = [*words]

    def of(self, function: Function) -> tuple[Argument, ...]:
        """For one call."""
        return tuple(self._one(each) for each in function.parameters)

    def handle(self, kind: str) -> Argument:
        """One of the newest, an older one, or none."""
        known, chance = self.known[kind], self._random.random()
        if not known or chance < 0.04:
            return self._random.choice(_NO_HANDLE.get(kind, (0,)))
        if kind == "CUstream" and chance < 0.3:
            return self._random.choice(_NO_HANDLE[kind])
        word = known[-1] if chance < 0.5 else self._random.choice(known)
        if kind == "CUdeviceptr" and self._random.random() < 0.15:
            return Word(word.operation, word.place, word.word, self._random.choice((1, 512, 4096, 4 * MIB)))
        return word

    @staticmethod
    def _is_place(parameter: Parameter) -> bool:
        return parameter.is_place and parameter.name not in {"kernelParams", "extra", "userData", "ptr", "optionValues"}

    def _one(self, parameter: Parameter) -> Argument:
        if parameter.kind.endswith("*"):
            if self._random.random() < 0.02:
                return 0
            return self._pointer(parameter)
        if parameter.kind in HANDLES:
            return self.handle(parameter.kind)
        if parameter.kind in {"CUhostFn", "CUstreamCallback"}:
            return HostFunction(parameter.kind == "CUstreamCallback")
        if parameter.kind in {"CUipcMemHandle", "CUipcEventHandle"}:
            return Structure((0,) * 8)
        return self.number(parameter)

    def number(self, parameter: Parameter) -> int:
        """A size, a flag or any other number."""
        name, chance = parameter.name.lower(), self._random.random()
        if parameter.kind == "CUdevice":
            return self._random.choice((0, 0, 0, 0, 0, 0, 1, 7, (1 << 32) - 1)) if chance < 0.3 else 0
        if chance < 0.02:
            return self._random.choice(_HUGE)
        if "flag" in name:
            return self._random.choice((0, 0, 0, 0, 1, 2, 4))
        if "numdep" in name:
            return self._random.choice((0, 0, 1, 2))
        if name == "numdevices":
            return self._random.choice((0, 1, 2, 8))
        if "dim" in name:
            return self._random.choice((1, 1, 1, 32, 0, 2000))
        if parameter.kind == "size_t" or any(word in name for word in _SIZED):
            return self._random.choice(_SIZES)
        if parameter.kind in {"int", "CUdevice_attribute"} and chance < 0.5:
            return self._random.randrange(130)
        return self._random.choice(_NUMBERS)

    def _pointer(self, parameter: Parameter) -> Argument:
        kind, name = parameter.kind, parameter.name
        if name == "userData" or (kind == "void*" and name == "ptr"):
            return Own()
        if name == "kernelParams":
            return Structure((Structure((self._random.choice(_KERNEL_NS),)),))
        if name in {"extra", "optionValues"} or kind in {"CUjit_option*", "CUlibraryOption*"}:
            return 0
        if kind == "constchar*":
            return self._text(name)
        if kind == "constvoid*":
            return (
                self._random.choice(("simgpu", "simgpu", "mib=8", "text"))
                if name in {"image", "code"}
                else self._host()
            )
        if parameter.is_place:
            return Place((*self._before(parameter),))
        return self._structure(kind)

    def _before(self, parameter: Parameter) -> tuple[Argument, ...]:
        kind = parameter.kind
        if kind in _VERSIONED:
            return (_VERSIONED[kind],)
        if kind == "CUDA_LAUNCH_PARAMS*":
            return (0,) * 80
        if kind == "CUmemLocation*":
            return (_LOCATION,)
        if kind in {"unsignedint*", "size_t*", "int*", "unsignedlonglong*", "cuuint64_t*"}:
            return (self._random.choice((0, 1, 4, 8)),)
        if kind in HANDLES or kind[:-1] in HANDLES:
            return ()
        return (self._random.choice((0, 0, 1, 2)), *(0,) * 31)

    def _text(self, name: str) -> str:
        if "symbol" in name:
            chosen = self._random.choice(sorted(functions()))
            return chosen.removesuffix("_v2") if self._random.random() < 0.8 else chosen
        texts = {"fname": ("/nonexistent",), "name": _KERNELS, "pciBusId": ("00000000:07:00.0", "nothing")}
        return self._random.choice(texts.get(name, ("text", "GPU-0")))

    def _host(self) -> Structure:
        return Structure((self._random.choice(_NUMBERS),) * 8)

    def _structure(self, kind: str) -> Argument:
        one = self._random.choice
        size = one(_SIZES)
        match kind.removeprefix("const").rstrip("*"):
            case "CUmemAllocationProp":
                return Structure((_PINNED | one((0, 0, 1)) << 32, one((_LOCATION, _LOCATION, _LOCATION, 2)), 0, 0))
            case "CUmemPoolProps":
                return Structure((_PINNED | one((0, 0, 1)) << 32, _LOCATION, 0, one((0, 0, 100 * MIB)), *(0,) * 7))
            case "CUDA_ARRAY_DESCRIPTOR":
                return Structure((one((64, 4096)), one((0, 64)), 1 | 1 << 32))
            case "CUDA_ARRAY3D_DESCRIPTOR":
                return Structure((one((64, 4096)), one((0, 64)), one((0, 4)), 1 | 1 << 32, one((0, 0, 2, 0x40))))
            case "CUDA_KERNEL_NODE_PARAMS":
                parameters = Structure((Structure((one(_KERNEL_NS),)),))
                return Structure(
                    (self.handle("CUfunction"), 1 | 1 << 32, 1 | 1 << 32, 1 | 1 << 32, 0, parameters, 0, 0, 0)
                )
            case "CUDA_MEMSET_NODE_PARAMS":
                return Structure((self.handle("CUdeviceptr"), 0, 7 | 1 << 32, one((8, 512)), 1))
            case "CUDA_HOST_NODE_PARAMS":
                return Structure((HostFunction(), Own()))
            case "CUlaunchConfig":
                return Structure((1 | 1 << 32, 1 | 1 << 32, 1 | 1 << 32, 0, self.handle("CUstream"), 0, 0))
            case "CUmemAccessDesc":
                return Structure((_LOCATION, one((0, 1, 3))))
            case "CUmemLocation":
                return Structure((_LOCATION,))
            case "CUgraphNode":
                return Structure((self.handle("CUgraphNode"), self.handle("CUgraphNode")))
            case "CUDA_MEMCPY2D":
                to, host = self.handle("CUdeviceptr"), self._host()
                return Structure((0, 0, 1, host, 0, 0, 64, 0, 0, 2, 0, to, 0, 64, one((8, 64)), one((1, 0))))
            case _:
                return Structure((size, *(0,) * 31))
