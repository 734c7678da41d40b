"""Somebody's own code, named in a parameter as module:function."""

import importlib
from collections.abc import Callable
from typing import Any

from .errors import TouchstoneError


def object_named(name: str, what: str) -> Any:
    """What stands in a module under a name, "module:function".

    Args:
        name: as the parameter has it.
        what: what it is named for, for the error ("method").

    Raises:
        TouchstoneError: the name has another form, or there is no such module or name in it.

    >>> object_named("math:floor", "rounding")(2.7)
    2
    """
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise TouchstoneError(f"{what} {name!r} is no name of a function; write module:function")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise TouchstoneError(
            f"{what} {name!r}: {error}; put the module's folder on PYTHONPATH"
        ) from None
    except Exception as error:  # whatever the module does when it is imported
        raise TouchstoneError(
            f"{what} {name!r}: importing {module_name} failed ({type(error).__name__}: {error}); "
            "correct the module"
        ) from error
    if not hasattr(module, attribute):
        raise TouchstoneError(
            f"{what} {name!r}: {module_name} has no {attribute!r}; correct the name"
        )
    return getattr(module, attribute)


def function_named(name: str, what: str) -> Callable[..., Any]:
    """The same, where it must be something that can be called.

    Raises:
        TouchstoneError: as `object_named`, or it is no function.
    """
    chosen = object_named(name, what)
    if not callable(chosen):
        raise TouchstoneError(
            f"{what} {name!r} is {type(chosen).__name__}, not a function; name a function"
        )
    return chosen  # type: ignore[no-any-return]
