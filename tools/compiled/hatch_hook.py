"""Put the compiled tunnel into a wheel, if that is asked for: HATCH_BUILD_HOOK_ENABLE_CUSTOM=true."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parents[2]))  # a build backend runs beside the project, not in it
from tools.compiled.cache import extensions


class CompiledTunnel(BuildHookInterface[Any]):
    """Adds the extensions to a wheel, which is then one for this Python and this platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # an extension would shadow what is edited
            return
        folder = extensions(Path(self.root, "src"))
        build_data["pure_python"], build_data["infer_tag"] = False, True
        build_data["force_include"] |= {str(each): str(each.relative_to(folder)) for each in folder.rglob("*.so")}
