"""The pages keep up with the code: the tree of the architecture, the classes of errors, the links."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "garboard"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_architecture_shows_every_package() -> None:
    shown = set(re.findall(r"^  (\w+)/ ", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE))
    assert shown == {each.parent.name for each in SOURCE.glob("*/__init__.py")}


def test_errors_page_names_every_class() -> None:
    page = set(re.findall(r"`([a-z0-9-]+)`", (ROOT / "docs/errors.md").read_text()))
    pattern = re.compile(r'(?:error_class=|default_class(?:: ClassVar\[str\])? = )"([a-z0-9-]+)"')
    used = {name for file in SOURCE.rglob("*.py") for name in pattern.findall(file.read_text())}
    assert len(used) > 50
    assert used - page == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target
