"""Why this continuation: for each token that follows a prompt, the words that speak for it.

Example: `explain_continuation(model, tokenizer, "the keys to the cabinet", "are rusty")`; the
prompt may be a conversation, which the tokenizer's chat template writes out.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from ..core.errors import TouchstoneError
from ..models.hf_lm import Subwords
from ..models.language_model import END, UNKNOWN
from ..models.probe import CausalLM, WordTable
from ..models.text_model import device_of
from .batch import TokenBatch
from .budget import TokenBudget
from .next_word import method_answer, paired
from .seam import Score, word_scores

TEMPLATE, PROMPT, SAID = "template", "prompt", "continuation"  # segments; others are roles
Prompt = str | Sequence[Mapping[str, str]]


class _Text(NamedTuple):
    """A prompt and what follows it, as a model reads them.

    Attributes:
        ids: of all tokens, with what begins the sequence.
        owners: the word of each token of the prompt, None for what belongs to no word.
        words: (segment, word) of the prompt.
        tokens: how each token of the continuation is written; they are the last of `ids`.
    """

    ids: list[int]
    owners: list[int | None]
    words: list[tuple[str, str]]
    tokens: list[str]


class _NextTokens(Score):
    """Of each row the log-probability of a token behind its last one, minus that of a foil."""

    module: CausalLM

    def __init__(
        self,
        lm: CausalLM,
        n_read: Int[Tensor, "batch"],
        tokens: Int[Tensor, "batch"],
        foils: Int[Tensor, "batch"] | None,
    ) -> None:
        self.module, self.n_read, self.tokens, self.foils = lm, n_read, tokens, foils

    def for_rows(self, rows: Int[Tensor, "batch"]) -> "_NextTokens":
        """Each row asks about a token of its own."""
        foils = None if self.foils is None else self.foils[rows]
        return _NextTokens(self.module, self.n_read[rows], self.tokens[rows], foils)

    def logits(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch"]:
        """The score itself. Padding stands behind what is read, and no token sees what follows."""
        rows = torch.arange(len(embeddings), device=embeddings.device)
        # The head reads one state a row: for all of a long prompt it would fill the memory.
        last = self.module.run(embeddings)[rows, self.n_read - 1]
        log_prob = self.module.log_prob(last)  # (batch, vocabulary)
        of_token = log_prob[rows, self.tokens]
        return of_token if self.foils is None else of_token - log_prob[rows, self.foils]


def explain_continuation(
    lm: CausalLM | PreTrainedModel,
    vocabulary: WordTable | Any,
    prompt: Prompt,
    continuation: str,
    foil: str | None = None,
    method: str = "Integrated Gradients",
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Which words speak for each token of a continuation: those of the prompt, and the tokens
    before it.

    Explained is the token's log-probability after all that precedes it. A token's pieces of text
    are added up by word in the prompt, and stand alone in the continuation. Tokens are explained
    together, as many at a time as memory allows; a long prompt goes through the model alone.

    Args:
        lm: a causal model of transformers, or one from `load_hf_lm` (a folder) or `load_lm`.
        vocabulary: its fast tokenizer, or the other half of that pair.
        prompt: a text; or messages, each with `role` and `content`, for the tokenizer's template.
        continuation: what the model said, or might say.
        foil: another continuation of as many tokens. Each token is held against the foil's at its
            place, after the same text; where the two are equal there is nothing to explain.
        method: a token method of lib.attribution.METHODS.
        settings: as in `explain_next_word`.
        seed: for methods that draw.

    Returns:
        A line for each pair: place and token (of the continuation), word_place, word, segment
        ("prompt", the role of a message, "template" for what the template wrote, "continuation"),
        score. `attrs["delta"]` is, by place, by how much the scores of a complete method miss their
        sum.

    Raises:
        TouchstoneError: for a prompt or continuation without words, one that the tokenizer reads in
            another way together, a tokenizer without template, a foil of another length, and as
            `explain_next_word`.
    """
    lm, vocabulary = paired(lm, vocabulary)
    text = _read(vocabulary, prompt, continuation)
    n_before = len(text.owners)
    foils = None if foil is None else _read(vocabulary, prompt, foil).ids[n_before:]
    if foils is not None and len(foils) != len(text.tokens):
        raise TouchstoneError(
            f"the continuation has {len(text.tokens)} tokens and the foil {len(foils)}; give a "
            "foil of as many"
        )
    asked = [
        k for k in range(len(text.tokens)) if foils is None or foils[k] != text.ids[n_before + k]
    ]
    if not asked:
        raise TouchstoneError("the foil is the continuation; give another one")
    device, parts, deltas = device_of(lm), [], {}
    budget = TokenBudget.for_module(lm)

    def work(part: list[int]) -> list[tuple[int, np.ndarray, float | None]]:
        places = [asked[i] for i in part]
        batch = _batch(lm, text, places, foils, seed, budget, device)
        answer = method_answer(batch, method, settings)
        scores = answer.scores.detach().cpu().numpy()
        gaps = [None] * len(part) if answer.delta is None else answer.delta.tolist()
        return list(zip(places, scores, gaps, strict=True))

    for _, made in budget.run([n_before + k for k in asked], work, padded=True):
        for k, scores, gap in made:
            deltas[k] = gap
            parts.append(_table(text, k, scores))
    table = pd.concat(parts, ignore_index=True).sort_values(
        ["place", "word_place"], ignore_index=True
    )
    table.attrs["delta"] = dict(sorted(deltas.items()))
    return table


