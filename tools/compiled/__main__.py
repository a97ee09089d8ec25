"""Make build/compiled, the package with the tunnel compiled; `PYTHONPATH=build/compiled` puts it before the sources."""

import shutil
from pathlib import Path

from tools.compiled.modules import extensions

_ROOT = Path(__file__).parents[2]
_BUILT = _ROOT / "build/compiled"


def main() -> None:
    made = extensions(_ROOT / "src")
    shutil.rmtree(_BUILT, ignore_errors=True)
    shutil.copytree(_ROOT / "src", _BUILT, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(made, _BUILT, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
