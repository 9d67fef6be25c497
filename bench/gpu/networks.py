"""The networks of 4paradigm's benchmark as data: their layers, and what each layer has to compute and to keep.

PyTorch modules are built from the same layers (`probes.network_torch`), and kernels of the same lengths are launched
where PyTorch cannot compute (`probes.network_shapes`). Sizes are those of AI Benchmark's tests, as it names them.
"""

from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

Shape = tuple[int, ...]
"""Of one item: channels, height and width of a picture, or the length and width of a sequence."""


class Convolution(Struct, frozen=True, tag=True):
    """Of a square, padded so that only `stride` makes the picture smaller."""

    channels: int
    size: int = 3
    stride: int = 1
    dilation: int = 1


class Norm(Struct, frozen=True, tag=True):
    """Batch normalization and ReLU."""


class Relu(Struct, frozen=True, tag=True):
    """ReLU alone, with the bias of the layer before it."""


class Largest(Struct, frozen=True, tag=True):
    """Max pooling."""

    size: int = 2
    stride: int = 2


class Mean(Struct, frozen=True, tag=True):
    """The mean of the whole picture, as a picture of one pixel."""


class Resize(Struct, frozen=True, tag=True):
    """To this height and width."""

    height: int
    width: int


class Dense(Struct, frozen=True, tag=True):
    """Of all values of the item."""

    features: int


class Residual(Struct, frozen=True, tag=True):
    """Layers whose result is added to their input, or to what the shortcut makes of it."""

    body: "Layers"
    shortcut: "Layers" = ()


class Branches(Struct, frozen=True, tag=True):
    """Paths from one input, whose channels follow each other."""

    paths: "tuple[Layers, ...]"


class Lstm(Struct, frozen=True, tag=True):
    """A recurrent layer. Its last state is the input of the next layer."""

    units: int


Layer = Convolution | Norm | Relu | Largest | Mean | Resize | Dense | Residual | Branches | Lstm
Layers = tuple[Layer, ...]


class Work(Struct, frozen=True):
    """What one layer does for one item. `repeats`: in how many kernels, one after the other."""

    operations: int
    """Floating point operations; a multiplication with an addition is two."""
    parameters: int
    inputs: int
    """Values that it reads, without the parameters."""
    outputs: int
    repeats: int = 1


def works(layers: Layers, shape: Shape) -> list[Work]:
    """What a network does for an item of this shape."""
    found: list[Work] = []
    _follow(layers, shape, found)
    return found


def _follow(layers: Layers, shape: Shape, found: list[Work]) -> Shape:
    """The shape after the layers, whose work is added."""
    for layer in layers:
        match layer:
            case Residual(body, shortcut):
                after = _follow(body, shape, found)
                _follow(shortcut, shape, found)
                found.append(Work(_values(after), 0, 2 * _values(after), _values(after)))
            case Branches(paths):
                ends = [_follow(path, shape, found) for path in paths]
                after = (sum(end[0] for end in ends), *ends[0][1:])
            case _:
                after, work = _one(layer, shape)
                found.append(work)
        shape = after
    return shape


