import subprocess
import sys

PROGRAM = """
import sys
from garboard.lazy import lazy_module
module = lazy_module("garboard.documents")
assert "garboard.documents" not in sys.modules
assert module.read_yaml("a: 1", source="x") == {"a": 1}
assert "garboard.documents" in sys.modules
"""


def test_module_is_loaded_with_the_first_of_its_names() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
