from collections.abc import Iterator

from garboard.engine import RemoveFile, Step
from garboard.engine.timings import Stopwatch


def step(phase: str) -> Step:
    return Step(RemoveFile(path="/a"), "because", phase)


def ticking(*seconds: float) -> Iterator[float]:
    """Give the moments at which steps begin and end that take so long each."""
    now = 0.0
    for each in seconds:
        yield now
        now += each
        yield now


def test_phases_are_told_with_their_parts_when_they_end() -> None:
    told: list[str] = []
    moments = ticking(1.0, 2.0, 0.5)
    watch = Stopwatch(told.append, lambda: next(moments))
    for phase in ("certs/ca", "certs/apiserver", "kubelet-start"):
        with watch.around(step(phase)):
            pass
    assert told == ["[certs] done in 3.00 s"]
    watch.finish()
    assert told[1:] == ["[kubelet-start] done in 0.50 s"]
    assert watch.as_json() == {
        "phases": [
            {"phase": "certs/ca", "seconds": 1.0},
            {"phase": "certs/apiserver", "seconds": 2.0},
            {"phase": "kubelet-start", "seconds": 0.5},
        ],
        "seconds": 3.5,
    }
    assert watch.as_text().splitlines()[-1].split() == ["all", "phases", "3.50", "s"]
