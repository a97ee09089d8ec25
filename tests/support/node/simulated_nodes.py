"""Nodes that one program stands for: `python simulated_nodes.py FOLDER NODE garboard WORDS` keeps their runs in files.

What a node does with its next command is the first word of its file `NODE.next`, and without one it succeeds:

- `ok`, `fail`, `refuse`: a run that is committed, one that stays open, or none; with status 0, 1 or 4
- `undone-13`, `needs-14`: a run of a change that was taken back, or that stays open; with status 13 or 14
- `busy-15`, `stale-16`: none, with status 15 or 16
- `lost-done`, `lost-open`, `lost-nothing`: the same, and then the connection fails with 255
- `silent`: from then on, the node answers nothing but 255
"""

import json
import sys
from pathlib import Path

_STATES = {"ok": "committed", "lost-done": "committed", "fail": "open", "lost-open": "open", "silent": "open",
           "undone-13": "undone", "needs-14": "open"}  # fmt: skip
_STATUSES = {"ok": 0, "fail": 1, "refuse": 4, "undone-13": 13, "needs-14": 14, "busy-15": 15, "stale-16": 16}


def main(folder: Path, node: str, words: list[str]) -> int:
    if (folder / f"{node}.silent").exists():
        return 255
    runs: list[dict[str, object]] = _read(folder / f"{node}.runs", [])
    if words[0] == "version":
        print(json.dumps({"garboard": (folder / "version").read_text()}))
        return 0
    if words[0] == "status":
        print(json.dumps({"runs": runs, "lockedBy": ""}))
        return 0
    with (folder / "commands").open("a") as commands:
        commands.write(f"{node}: {' '.join(words)}\n")
    behaviours: list[str] = _read(folder / f"{node}.next", [])
    behaviour = behaviours.pop(0) if behaviours else "ok"
    (folder / f"{node}.next").write_text(json.dumps(behaviours))
    if behaviour in _STATES:
        _change(runs, words, _STATES[behaviour])
        (folder / f"{node}.runs").write_text(json.dumps(runs))
    if behaviour == "silent":
        (folder / f"{node}.silent").touch()
    print("working", flush=True)
    return _STATUSES.get(behaviour, 255)


def _change(runs: list[dict[str, object]], words: list[str], state: str) -> None:
    if words[0] == "resume":
        (found,) = (each for each in runs if each["run"] == words[1])
        found.update(state=state, finished=int(str(found["finished"])) + 1)
    else:
        name = f"{len(runs) + 1}-{words[0]}"
        runs.append({"run": name, "command": words[0], "state": state, "steps": 9, "finished": 3})


def _read(path: Path, default: list[object]) -> list:  # type: ignore[type-arg]
    return json.loads(path.read_text()) if path.exists() else default


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[4:]))
