"""Benchmarks: what the product costs and holds, against floors that a run must keep.

    python -m bench                             what there is, and what each part needs
    python -m bench.facade [PART ...] --json FILE

With `--html FILE` they write a page with charts too. Each compares in one run, by alternated rounds and medians, and
ends with 1 when a floor is broken. Floors and how they were chosen are in `floors.toml`; a null control shows for each
isolation metric that its floor can be broken.
"""
