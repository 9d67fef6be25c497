"""Objects that cannot be used: each is logged once with its name and counted, and everything else continues.

An object is whatever one step of a loop handles: an object of the Kubernetes API, a file of a container, a GPU, or the
loop's own round. Whatever is wrong with it must not stop the steps for the others.
"""

import logging
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily

from lamina.errors import LaminaError

METRIC = "lamina_objects_set_aside"
_REMEMBERED = 4096
_MAX_REASON = 512
"""Characters of a reason that are logged. A tenant may have written the rest."""
_OFTEN, _SELDOM = 10, 100
"""An object that is set aside more often than the first is logged each time that is a multiple of the second."""


class _Known(NamedTuple):
    """Why an object is set aside, empty while it is used, and how often it was."""

    reason: str
    times: int


class SetAside:
    """What one component has set aside. `counts` has how many objects of each kind ever were.

    An object counts, and is logged, when it is set aside for the first time, for another reason than before, or again
    after it was used. What a tenant may change at will would flood the log, so an object that often counts is seldom
    logged. Threads may share one.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()
        self._counts: Counter[str] = Counter()

    @property
    def counts(self) -> Mapping[str, int]:
        return self._counts

    def add(self, kind: str, name: str, error: Exception) -> bool:
        """Set an object aside. Returns whether that is worth a report: it was not known, and is not said too often.

        An error that was not raised on purpose is a defect, so it is logged with its traceback.
        """
        reason = str(error)[:_MAX_REASON] or type(error).__name__
        with self._lock:
            before = self._known.pop((kind, name), _Known("", 0))
            known = before.reason == reason
            times = before.times if known else before.times + 1
            self._known[kind, name] = _Known(reason, times)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
            self._counts[kind] += not known
        if known or (times > _OFTEN and times % _SELDOM):
            return False
        trace = None if isinstance(error, LaminaError) else error
        self._logger.error("Setting aside %s %s: %s", kind, name, reason, exc_info=trace)
        return True

    def forget(self, kind: str, name: str) -> None:
        """The object could be used, or is gone."""
        with self._lock:
            if (kind, name) in self._known:
                self._known[kind, name] = self._known[kind, name]._replace(reason="")

    @contextmanager
    def around(self, kind: str, name: str, *, passing: type[Exception] | tuple[()] = ()) -> Iterator[None]:
        """Set the object aside if the block fails. Cancellation and errors of the type `passing` pass through."""
        try:
            yield
        except passing:
            raise
        except Exception as error:
            self.add(kind, name, error)
        else:
            self.forget(kind, name)

    def family(self) -> CounterMetricFamily:
        """The counts as a metric."""
        metric = CounterMetricFamily(
            METRIC, "Objects that could not be used and were set aside, by kind.", labels=("kind",)
        )
        with self._lock:
            counts = sorted(self._counts.items())
        for kind, count in counts:
            metric.add_metric((kind,), count)
        return metric
