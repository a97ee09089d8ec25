"""garboard inside a node: a copy of its packages, for not every folder is seen there, and a command to run them."""

import compileall
import importlib.util
import shutil

from garboard.lab.layout import NodeFiles

FOLDER = "opt/garboard"
# garboard and what it imports at run time.
PACKAGES = ("garboard", "click", "msgspec", "yaml", "cryptography", "cffi", "_cffi_backend", "pycparser", "hpack")
_SCRIPT = """\
#!/bin/sh
PYTHONPATH=/{folder} exec {python} -sP -c 'from garboard.cli.main import main; main()' "$@"
"""


def install_program(files: NodeFiles, python: str) -> None:
    """Put garboard into a node that is not running yet, as /usr/bin/garboard."""
    folder = files.upper / FOLDER
    folder.mkdir(parents=True)
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            # Compiled where it is, once for all nodes; a fresh node would otherwise do it at the first command.
            compileall.compile_dir(spec.submodule_search_locations[0], quiet=2)
            shutil.copytree(spec.submodule_search_locations[0], folder / name)
        elif spec is not None and spec.origin:
            shutil.copy2(spec.origin, folder)
    command = files.upper / "usr/bin/garboard"
    command.write_text(_SCRIPT.format(folder=FOLDER, python=python))
    command.chmod(0o755)
