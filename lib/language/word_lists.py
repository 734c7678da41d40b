"""The word lists that the rules of this room read: words apart by blanks, `#` comments."""

from functools import cache
from pathlib import Path

from ..core.errors import TouchstoneError
from ..core.paths import material

# The lists lie with the study whose card states their source and licence.
_FOLDERS = ("geco", "implicit_bias")


@cache
def resource(name: str) -> Path:
    """The file of this repository that holds a list, the lexicon or fitted weights.

    Raises:
        TouchstoneError: no folder of material holds such a file.
    """
    places = [material(folder) / name for folder in _FOLDERS]
    for place in places:
        if place.is_file():
            return place
    raise TouchstoneError(f"{places[0]} is missing; restore the file of the repository")


def read_word_list(path: Path) -> frozenset[str]:
    """The words of a list, one or more on a line; what follows a `#` is a comment."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines for word in line.split("#")[0].split())


@cache
def word_list(name: str) -> frozenset[str]:
    """A list of this repository by its name.

    >>> "Emma" in word_list("first_names")
    True
    """
    return read_word_list(resource(f"{name}.txt"))
