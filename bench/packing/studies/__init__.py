"""Beyond the lists: what they do not have, made from them by stated rules. Each returns a table and adds measures."""

from bench.packing.studies import cards, counts, defragmentation, departures, dimensions, mig
from bench.packing.studies.study import Study

STUDIES: dict[str, Study] = {
    "departures": departures.run,
    "dimensions": dimensions.run,
    "counts": counts.run,
    "cards": cards.run,
    "mig": mig.run,
    "defragmentation": defragmentation.run,
}

__all__ = ["STUDIES"]
