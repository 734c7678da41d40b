"""A continuation as a picture: for each of its tokens the prompt, coloured by what spoke for it."""

import pandas as pd

from ..core.errors import TouchstoneError
from .style import Plotted
from .word_pictures import plot_words

_LEFT_OUT = "…"


def plot_continuation(table: pd.DataFrame, title: str = "", n_words: int = 40) -> Plotted:
    """What `explain_continuation` returned: a row a token, below the name of each segment.

    Args:
        table: place, token, word_place, word, segment, score.
        title: the first line.
        n_words: how many words a segment shows at most, those with the largest scores of any token;
            `…` stands for others.

    Returns:
        The figure, and its table, as of `plot_words`.

    Raises:
        TouchstoneError: the table is empty.

    >>> line = {"place": 0, "token": "are", "segment": "prompt"}
    >>> words = [line | {"word_place": i, "word": w, "score": s}
    ...          for i, (w, s) in enumerate([("the", 0.1), ("keys", 0.9)])]
    >>> plot_continuation(pd.DataFrame(words))[1][["heading", "word"]].values.tolist()
    [['prompt', 'the'], ['prompt', 'keys']]
    """
    if table.empty:
        raise TouchstoneError("the table has no line; explain a continuation first")
    of_word = table.groupby(["segment", "word_place"], sort=False)["score"]
    largest = of_word.agg(lambda scores: scores.abs().max())
    shown = set(largest.groupby(level=0).nlargest(n_words).index.get_level_values("word_place"))
    rows = []
    for segment in dict.fromkeys(table["segment"]):
        part = table[table["segment"] == segment]
        for (_, token), of_token in part.groupby(["place", "token"], sort=False):
            kept = of_token.assign(is_kept=of_token["word_place"].isin(shown))
            # A run of words that are left out becomes one sign without a score.
            is_first = kept["is_kept"] | kept["is_kept"].shift(fill_value=True)
            kept = kept[is_first]
            words = kept["word"].where(kept["is_kept"], _LEFT_OUT)
            scores = kept["score"].where(kept["is_kept"], 0.0)
            rows.append(
                {
                    "heading": segment,
                    "label": token.replace("\n", "\\n"),
                    "words": words.tolist(),
                    "scores": scores.tolist(),
                }
            )
    return plot_words(pd.DataFrame(rows), toward="speaks for the token", title=title)
