"""Benchmarks: what the product costs and holds, against floors that a run must keep.

    python -m bench.facade --json FILE      with and without the facade, on a simulated machine
    python -m bench.compute --json FILE     shares of a GPU's time against their limits, on a simulated machine
    python -m bench.scheduler --json FILE   decisions in a cluster of 5,000 nodes, and the controller that makes them
    python -m bench.dashboard --json FILE   the page of a cluster of 1,000 nodes, in a browser

With `--html FILE` they write a page with charts too. Each compares in one run, by alternated rounds and medians, and
ends with 1 when a floor is broken. Floors and how they were chosen are in `floors.toml`; a null control shows for each
isolation metric that its floor can be broken.
"""
