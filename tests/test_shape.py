"""The rules of CONTRIBUTING about the shape of the code, as far as a program can hold them."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import garboard

SOURCE = Path(garboard.__file__).parent
ROOT = Path(__file__).parents[1]
MODULES = {path.relative_to(SOURCE).as_posix(): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}
LONGEST_MODULE, LONGEST_FUNCTION = 500, 50
# uvloop is optional: that it is not installed is found out by importing it.
IMPORTED_LATE = {("cli/tunnel/daemon.py", "uvloop")}
# Pictures that readers would have to learn; the field has words for each of them.
PICTURES = re.compile(r"(?:^|(?<=[a-z]))(Hands?|Eyes?|Crew|Doors?|Exam|Taker|Turns?|Tell|Narrator|World)(?=[A-Z]|$)")
# Beside `host`, which is the one that opens files and starts programs: who does so, and why.
OPENED_ELSEWHERE = {
    ("cli/console.py", "os.open"),  # /dev/null, in place of an output that nobody reads any more
    ("lab/control.py", "os.open"),  # the folder of a unix socket, whose own path is too long for the kernel
    ("tunnel/server/run.py", "unlink"),  # the unix socket of a tenant that is gone, which the server itself had bound
    ("tunnel/workers/sockets.py", "unlink"),  # the unix sockets that it binds, and those that were there before
    ("lab/binaries/build.py", "read_bytes"),  # data of this package, not of the machine
    ("lab/binaries/pins.py", "read_bytes"),
    ("schema/catalog.py", "read_bytes"),
}
_OF_OS = {
    "chmod", "chown", "fdopen", "link", "makedirs", "mkdir", "open", "remove", "rename", "replace", "rmdir", "symlink",
    "truncate", "unlink", "execv", "execve", "execvp", "fork", "popen", "posix_spawn", "system",
}  # fmt: skip
_OF_OTHERS = {
    "chmod", "hardlink_to", "mkdir", "read_bytes", "read_text", "rmdir", "symlink_to", "touch", "unlink", "write_bytes",
    "write_text", "create_subprocess_exec", "create_subprocess_shell",
}  # fmt: skip
NAMELESS = ("utils", "helpers", "common", "base", "manager", "misc")


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax of every module, parsed only by a process that runs these tests."""
    return {module: ast.parse(text) for module, text in MODULES.items()}


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield module, node


def classes() -> list[tuple[str, str]]:
    return [
        (module, node.name) for module, tree in trees().items() for node in tree.body if isinstance(node, ast.ClassDef)
    ]


def test_no_module_and_no_function_is_too_long() -> None:
    assert [name for name, text in MODULES.items() if len(text.splitlines()) > LONGEST_MODULE] == []
    long = [(module, node.name) for module, node in functions() if _lines(node) > LONGEST_FUNCTION]
    assert long == []


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno


def test_public_classes_have_names_of_their_own() -> None:
    count = Counter(name for _, name in classes() if not name.startswith("_"))
    assert {name: number for name, number in count.items() if number > 1} == {}


def test_classes_are_named_with_words_of_the_field() -> None:
    assert [(module, name) for module, name in classes() if PICTURES.search(name)] == []


@pytest.mark.parametrize("tree", ["tests", "tools", "benchmarks"])
def test_tests_and_tools_are_written_with_words_of_the_field(tree: str) -> None:
    """Classes and functions, also inside others; the name of a test is a sentence, in which a verb is no picture."""
    named = [
        (path.relative_to(ROOT).as_posix(), node.name)
        for path in sorted((ROOT / tree).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("test_")
    ]
    assert [(module, name) for module, name in named if _is_picture(name)] == []


def _is_picture(name: str) -> bool:
    """Whether a name of a class or a function has a picture among its words."""
    words = "".join(word.capitalize() if word.islower() else word for word in name.split("_"))
    return PICTURES.search(words) is not None


def test_modules_are_named_for_what_they_hold() -> None:
    assert [module for module in MODULES if Path(module).stem in NAMELESS] == []


def test_imports_are_put_off_in_one_way() -> None:
    late = {
        (module, (each.module or "") if isinstance(each, ast.ImportFrom) else each.names[0].name)
        for module, node in functions()
        for each in ast.walk(node)
        if isinstance(each, ast.Import | ast.ImportFrom)
    }
    assert late == IMPORTED_LATE


@pytest.mark.parametrize(
    "room", ["node", "engine", "phases", "pki", "manifests", "patches", "rules", "config", "tunnel"]
)
def test_only_the_command_line_prints(room: str) -> None:
    printing = re.compile(r"\bsys\.(stdout|stderr)\b|\bprint\(|\bclick\b")
    found = [name for name, text in MODULES.items() if name.startswith(f"{room}/") and printing.search(_code(text))]
    assert found == []


def _code(text: str) -> str:
    """Return the source without its docstrings and comments."""
    return re.sub(r'""".*?"""|#[^\n]*', "", text, flags=re.DOTALL)


def _opened_in(tree: ast.Module) -> Iterator[str]:
    """Yield what a module does with files and programs: by builtins, `os`, methods of paths, asyncio, and modules."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name in ("shutil", "subprocess"))
            case ast.ImportFrom(module="os" | "shutil" | "subprocess" as module):
                yield module
            case ast.Call(func=ast.Name(id="open")):
                yield "open"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr=name)) if name in _OF_OS:
                yield f"os.{name}"
            case ast.Call(func=ast.Name(id="lazy_module"), args=[ast.Constant(value=str(name))]):
                yield from ([name] if name in ("shutil", "subprocess") else [])
            case ast.Call(func=ast.Attribute(attr="open"), args=[ast.Constant(value=str()), *_]):
                yield "Path.open"
            case ast.Call(func=ast.Attribute(attr=name)) if name in _OF_OTHERS:
                yield name
            case _:
                pass


def test_only_host_opens_files_and_starts_programs() -> None:
    found = {
        (module, what)
        for module, tree in trees().items()
        if not module.startswith("host/")
        for what in _opened_in(tree)
    }
    assert found == OPENED_ELSEWHERE


def test_waiting_is_done_in_one_way() -> None:
    """Only what is asynchronous has loops of its own; a call of the blocking driver ends at a `retry.Deadline`."""
    waits = re.compile(r"\bgive_up_at\b|\b(deadline|until)\b.*monotonic|monotonic\(\) [+<]")
    own = ("tunnel/", "rpc/aio/")
    found = [name for name, text in MODULES.items() if not name.startswith(own) and waits.search(text)]
    assert found == ["retry.py"]
    pauses = re.compile(r"\btime\.sleep\b|\bfrom time import\b.*\bsleep\b")
    assert [name for name, text in MODULES.items() if pauses.search(text)] == ["retry.py"]
