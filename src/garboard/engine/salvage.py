"""What a damaged journal still tells of its run, and what it does not."""

from collections.abc import Iterator, Mapping

from garboard.documents import Json
from garboard.engine.journal import plan_steps, readable_entries, whole_lines
from garboard.values import dataclass

# The member of an action in a printed plan that names what it is about.
_SUBJECTS = ("path", "service", "name", "peerURL", "image", "for", "about")


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvage:
    """What is known of a run whose journal is damaged; `place` is where its folder has been moved to."""

    command: str = ""  # empty if the plan cannot be read
    steps: int = 0
    finished: int = 0
    unknown: tuple[str, ...] = ()  # the steps of which nobody knows whether they were done
    damaged_lines: int = 0
    place: str = ""


def salvage(data: bytes) -> Salvage:
    """Return what the lines tell that can be read."""
    lines = whole_lines(data).splitlines()
    entries = [each for each in readable_entries(lines) if _is_whole(each)]
    damaged = len(lines) - len(entries)
    first = next((each for each in entries if each.get("type") == "plan"), None)
    if first is None:
        return Salvage(damaged_lines=damaged)
    steps = plan_steps(first.get("plan"))
    finished = {each.get("index") for each in entries if each.get("type") == "end"}
    return Salvage(
        command=str(first.get("command", "")),
        steps=len(steps),
        finished=sum(index in finished for index in range(len(steps))),
        unknown=tuple(_unknown(steps, finished, entries, is_whole=not damaged)),
        damaged_lines=damaged,
    )


def _is_whole(entry: Mapping[str, Json]) -> bool:
    return entry.get("type") in ("plan", "failed") or isinstance(entry.get("index"), int)


def _unknown(
    steps: list[Json], finished: set[Json], entries: list[dict[str, Json]], *, is_whole: bool
) -> Iterator[str]:
    begun = {each.get("index") for each in entries if each.get("type") == "begin"}
    for index, step in enumerate(steps):
        # A begin or an end may have been in a line that cannot be read.
        if index not in finished and (index in begun or not is_whole) and isinstance(step, dict):
            yield _told(step)


def _told(step: Mapping[str, Json]) -> str:
    action = step.get("action")
    members = action if isinstance(action, dict) else {}
    subject = next((str(members[name]) for name in _SUBJECTS if name in members), "")
    return f"{step.get('phase')}: {members.get('type')} {subject}".rstrip()
