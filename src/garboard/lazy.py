"""The one way to put an import off until it is used: for what is heavy, and what most commands do without.

    if TYPE_CHECKING:
        from garboard import kube
    else:
        kube = lazy_module("garboard.kube")

Types and import contracts see an ordinary import; the module is loaded when the first of its names is asked for. Each
use of a name is looked up anew, which takes two microseconds: a hot loop keeps the name in a variable.
"""

from importlib import import_module
from types import ModuleType


class _LazyModule(ModuleType):
    """Stands for a module that may not be loaded yet."""

    def __getattr__(self, name: str) -> object:
        return getattr(import_module(self.__name__), name)


def lazy_module(name: str) -> ModuleType:
    """Return a stand-in for a module; whatever is asked of it, the module itself answers."""
    return _LazyModule(name)
