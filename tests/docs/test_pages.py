"""The pages keep up with the code and with each other: the tree, the classes of errors, the index, the links."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import garboard
from garboard.errors import GarboardError

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "garboard"
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def test_architecture_shows_every_package() -> None:
    shown = set(re.findall(r"^  (\w+)/ ", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE))
    assert shown == {each.parent.name for each in SOURCE.glob("*/__init__.py")}


def test_errors_page_names_every_class() -> None:
    page = set(re.findall(r"`([a-z0-9-]+)`", (ROOT / "docs/errors.md").read_text()))
    pattern = re.compile(r'(?:error_class=|default_class(?:: ClassVar\[str\])? = )"([a-z0-9-]+)"')
    used = {name for file in SOURCE.rglob("*.py") for name in pattern.findall(file.read_text())}
    assert len(used) > 50
    assert used - page == set()


def documented_codes() -> set[tuple[str, int]]:
    """Every error class of the page with its exit code."""
    rows = re.findall(r"^\| (`.+?`) \| (\d+) \|", (ROOT / "docs/errors.md").read_text(), re.MULTILINE)
    return {(name, int(code)) for names, code in rows for name in re.findall(r"`([a-z0-9-]+)`", names)}


def error_types() -> dict[str, type[GarboardError]]:
    """Every class of errors by its name, after everything has been imported."""
    for module in pkgutil.walk_packages(garboard.__path__, "garboard."):
        importlib.import_module(module.name)
    found = [GarboardError]
    for each in found:
        found += each.__subclasses__()
    return {each.__name__: each for each in found}


def raised_codes() -> set[tuple[str, int]]:
    """Every error class that the code names, with the exit code of what it raises."""
    types = error_types()
    pairs = {(each.default_class, each.exit_code) for each in types.values()}
    calls = (node for file in SOURCE.rglob("*.py") for node in ast.walk(ast.parse(file.read_text())))
    for call in (node for node in calls if isinstance(node, ast.Call)):
        raised = types.get(getattr(call.func, "id", ""))
        given = [each.value for each in call.keywords if each.arg == "error_class"]
        if raised is not None and given and isinstance(given[0], ast.Constant):
            pairs.add((given[0].value, raised.exit_code))  # type: ignore[arg-type]
    return pairs


def test_errors_page_has_the_exit_code_of_every_class() -> None:
    raised, documented = raised_codes(), documented_codes()
    assert len(raised) > 80
    assert raised - documented == set()
    known = {name for name, _ in raised}
    assert {pair for pair in documented if pair[0] in known and pair not in raised} <= BY_REASON


# What connections fail with is a table of reasons in rpc/errors.py; the container runtime passes them on.
BY_REASON = {
    *((name, code) for name in ("refused", "timed-out", "connection-lost") for code in (4, 5)),
    *((name, 5) for name in ("unknown-host", "untrusted")),
}


def test_index_names_every_page() -> None:
    index = (DOCS / "README.md").read_text()
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"README.md"}
    assert {page for page in pages if page not in index} == set()


def test_glossary_stays_short() -> None:
    words = re.findall(r"^\| \*\*(.+?)\*\* \|", (DOCS / "glossary.md").read_text(), re.MULTILINE)
    assert len(words) == len(set(words))
    assert 20 <= len(words) <= 50


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_testing_page_names_everything_that_is_left_to_verify() -> None:
    marked = re.compile(r"mark\.(?:verify|sampled)\b")
    tests = ROOT / "tests"
    files = (each.relative_to(tests) for each in tests.rglob("test_*.py") if marked.search(each.read_text()))
    left = {each for each in files if each.parts[0] not in ("tools", "docs")}  # which test the marks and this page
    assert len(left) > 15
    page = (DOCS / "testing.md").read_text()
    named = {Path(name) for name in re.findall(r"\(`([\w/.]+)`\)", page)}
    assert {str(each) for each in left if not named & {each, *each.parents}} == set()