def _batch(
    lm: CausalLM,
    text: _Text,
    places: Sequence[int],
    foils: Sequence[int] | None,
    seed: int,
    budget: TokenBudget,
    device: torch.device,
) -> TokenBatch:
    """What precedes each of some tokens of the continuation, padded on the right."""
    n_before = len(text.owners)
    n_read = torch.tensor([n_before + k for k in places], device=device)
    ids = torch.tensor(text.ids, device=device)
    longest = n_before + max(places)
    with torch.no_grad():
        # Padding repeats what follows: to a causal model it makes no difference.
        embeddings = lm.embed(ids[None, :longest]).expand(len(places), -1, -1).contiguous()
    mask = (torch.arange(longest, device=device) < n_read[:, None]).long()
    is_text = [owner is not None for owner in text.owners] + [True] * (longest - n_before)
    is_word = torch.tensor(is_text, device=device)[None] & mask.bool()
    score = _NextTokens(
        lm,
        n_read,
        ids[n_read],
        None if foils is None else torch.tensor([foils[k] for k in places], device=device),
    )
    baselines = embeddings * ~is_word[..., None]
    seeds = tuple(seed + k for k in places)
    return TokenBatch(score, embeddings, mask, baselines, is_word, seeds, budget)


def _table(text: _Text, k: int, scores: np.ndarray) -> pd.DataFrame:
    """The lines of one token of the continuation."""
    n_words = len(text.words)
    owners = [*text.owners, *range(n_words, n_words + k)]
    words = [*text.words, *((SAID, token) for token in text.tokens[:k])]
    return pd.DataFrame(
        {
            "place": k,
            "token": text.tokens[k],
            "word_place": range(len(words)),
            "word": [word for _, word in words],
            "segment": [segment for segment, _ in words],
            "score": word_scores(scores[: len(owners)], owners, len(words)),
        }
    )


def _read(vocabulary: WordTable, prompt: Prompt, continuation: str) -> _Text:
    if not isinstance(continuation, str) or not continuation.strip():
        raise TouchstoneError(f"the continuation is {continuation!r}; write what follows as text")
    if isinstance(vocabulary, Subwords):
        return _read_subwords(vocabulary, prompt, continuation)
    if not isinstance(prompt, str):
        raise TouchstoneError(
            f"a {type(vocabulary).__name__} has no chat template; hand in the prompt as a text"
        )
    before, after = prompt.split(), continuation.split()
    _check_prompt(before)
    ids = vocabulary.encode([*before, *after])
    if (unknown := vocabulary.ids.get(UNKNOWN)) in ids[len(before) :]:
        word = after[ids[len(before) :].index(unknown)]
        raise TouchstoneError(
            f"the model does not know the word {word!r}; choose a word of its vocabulary"
        )
    words = [(PROMPT, word) for word in before]
    return _Text([vocabulary.ids[END], *ids], [None, *range(len(before))], words, after)


