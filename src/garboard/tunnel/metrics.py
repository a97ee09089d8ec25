"""Metrics in the text format of Prometheus: counters, gauges that are asked when they are shown, histograms."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from garboard.rpc import Status, StatusCode
from garboard.values import Json

DEFAULT_BUCKETS: Final[tuple[float, ...]] = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
AGENT_BUCKETS: Final[tuple[float, ...]] = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 30.0)
LATENCY_BUCKETS: Final[tuple[float, ...]] = (1e-6, 1e-5, 1e-4, 0.005, 0.025, 0.1, 0.5, 2.5, 12.5)
# As Go writes them, which is how dashboards ask for them.
_GO_NAMES: Final = {
    **{code: code.name.title().replace("_", "") for code in StatusCode},
    StatusCode.CANCELLED: "Canceled",
    StatusCode.OK: "OK",
}


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

    def as_json(self) -> dict[str, Json]:
        """The numbers by their labels, joined."""
        return {",".join(values): count.value for values, count in sorted(self._counts.items())}

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

    @property
    def count(self) -> int:
        return sum(self._counts)

    def lines(self, name: str) -> list[str]:
        return [f"# TYPE {name} histogram", *self.rows(name)]

    def rows(
        self, name: str, names: tuple[str, ...] = (), values: tuple[str, ...] = (), *, zeros: int = 0
    ) -> list[str]:
        """The numbers alone, under these labels; `zeros` more were of no length at all."""
        rows, total = [], zeros
        for bound, count in zip((*map(_number, self._buckets), "+Inf"), self._counts, strict=True):
            total += count
            rows.append(f"{name}_bucket{_labels((*names, 'le'), (*values, bound))} {total}")
        own = _labels(names, values)
        return [*rows, f"{name}_sum{own} {self._sum:g}", f"{name}_count{own} {total}"]


class Waits:
    """A histogram of waits, most of which are none: those are only counted, from a total that the owner keeps."""

    def __init__(self, buckets: tuple[float, ...], total: Callable[[], int]) -> None:
        self._waited = Histogram(buckets)
        self._total = total
        self.observe = self._waited.observe

    def lines(self, name: str) -> list[str]:
        at_once = max(self._total() - self._waited.count, 0)
        return [f"# TYPE {name} histogram", *self._waited.rows(name, zeros=at_once)]


class Histograms:
    """A histogram for each value of one label."""

    def __init__(self, label: str, buckets: tuple[float, ...]) -> None:
        self._label = label
        self._buckets = buckets
        self._by_value: dict[str, Histogram] = {}

    def of(self, value: str) -> Histogram:
        return self._by_value.setdefault(value, Histogram(self._buckets))

    def lines(self, name: str) -> list[str]:
        found = sorted(self._by_value.items())
        rows = [row for value, each in found for row in each.rows(name, (self._label,), (value,))]
        return [f"# TYPE {name} histogram", *rows]


class Metrics:
    """The families of one program, under its prefix; each with a line that says what it is."""

    def __init__(self, prefix: str, families: Mapping[str, tuple[str, Metric]]) -> None:
        self._prefix = prefix
        self._families = families

    def add(self, families: Mapping[str, tuple[str, Metric]]) -> None:
        """Show more families behind those that are there."""
        self._families = {**self._families, **families}

    def text(self) -> str:
        return "\n".join([line for lines in self.by_family().values() for line in lines] + [""])

    def by_family(self) -> dict[str, list[str]]:
        """The lines of each family: what it is, its type, its numbers."""
        return {
            name: [f"# HELP {name} {summary}", *family.lines(name)]
            for name, (summary, family) in ((self._prefix + short, each) for short, each in self._families.items())
        }


class StreamErrors:
    """Streams that ended with an error, under the stock programs' name and labels: segment, code and packet type.

    The packet type is known of packets that were not sent, and "Unknown" for those that did not come.
    """

    def __init__(self) -> None:
        self.counter = Counter("segment", "code", "packet_type")

    def ended(self, segment: str, status: Status) -> None:
        if not status.is_ok:
            self.counter.of(segment, _GO_NAMES[status.code], "Unknown").value += 1

    def not_sent(self, segment: str, status: Status, packet_types: Iterable[str]) -> None:
        """Packets that still waited when their stream ended."""
        if not status.is_ok:
            for packet_type in packet_types:
                self.counter.of(segment, _GO_NAMES[status.code], packet_type).value += 1


def text_by_tenant(parts: Mapping[str, Metrics]) -> str:
    """The metrics of several tenants as one page, each number with the label `tenant`."""
    pages: dict[str, list[str]] = {}
    for tenant, metrics in parts.items():
        for name, lines in metrics.by_family().items():
            rows = [_with_label("tenant", tenant, line) for line in lines if not line.startswith("#")]
            pages.setdefault(name, [line for line in lines if line.startswith("#")]).extend(rows)
    return "\n".join([line for lines in pages.values() for line in lines] + [""])


def _with_label(label: str, value: str, line: str) -> str:
    first = f'{label}="{_escape(value)}"'
    name, brace, rest = line.partition("{")
    if brace:
        return f"{name}{{{first},{rest}"
    name, _, number = line.rpartition(" ")
    return f"{name}{{{first}}} {number}"


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
