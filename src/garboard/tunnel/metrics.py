"""Metrics in the text format of Prometheus: counters, gauges that are asked when they are shown, histograms."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Final, Protocol

LATENCY_BUCKETS: Final = (1e-6, 1e-5, 1e-4, 0.005, 0.025, 0.1, 0.5, 2.5, 12.5)


class Metric(Protocol):
    """One family."""

    def lines(self, name: str) -> list[str]: ...


class Count:
    """One number that only grows; the data path adds to `value` directly."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class Counter:
    """Numbers by labels."""

    def __init__(self, *labels: str) -> None:
        self._labels = labels
        self._counts: dict[tuple[str, ...], Count] = {}

    def of(self, *values: str) -> Count:
        count = self._counts.get(values)
        if count is None:
            count = self._counts[values] = Count()
        return count

    def lines(self, name: str) -> list[str]:
        counts = sorted(self._counts.items())
        return [
            f"# TYPE {name} counter",
            *(f"{name}{_labels(self._labels, values)} {count.value}" for values, count in counts),
        ]


class Total:
    """A counter without labels that its owner keeps."""

    def __init__(self, read: Callable[[], int]) -> None:
        self._read = read

    def lines(self, name: str) -> list[str]:
        return [f"# TYPE {name} counter", f"{name} {self._read()}"]


class Gauge:
    """What is true now, asked from its owner; with one label, a number for each of its values."""

    def __init__(self, read: Callable[[], float | Mapping[str, float]], label: str = "") -> None:
        self._read = read
        self._label = label

    def lines(self, name: str) -> list[str]:
        value = self._read()
        if not isinstance(value, Mapping):
            return [f"# TYPE {name} gauge", f"{name} {value:g}"]
        rows = [f"{name}{_labels((self._label,), (key,))} {each:g}" for key, each in sorted(value.items())]
        return [f"# TYPE {name} gauge", *rows]


class Histogram:
    def __init__(self, buckets: tuple[float, ...]) -> None:
        self._buckets = buckets
        self._counts = [0] * (len(buckets) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._buckets, value)] += 1
        self._sum += value

    def lines(self, name: str) -> list[str]:
        out, total = [f"# TYPE {name} histogram"], 0
        for bound, count in zip((*map(_number, self._buckets), "+Inf"), self._counts, strict=True):
            total += count
            out.append(f'{name}_bucket{{le="{bound}"}} {total}')
        return [*out, f"{name}_sum {self._sum:g}", f"{name}_count {total}"]


class Metrics:
    """The families of one program, under its prefix; each with a line that says what it is."""

    def __init__(self, prefix: str, families: Mapping[str, tuple[str, Metric]]) -> None:
        self._prefix = prefix
        self._families = families

    def text(self) -> str:
        lines: list[str] = []
        for short_name, (summary, family) in self._families.items():
            name = self._prefix + short_name
            lines += [f"# HELP {name} {summary}", *family.lines(name)]
        return "\n".join([*lines, ""])


def _labels(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{_escape(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    """As Go prints it, since these are the labels that stock dashboards ask for."""
    return f"{value:g}" if value >= 1e-4 else f"{value:.0e}"
