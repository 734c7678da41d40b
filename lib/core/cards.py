"""What a data set says about itself: a card in Markdown, filled with the run's numbers."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from string import Formatter
from typing import Any

from .errors import TouchstoneError
from .files import read_yaml

FIELDS = (
    "name",
    "title",
    "version",
    "licence",
    "url",
    "cite",
    "creator",
    "published",
    "description",
    "keywords",
    "sections",
    "rai",
)
_KINDS: dict[str, type] = {"keywords": list, "sections": dict, "rai": dict}  # all others are text
_UNQUOTED = ("version", "published")  # which YAML reads as a number, as a date


def read_card(path: Path, source: str, numbers: Mapping[str, object]) -> dict[str, Any]:
    """The card of a data source from a YAML file of cards.

    Args:
        path: the file; it maps each source to a card with the parts of `FIELDS`.
        source: the data source whose card is wanted.
        numbers: what stands in the card in place of `{names}`.

    Raises:
        TouchstoneError: the source has no card, a part is missing, or a name has no number.
    """
    cards = read_yaml(path)
    if source not in cards:
        raise TouchstoneError(
            f"{path} has no card for {source!r}, only for {', '.join(cards)}; write one"
        )
    card, where = cards[source], f"{path}, card {source}"
    held = card if isinstance(card, dict) else {}
    if missing := [name for name in FIELDS if name not in held]:
        raise TouchstoneError(f"{where}: {', '.join(missing)} missing; write {', '.join(FIELDS)}")
    parts = {
        name: checked_part(name, part, _KINDS.get(name, str), f"{where}: {name}")
        for name, part in card.items()
    }
    for heading, answers in parts["sections"].items():
        checked_part(heading, answers, dict, f"{where}: sections, {heading}")
    try:
        return {name: _filled(part, numbers) for name, part in parts.items()}
    except KeyError as error:
        raise TouchstoneError(
            f"{where}: nothing is known of {error}; use one of {', '.join(sorted(numbers))}"
        ) from None
    except (ValueError, AttributeError, IndexError) as error:
        raise TouchstoneError(
            f"{where}: a brace does not hold the name of a number ({error}); write {{{{ for a brace"
        ) from None


def checked_part(name: str, part: Any, kind: type, where: str) -> Any:
    """A part of a card, of its kind, no empty text; numbers and dates where they stand for text.

    Args:
        name: of the part.
        part: what YAML read.
        kind: str, list or dict.
        where: the part in its file, for the error.
    """
    if kind is str and name in _UNQUOTED and type(part) in (int, float, date):
        return str(part)
    if not isinstance(part, kind) or part == "":
        written: dict[Any, str] = {
            str: "text, in quotes if it looks like something else",
            list: "a list",
        }
        raise TouchstoneError(f"{where} is {part!r}; write {written.get(kind, 'a mapping')}")
    return part


def dataset_card(card: Mapping[str, Any]) -> str:
    """The card in Markdown: title, description, licence, then a datasheet's questions and answers.

    The questions follow Gebru et al., Datasheets for Datasets (Communications of the ACM, 2021), in
    our own words.

    Args:
        card: what `read_card` returns; `sections` maps headings to {question: answer}.
    """
    blocks = [
        f"# {card['title']}",
        card["description"],
        f"Version {card['version']} ({card['published']}). Licence: <{card['licence']}>. "
        f"By {card['creator']}.",
        f"Please cite: {card['cite']}",
    ]
    for section, answers in card["sections"].items():
        blocks += [f"## {section}", *(f"**{asked}** {said}" for asked, said in answers.items())]
    return "\n\n".join(blocks) + "\n"


def _filled(part: Any, numbers: Mapping[str, object]) -> Any:
    if isinstance(part, str):
        names = [name for _, name, _, _ in Formatter().parse(part) if name is not None]
        if odd := [name for name in names if name not in numbers]:  # "n.__class__" is none either
            raise KeyError(odd[0])
        return part.format_map(numbers)
    if isinstance(part, list):
        return [_filled(item, numbers) for item in part]
    if isinstance(part, dict):
        return {name: _filled(item, numbers) for name, item in part.items()}
    return part
