"""`python -m bench.packing.train`: finds weights by CMA-ES and prints them as `packing/trained.py` has them.

Three sets of draws, none of which shares a seed with another: training (FIRST_TRAINING and up, one third of the nodes,
new ones in every generation), validation (FIRST_VALIDATION and up, half of the nodes), which chooses among the means
that the search passed through, and the protocol's seeds 42 to 51, on which alone results are reported.
"""

import argparse
import json
import sys
import time
from dataclasses import fields
from pathlib import Path

import numpy as np

from bench.packing.policies import with_weights
from bench.packing.traces import TINY, TRACES, NoTrace, missing
from bench.packing.train.workloads import LISTS, Draw, Workloads
from bench.parts import Need, Part, package
from bench.program import add_parts, chosen, end_with
from lamina.placement.packing.trained import TRAINED
from lamina.placement.packing.waste import Weights, vector

FIRST_TRAINING, FIRST_VALIDATION = 1_000_000, 5_000_000
TRAINING_PART, VALIDATION_PART = 3, 2
DRAWS, POPULATION, SPREAD = 8, 15, 0.06
PARTS = {
    "weights": Part(
        about="searches weights of the packing policy by CMA-ES",
        needs=(package("cma", "bench"), Need("pod lists of the openb trace", missing, unless="traces")),
        smallest=("--traces", str(TINY), "--list", "default", "--seconds", "0", "--validation", "1"),
    )
}
EVERY = 5
"""Generations between means that are kept for validation."""


def utility(leads: np.ndarray) -> float:
    """What leads over FGD are worth: the first half point counts most, and falling behind costs double."""
    gained = 1 - np.exp(-np.maximum(leads, 0) / 0.8)
    return float(np.where(leads > 0, gained, 2 * np.maximum(leads, -3)).mean())


def weights_of(x: np.ndarray) -> Weights:
    """From the search's coordinates, in which the step is a logarithm."""
    return Weights(*x[:-1].tolist(), step=0.03 * float(np.exp(x[-1] / 0.3)))


def coordinates(weights: Weights) -> np.ndarray:
    x = vector(weights)
    x[-1] = 0.3 * np.log(x[-1] / 0.03)
    return x


def search(workloads: Workloads, seconds: float, start: Weights) -> list[np.ndarray]:
    """The means of the search, every few generations."""
    import cma  # of use here only

    options = {"popsize": POPULATION, "seed": 7, "verbose": -9}
    strategy = cma.CMAEvolutionStrategy(coordinates(start), SPREAD, options)
    means, seed, began = [coordinates(start)], FIRST_TRAINING, time.monotonic()
    while time.monotonic() - began < seconds:
        candidates = strategy.ask()
        values = np.zeros(len(candidates))
        for _ in range(DRAWS):
            draw = workloads.draw(seed, TRAINING_PART)
            values += [utility(draw.lead(with_weights(weights_of(x)))) / DRAWS for x in candidates]
            seed += 1
        strategy.tell(candidates, (-values).tolist())
        if strategy.countiter % EVERY == 0:
            means.append(np.array(strategy.mean))
            print(f"generation {strategy.countiter}: mean {values.mean():.3f}, best {values.max():.3f}", flush=True)
    return [*means, np.array(strategy.mean)]


def choose(workloads: Workloads, means: list[np.ndarray], draws: int) -> Weights:
    """The mean with the highest utility on the validation draws."""
    seen: list[Draw] = [workloads.draw(FIRST_VALIDATION + i, VALIDATION_PART) for i in range(draws)]
    values = []
    for number, mean in enumerate(means):
        leads = np.array([draw.lead(with_weights(weights_of(mean))) for draw in seen])
        values.append(float(np.mean([utility(lead) for lead in leads])))
        worst = leads.min(axis=0).round(2).tolist()
        print(f"mean {number}: {values[-1]:.4f}, leads {leads.mean(axis=0).round(3)}, worst {worst}", flush=True)
    return weights_of(means[int(np.argmax(values))])


def main() -> int:
    """Searches, validates, prints."""
    parser = argparse.ArgumentParser(prog="python -m bench.packing.train", description=__doc__)
    add_parts(parser, PARTS)
    parser.add_argument("--traces", type=Path, default=TRACES, help="folder of the openb lists")
    parser.add_argument("--list", nargs="+", default=LISTS, metavar="NAME", help="lists to train on (default: eight)")
    parser.add_argument("--seconds", type=float, default=3600, help="how long to search (default 3600)")
    parser.add_argument("--validation", type=int, default=24, help="draws that choose (default 24)")
    parser.add_argument("--means", type=Path, help="keep the search's means in this file, or only validate those in it")
    options = parser.parse_args()
    chosen(parser, PARTS, options)
    try:
        workloads = Workloads(options.traces, options.list)
    except NoTrace as error:
        sys.exit(str(error))
    if options.means and options.means.exists():
        means = [np.array(mean) for mean in json.loads(options.means.read_text())]
    else:
        means = search(workloads, options.seconds, TRAINED)
        if options.means:
            options.means.write_text(json.dumps([mean.tolist() for mean in means]))
    best = choose(workloads, means, options.validation)
    for field in fields(best):
        print(f"    {field.name}={getattr(best, field.name):.4g},")
    return 0


if __name__ == "__main__":
    end_with(main)