def _one(layer: Layer, shape: Shape) -> tuple[Shape, Work]:
    """The shape after a single layer, and its work."""
    parameters, each = 0, 1
    match layer:
        case Convolution(channels, size, stride, _):
            after: Shape = (channels, *(-(-side // stride) for side in shape[1:]))
            parameters = shape[0] * size * size * channels
            each = 2 * shape[0] * size * size
        case Largest(size, stride):
            after, each = (shape[0], *(side // stride for side in shape[1:])), size * size
        case Mean():
            after, each = (shape[0], 1, 1), shape[1] * shape[2]
        case Resize(height, width):
            after, each = (shape[0], height, width), 8
        case Dense(features):
            after, each = (features,), 2 * _values(shape)
            parameters = features * (_values(shape) + 1)
        case Lstm(units):
            length, width = shape
            parameters = 4 * units * (width + units + 2)
            work = Work(length * 2 * 4 * (width + units) * units, parameters, _values(shape), length * units, length)
            return (units,), work
        case _:
            after, each = shape, 4
            parameters = 2 * shape[0] if isinstance(layer, Norm) else 0
    return after, Work(each * _values(after), parameters, _values(shape), _values(after))


def _values(shape: Shape) -> int:
    number = 1
    for side in shape:
        number *= side
    return number


def _resnet(depths: tuple[int, ...], *, dilated: bool = False) -> Layers:
    """The second version of ResNet, where normalization comes before each convolution; without its classifier."""
    layers: list[Layer] = [Convolution(64, 7, 2), Largest()]
    before = 64
    for stage, depth in enumerate(depths):
        channels = 64 << stage
        last = dilated and stage == len(depths) - 1
        for block in range(depth):
            stride = 2 if stage and not block and not last else 1
            body = (
                Norm(), Convolution(channels, 1), Norm(), Convolution(channels, 3, stride, 2 if last else 1),
                Norm(), Convolution(4 * channels, 1),
            )  # fmt: skip
            shortcut = () if before == 4 * channels else (Convolution(4 * channels, 1, stride),)
            layers.append(Residual(body, shortcut))
            before = 4 * channels
    return (*layers, Norm())


def _classified(layers: Layers) -> Layers:
    return (*layers, Mean(), Dense(1000))


def _vgg() -> Layers:
    layers: list[Layer] = []
    for channels, depth in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        layers += [each for _ in range(depth) for each in (Convolution(channels), Relu())]
        layers.append(Largest())
    return (*layers, Dense(4096), Relu(), Dense(4096), Relu(), Dense(1000))


def _deeplab(side: int) -> Layers:
    """The third version, for pictures of this side: paths that see far, and a class for each pixel."""
    small = -(-side // 16)
    paths = (
        (Convolution(256, 1), Norm()),
        *((Convolution(256, 3, dilation=rate), Norm()) for rate in (6, 12, 18)),
        (Mean(), Convolution(256, 1), Relu(), Resize(small, small)),
    )
    return (
        *_resnet((3, 4, 6, 3), dilated=True), Branches(paths), Convolution(256, 1), Norm(), Convolution(21, 1),
        Resize(side, side),
    )  # fmt: skip


class Case(Struct, frozen=True, kw_only=True):
    """A network with the size of its input."""

    network: str
    layers: Layers
    shape: Shape
    batch: int
    training: bool

    @property
    def name(self) -> str:
        """For people, and as an argument of probes."""
        sides = "x".join(map(str, self.shape[-2:]))
        return f"{self.network}, {'training' if self.training else 'inference'} of {self.batch} x {sides}"


def _picture(side: int) -> Shape:
    return (3, side, side)


def _cases() -> Iterator[Case]:
    """Batches and sides of inference, then of training."""
    pictures = (
        ("ResNet-V2-50", _classified(_resnet((3, 4, 6, 3))), (50, 346), (20, 346)),
        ("ResNet-V2-152", _classified(_resnet((3, 8, 36, 3))), (10, 256), (10, 256)),
        ("VGG-16", _vgg(), (20, 224), (2, 224)),
    )
    for network, layers, *sizes in pictures:
        for training, (batch, side) in zip((False, True), sizes, strict=True):
            yield Case(network=network, layers=layers, shape=_picture(side), batch=batch, training=training)
    for training, (batch, side) in zip((False, True), ((2, 512), (1, 384)), strict=True):
        yield Case(network="DeepLab", layers=_deeplab(side), shape=_picture(side), batch=batch, training=training)
    for training, batch in ((False, 100), (True, 10)):
        layers = (Lstm(1024), Dense(2))
        yield Case(network="LSTM", layers=layers, shape=(1024, 300), batch=batch, training=training)


CASES = {case.name: case for case in _cases()}

OPERATIONS_PER_US, BYTES_PER_US = 9.0e6, 0.7e6
"""What a kernel of a V100 gets done: 60 % of 15 TFLOPS, and 78 % of 900 GB/s. Recorded shapes are of that card."""
MIN_KERNEL_US = 3.0
VALUE_BYTES = 4
STATES = 4
"""Of each parameter in training: its value, its gradient, and two moments of the optimizer."""


def kernels_ms(case: Case) -> list[float]:
    """How long the kernels of one step take on a V100: forward, and for training backward and the optimizer."""
    found = works(case.layers, case.shape)
    forward = [ms for work in found for ms in _forward_ms(work, case.batch)]
    if not case.training:
        return forward
    backward = [2 * ms for ms in reversed(forward)]
    optimizer = [
        _kernel_ms(8 * work.parameters, 2 * STATES * VALUE_BYTES * work.parameters) for work in found if work.parameters
    ]
    return [*forward, *backward, *optimizer]


def _forward_ms(work: Work, batch: int) -> list[float]:
    moved = VALUE_BYTES * (batch * (work.inputs + work.outputs) + work.parameters)
    return [_kernel_ms(batch * work.operations / work.repeats, moved / work.repeats)] * work.repeats


def _kernel_ms(operations: float, moved: float) -> float:
    return max(operations / OPERATIONS_PER_US, moved / BYTES_PER_US, MIN_KERNEL_US) / 1000


def blocks_bytes(case: Case) -> list[int]:
    """The memory that a step needs, in blocks as a program allocates them: parameters, and what layers hand on. In
    training all of it stays until the way back."""
    found = works(case.layers, case.shape)
    states = STATES if case.training else 1
    parameters = [states * VALUE_BYTES * work.parameters for work in found if work.parameters]
    outputs = [VALUE_BYTES * case.batch * work.outputs for work in found]
    if not case.training:
        outputs = [max(map(sum, pairwise(outputs)))]
    return [*parameters, VALUE_BYTES * case.batch * _values(case.shape), *outputs]
