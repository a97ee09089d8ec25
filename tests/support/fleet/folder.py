"""A folder with the documents of a pool and the manifests of an installer, for commands."""

from collections.abc import Mapping
from pathlib import Path

from garboard.cli.main import run
from tests.support.fleet.pool import IMAGE_SET, MANIFESTS, POOL, PULL_SECRET, TEMPLATE, customization, fleet_text


class FleetFolder:
    """What the commands read."""

    def __init__(self, path: Path, customizations: Mapping[str, str], pool: str = POOL) -> None:
        self.path = path
        self.documents, self.manifests, self.out = path / "fleet.yaml", path / "made", path / "out"
        specs = {"everywhere": "", "site-a": "", "site-b": "", **customizations}
        made = [customization(name, spec) for name, spec in specs.items()]
        self.documents.write_bytes(fleet_text(pool, IMAGE_SET, PULL_SECRET, TEMPLATE, *made))
        for name, data in MANIFESTS.items():
            (self.manifests / name).parent.mkdir(parents=True, exist_ok=True)
            (self.manifests / name).write_bytes(data)

    def run(self, command: str, *options: str) -> int:
        return run(["fleet", command, "-f", str(self.documents), "--manifests", str(self.manifests), *options])

    def render(self, *options: str) -> int:
        return self.run("render", "-o", str(self.out), *options)

    def rendered(self) -> list[str]:
        return sorted(str(each.relative_to(self.out)) for each in self.out.rglob("*") if each.is_file())
