"""Make build/compiled, the package with the tunnel compiled; `PYTHONPATH=build/compiled` puts it before the sources."""

import shutil
import tempfile
from pathlib import Path

from tools.compiled.cache import extensions
from tools.compiled.modules import digest

_ROOT = Path(__file__).parents[2]
_SOURCE, _BUILT = _ROOT / "src", _ROOT / "build/compiled"


def main() -> None:
    made = extensions(_SOURCE)
    _BUILT.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".compiled-", dir=_BUILT.parent) as name:
        new = Path(name, "compiled")
        shutil.copytree(_SOURCE, new, ignore=shutil.ignore_patterns("__pycache__"))
        if digest(new) != made.name:
            raise SystemExit("the sources were edited while they were compiled: give the command again")
        shutil.copytree(made, new, dirs_exist_ok=True)
        shutil.rmtree(_BUILT, ignore_errors=True)
        new.rename(_BUILT)


if __name__ == "__main__":
    main()
