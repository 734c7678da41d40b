"""This package under a second name: the very same modules, none loaded twice.

The package is `lib` in a checkout and `touchstone` where its wheel is installed. So that code says
either, the checkout's `touchstone` is another name of `lib`; and the notebooks of an installed
package, which say `lib`, get `touchstone`.
"""

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType


def also_called(name: str) -> None:
    """Let `import <name>.X` give the module X of this package.

    Args:
        name: the second name; nothing happens where the package has it already.
    """
    package = __name__.partition(".")[0]
    if sys.modules.get(name) is not sys.modules[package]:
        sys.meta_path.insert(0, _SameModules(name, package))
        sys.modules[package].__class__ = _TwoNames
        sys.modules[name] = sys.modules[package]


class _TwoNames(ModuleType):
    """A package that is known by two names."""

    def __setattr__(self, name: str, value: object) -> None:
        # The import system binds a file to its package once more when the file is asked for by its
        # second name. Where the package has a function of that name (`explain`), that one stays.
        if name not in vars(self) or value is not sys.modules.get(f"{self.__name__}.{name}"):
            super().__setattr__(name, value)


class _SameModules(MetaPathFinder, Loader):
    """Answers the import of `<name>.X` with `<package>.X`."""

    def __init__(self, name: str, package: str) -> None:
        self.name, self.package = name, package

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        """Where a module of the other name is found; None leaves the name to other finders."""
        if not name.startswith(f"{self.name}."):
            return None
        return ModuleSpec(name, self) if find_spec(self._first_name(name)) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of the first name itself, not a second one."""
        module = import_module(self._first_name(spec.name))
        spec.loader_state = module.__spec__  # the import system puts `spec` in its place now
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is run again; the module gets back the spec of its first name."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state
        if hasattr(module, "__path__"):
            module.__class__ = _TwoNames

    def get_code(self, name: str) -> CodeType | None:
        """What `python -m <name>.cli` runs."""
        first = find_spec(self._first_name(name))
        return first.loader.get_code(first.name) if first else None  # type: ignore[union-attr]

    def _first_name(self, name: str) -> str:
        return self.package + name.removeprefix(self.name)
