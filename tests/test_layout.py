"""Where code beside the package may live, and what it may import: read from the import statements, nothing is run."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/garboard"
TREES = ("tests", "benchmarks", "tools")
# Those that wire the edges to the core, and the edges themselves.
WIRED = {"node", "cli", "api", "host", "kube", "etcd", "cri", "net"}


def modules_of(tree: str) -> list[str]:
    """Return the modules of a tree by their dotted names."""
    return [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sorted((ROOT / tree).rglob("*.py"))]


def imports_of(module: str) -> Iterator[str]:
    """Yield the modules that a module imports, at its top or inside functions; `from a import b` yields a and a.b."""
    for node in ast.walk(ast.parse((ROOT / module.replace(".", "/")).with_suffix(".py").read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_test_file(module: str) -> bool:
    """Whether pytest loads the module by itself."""
    name = module.rpartition(".")[2]
    return module.startswith("tests.") and (name.startswith("test_") or name == "conftest")


def broken_rules(module: str, imported: str) -> Iterator[str]:
    """Yield what is wrong with one module importing the other."""
    importer, origin = module.partition(".")[0], imported.partition(".")[0]
    if is_test_file(imported):
        yield f"{module} imports {imported}: what tests share belongs in tests/support"
    if {importer, origin} == {"tests", "benchmarks"}:
        yield f"{module} imports {imported}: what tests and benchmarks share belongs in tools/harness"
    if importer == "tools" and origin in ("tests", "benchmarks"):
        yield f"{module} imports {imported}: tools stand below tests and benchmarks"


@pytest.mark.parametrize("tree", TREES)
def test_imports_between_tests_benchmarks_and_tools_go_one_way(tree: str) -> None:
    found = {line for name in modules_of(tree) for each in imports_of(name) for line in broken_rules(name, each)}
    assert sorted(found) == []


def test_modules_among_the_tests_are_test_files_or_support() -> None:
    strays = [name for name in modules_of("tests") if not is_test_file(name) and not name.startswith("tests.support.")]
    assert strays == []


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        pytest.param("tests.lab.test_join", "tests.lab.test_reset", id="a test file"),
        pytest.param("tests.support.lab.smoke", "tests.lab.conftest", id="a conftest"),
        pytest.param("tests.lab.test_runs", "benchmarks.measure", id="benchmarks from tests"),
        pytest.param("benchmarks.lab.run", "tests.support.equality", id="tests from benchmarks"),
        pytest.param("tools.harness.lab", "tests.support.equality", id="tests from tools"),
    ],
)
def test_broken_rule_is_found(module: str, imported: str) -> None:
    assert len(list(broken_rules(module, imported))) == 1


def test_all_of_the_core_is_kept_from_the_edges() -> None:
    """A package that is added is added to the contract too: import-linter itself knows only those that are named."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = (each for each in contracts if each["name"].startswith("only node and the command line wire"))
    modules, packages = PACKAGE.glob("[!_]*.py"), PACKAGE.glob("*/__init__.py")
    core = {path.stem for path in modules} | {path.parent.name for path in packages} - WIRED
    assert {f"garboard.{each}" for each in core} == set(contract["source_modules"])


def test_command_line_reads_and_writes_the_files_that_a_user_names_and_nothing_else() -> None:
    """What it takes of `host` are functions over files; the machine is wired by node, or for lab, tunnel and image."""
    names = {
        each
        for module in modules_of("src/garboard/cli")
        if not module.startswith(("src.garboard.cli.lab.", "src.garboard.cli.tunnel.", "src.garboard.cli.image"))
        for each in imports_of(module)
        if each.startswith("garboard.host.")
    }
    modules = {"garboard.host.files", "garboard.host.root"}
    functions = {"is_folder", "list_tree", "make_folder", "read_file", "read_tree", "write_file", "write_tree"}
    functions |= {"files.read_if_there", "root.exists", "SYMBOLIC_LINK"}
    assert names == modules | {f"garboard.host.{each}" for each in functions}


def test_every_module_of_the_machine_is_open_or_closed_to_the_command_line() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = (each for each in contracts if each["name"].startswith("the command line asks"))
    there = {f"garboard.host.{path.stem}" for path in (PACKAGE / "host").glob("[!_]*.py")}
    opened = {f"garboard.host.{name}" for name in ("file_trees", "files", "folders", "root")}
    assert there - opened == {each for each in contract["forbidden_modules"] if each.startswith("garboard.host.")}


def test_tests_of_the_lab_are_where_make_looks_for_them() -> None:
    (folders,) = (line.partition(":=")[2].split() for line in (ROOT / "Makefile").read_text().splitlines()
                  if line.startswith("LAB :="))  # fmt: skip
    marked = [path for path in (ROOT / "tests").rglob("*.py") if ".mark." + "lab" in path.read_text()]
    assert marked
    assert [path for path in marked if not any(path.is_relative_to(ROOT / each) for each in folders)] == []


def test_no_tests_are_real_without_saying_so_in_their_own_file() -> None:
    assert [path for path in (ROOT / "tests").rglob("conftest.py") if ".mark." + "real" in path.read_text()] == []
