"""Small Go programs around the reference libraries, built on first use into the user's cache."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path


def build_oracle(folder: Path, requires: dict[str, str]) -> Path:
    """Return the program of the Go file in `folder`, built against the modules (path to version) in `requires`."""
    source = (folder / "main.go").read_bytes()
    lines = ["module garboard.invalid/oracle", "go 1.26.0", *(f"require {path} {requires[path]}" for path in requires)]
    go_mod = "\n".join(lines) + "\n"
    digest = hashlib.sha256(source + go_mod.encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "garboard" / "oracles"
    program = cache / f"{folder.parent.name}-{digest}"
    if not program.exists():
        _build(program, source, go_mod)
    return program


def _build(program: Path, source: bytes, go_mod: str) -> None:
    workspace = program.with_name(f"{program.name}.{os.getpid()}.build")
    workspace.mkdir(parents=True)
    try:
        (workspace / "main.go").write_bytes(source)
        (workspace / "go.mod").write_text(go_mod)
        # -mod=mod fills in what the modules above need themselves, at the versions they ask for.
        command = ["go", "build", "-mod=mod", "-trimpath", "-ldflags=-s -w", "-o", "oracle", "."]
        subprocess.run(command, cwd=workspace, env={**os.environ, "CGO_ENABLED": "0"}, check=True)
        (workspace / "oracle").replace(program)
    finally:
        shutil.rmtree(workspace, ignore_errors=True)
