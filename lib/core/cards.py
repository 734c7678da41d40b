"""What a data set says about itself: a card in Markdown, filled with the run's numbers."""

from collections.abc import Mapping
from pathlib import Path
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
    if missing := [name for name in FIELDS if name not in cards[source]]:
        raise TouchstoneError(
            f"{path}, card {source}: {', '.join(missing)} missing; write {', '.join(FIELDS)}"
        )
    try:
        return {name: _filled(part, numbers) for name, part in cards[source].items()}
    except KeyError as error:
        raise TouchstoneError(
            f"{path}, card {source}: nothing is known of {error}; use one of "
            f"{', '.join(sorted(numbers))}"
        ) from None


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
        return part.format_map(numbers)
    if isinstance(part, list):
        return [_filled(item, numbers) for item in part]
    if isinstance(part, dict):
        return {name: _filled(item, numbers) for name, item in part.items()}
    return part
