"""A step of a network in PyTorch, with random weights and inputs. `fill` is as in `network_shapes`."""

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from bench.gpu import networks
from bench.gpu.networks import CASES, Case, Layer, Layers
from bench.gpu.probes.kernels import rounds, say, turns_per_second

BLOCK_BYTES = 64 << 20


class _Residual(nn.Module):
    def __init__(self, body: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.body, self.shortcut = body, shortcut

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.body(values) + self.shortcut(values)


class _Branches(nn.Module):
    def __init__(self, paths: list[nn.Module]) -> None:
        super().__init__()
        self.paths = nn.ModuleList(paths)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return torch.cat([path(values) for path in self.paths], dim=1)


class _LastState(nn.Module):
    def __init__(self, width: int, units: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, units, batch_first=True)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.lstm(values)[1][0][-1]


def module(layers: Layers, example: torch.Tensor) -> tuple[nn.Module, torch.Tensor]:
    """The module of these layers for inputs like the example, and the example after it."""
    made = []
    for layer in layers:
        one, example = _module(layer, example)
        made.append(one)
    return nn.Sequential(*made), example


def _module(layer: Layer, example: torch.Tensor) -> tuple[nn.Module, torch.Tensor]:
    channels, one = example.shape[1], nn.Module()
    match layer:
        case networks.Convolution(to, size, stride, dilation):
            padding = dilation * (size - 1) // 2
            one = nn.Conv2d(channels, to, size, stride, padding, dilation, bias=False)
        case networks.Norm():
            one = nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU())
        case networks.Relu():
            one = nn.ReLU()
        case networks.Largest(size, stride):
            one = nn.MaxPool2d(size, stride)
        case networks.Mean():
            one = nn.AdaptiveAvgPool2d(1)
        case networks.Resize(height, width):
            one = nn.Upsample((height, width), mode="bilinear")
        case networks.Dense(features):
            one = nn.Sequential(nn.Flatten(), nn.Linear(example[0].numel(), features))
        case networks.Residual(body, shortcut):
            one = _Residual(module(body, example)[0], module(shortcut, example)[0])
        case networks.Branches(paths):
            one = _Branches([module(path, example)[0] for path in paths])
        case networks.Lstm(units):
            one = _LastState(example.shape[2], units)
    one = one.to(example.device)
    return one, one(example)


def step_of(case: Case, device: str) -> Callable[[], Any]:
    """A step of the case."""
    torch.manual_seed(0)
    inputs = torch.randn(case.batch, *case.shape, device=device)
    with torch.no_grad():
        model, _ = module(case.layers, torch.zeros(2, *case.shape, device=device))
    if not case.training:
        model.eval()
        return torch.no_grad()(lambda: model(inputs))
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()

    return step


def fill(percent: float) -> list[torch.Tensor]:
    """Memory that is held: what lacks until this part of what is visible is in use."""
    free, total = torch.cuda.mem_get_info()
    lacking = int((percent / 100 * total - (total - free)) // BLOCK_BYTES)
    return [torch.zeros(BLOCK_BYTES, dtype=torch.uint8, device="cuda") for _ in range(lacking)]


def main(name: str, seconds: float, percent: float) -> None:
    step = step_of(CASES[name], "cuda")

    def waited() -> None:
        step()
        torch.cuda.synchronize()

    waited()
    held = fill(percent)
    for _ in rounds():
        say({"a step": 1e6 / turns_per_second(waited, seconds)})
    held.clear()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[4]))