def _read_subwords(vocabulary: Subwords, prompt: Prompt, continuation: str) -> _Text:
    """A prompt in pieces, by their place in the text that the model reads."""
    if isinstance(prompt, str):
        before = prompt.rstrip(" ")
        regions, begin = [(0, len(before), PROMPT)], [vocabulary.ids[END]]
    else:
        before, regions = _from_template(vocabulary.tokenizer, prompt)
        begin = []  # the template writes what begins a sequence
    words = [
        (segment, start + match.start(), start + match.end())
        for start, end, segment in regions
        for match in re.finditer(r"\S+", before[start:end])
    ]
    _check_prompt(words)
    ids, offsets = _pieces(vocabulary, before)
    if isinstance(prompt, str):
        glue = "" if before[-1:].isspace() or continuation[:1].isspace() else " "
        whole = before + glue + continuation
        both, spans = _pieces(vocabulary, whole)
        if both[: len(ids)] != ids:
            raise TouchstoneError(
                "the tokenizer reads the end of the prompt in another way before "
                f"{continuation!r}; end the prompt elsewhere, or choose another continuation"
            )
        said, spans = both[len(ids) :], spans[len(ids) :]
    else:
        # A model goes on from the template's last token, whatever that is.
        whole = continuation
        said, spans = _pieces(vocabulary, whole)
    ends = np.array([end for *_, end in words])
    # A token of blanks alone belongs to the word behind it, as in `Subwords`.
    owners = np.searchsorted(ends, [end for _, end in offsets])
    owners = np.minimum(owners, len(words) - 1).tolist()
    tokens = [whole[a:b].strip(" ") or " " for a, b in spans]
    spelt = [(segment, before[a:b]) for segment, a, b in words]
    return _Text([*begin, *ids, *said], [None] * len(begin) + owners, spelt, tokens)


def _pieces(vocabulary: Subwords, text: str) -> tuple[list[int], list[tuple[int, int]]]:
    """The ids of a text's pieces, and where they stand in it."""
    read = vocabulary.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    return list(read["input_ids"]), list(read["offset_mapping"])


def _from_template(
    tokenizer: Any, messages: Sequence[Mapping[str, str]]
) -> tuple[str, list[tuple[int, int, str]]]:
    """What the chat template makes of messages, and its regions: messages by role, and the rest."""
    for i, message in enumerate(messages):
        texts = [message.get(name) for name in ("role", "content")] if message else [None]
        if not all(isinstance(text, str) for text in texts):
            raise TouchstoneError(f"message {i} is {message!r}; write its role and content as text")
    if not getattr(tokenizer, "chat_template", None):
        raise TouchstoneError(
            "the tokenizer has no chat template; set tokenizer.chat_template, or hand in a text"
        )
    whole = tokenizer.apply_chat_template(
        list(messages), tokenize=False, add_generation_prompt=True
    )
    regions, at = [], 0
    for i, message in enumerate(messages):
        content = message["content"].strip()
        start = whole.find(content, at)
        if start < 0:
            raise TouchstoneError(
                f"the chat template writes message {i} in another way; shorten or change it"
            )
        end = start + len(content)
        regions += [(at, start, TEMPLATE), (start, end, message["role"])]
        at = end
    return whole, [*regions, (at, len(whole), TEMPLATE)]


def _check_prompt(words: Sequence[Any]) -> None:
    if not words:
        raise TouchstoneError("the prompt is empty; give at least one word to explain")
