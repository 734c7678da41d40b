"""Zero-shot classifiers: pre-trained models that answer without any training."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from ..core.errors import TouchstoneError
from .hf import longest_input, prepare_padding, read_token, run_head
from .text_model import Encoded, RunsFromEmbeddings, check_length, device_of, pad
from .weights import load_pretrained, load_tokenizer

LABEL_WORDS = {"F": "female", "M": "male", "NB": "neutral"}
# No pronouns in these: they would give the answer away.
DESCRIPTIONS = {
    "F": "This sentence is about a woman.",
    "M": "This sentence is about a man.",
    "NB": "This sentence is about a person of neutral gender.",
}
_MASKED_LMS = set(MODEL_FOR_MASKED_LM_MAPPING_NAMES.values())
# XLNet's is listed as causal, yet each of its tokens sees itself: there is no next word to read.
_CAUSAL_LMS = set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()) - {"XLNetLMHeadModel"}


class PromptedModel(RunsFromEmbeddings):
    """A language model that fills in a class word.

    A kind says what its cue is, where that begins and which token of it is read. Words of the cue
    have no word id, so no explanation can give them a share of a sentence.
    """

    cue: list[int]
    lead: int | None = None  # the tokens before the cue; None where it ends the text
    read: int  # the token of the cue that the class word is read at

    def __init__(
        self,
        module: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        label_words: Mapping[str, str] = LABEL_WORDS,
    ) -> None:
        prepare_padding(module, tokenizer)
        self.module, self.tokenizer, self.classes = module.eval(), tokenizer, tuple(label_words)
        self.max_length = longest_input(module, tokenizer)
        self.label_ids = _label_ids(tokenizer, label_words)
        *most, last = label_words.values()
        self.choice = f"{', '.join(most)} or {last}"

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[Encoded]:
        """Token ids and word ids of the sentences with the cue around them."""
        encoded = []
        for i, row in enumerate(super().encode(sentences)):
            cut = len(row.ids) if self.lead is None else self.lead
            ids = [*row.ids[:cut], *self.cue, *row.ids[cut:]]
            check_length(i, sentences[i], len(ids), self.max_length)
            of_cue = [None] * len(self.cue)
            encoded.append(Encoded(ids, [*row.word_ids[:cut], *of_cue, *row.word_ids[cut:]]))
        return encoded

    def logits(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The language model's scores of the class words, at the one position that is read."""
        output = self.module.base_model(inputs_embeds=embeddings, attention_mask=mask)
        # (batch, vocab)
        scores = run_head(self.module, read_token(output, self.position_read(mask)))
        return scores[:, torch.tensor(self.label_ids, device=scores.device)]

    def position_read(self, mask: Int[Tensor, "batch token"]) -> Int[Tensor, "batch"]:
        """The mask token of the cue, or the last one, after which the class word would come."""
        return self._start(mask.sum(1)) + self.read

    def reference_ids(self, ids: Int[Tensor, "batch token"]) -> Int[Tensor, "batch token"]:
        """The same sequences with nothing in them.

        Special tokens and the cue kept, all others padding.
        """
        at = torch.arange(ids.shape[1], device=ids.device)
        # The last token that is no padding ends the row: padding may stand within it, too.
        lengths = ((ids != self.tokenizer.pad_token_id) * (at + 1)).amax(1)
        start = self._start(lengths)[:, None]
        in_cue = (at >= start) & (at < start + len(self.cue))
        return torch.where(in_cue, ids, super().reference_ids(ids))

    def _start(self, lengths: Int[Tensor, "batch"]) -> Int[Tensor, "batch"]:
        """Where the cue begins in texts of so many tokens."""
        if self.lead is None:
            return lengths - len(self.cue)
        return torch.full_like(lengths, self.lead)


class PromptedMaskedLM(PromptedModel):
    """A masked language model; the cue stands before the sentence.

    "Female, male or neutral: [MASK]. <sentence>"
    """

    def __init__(
        self,
        module: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        label_words: Mapping[str, str] = LABEL_WORDS,
    ) -> None:
        super().__init__(module, tokenizer, label_words)
        before = pieces_in_text(tokenizer, f"{self.choice.capitalize()} :")
        self.cue = [*before, tokenizer.mask_token_id, *pieces_in_text(tokenizer, ".")]
        # a class token that stands first stays first
        self.lead, self.read = int(tokenizer("a").word_ids()[0] is None), len(before)


class PromptedCausalLM(PromptedModel):
    """A causal language model; the cue stands after the sentence, and what follows it is read."""

    def __init__(
        self,
        module: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        label_words: Mapping[str, str] = LABEL_WORDS,
    ) -> None:
        super().__init__(module, tokenizer, label_words)
        self.cue = pieces_in_text(tokenizer, f"The gender of this person ( {self.choice} ) is")
        self.read = len(self.cue) - 1


class LabelSimilarity(RunsFromEmbeddings):
    """An encoder without a language-model head.

    The class whose description is most like the sentence.

    Both are the mean of the encoder's output over the tokens; score = `scale` times their cosine.
    """

    def __init__(
        self,
        module: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        descriptions: Mapping[str, str] = DESCRIPTIONS,
        scale: float = 20.0,
    ) -> None:
        prepare_padding(module, tokenizer)
        self.module, self.tokenizer, self.classes = module.eval(), tokenizer, tuple(descriptions)
        self.max_length, self.scale = longest_input(module, tokenizer), scale
        with torch.no_grad():
            encoded = self.encode([text.split() for text in descriptions.values()])
            ids, mask = pad(encoded, tokenizer.pad_token_id, device=device_of(module))
            self.labels = self._sentence(self.embed(ids), mask)

    def logits(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The similarity of each sentence to each description, from the word embeddings."""
        return self.scale * self._sentence(embeddings, mask) @ self.labels.to(embeddings.device).T

    def share_read(self, mask: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token"]:
        """Equal shares of all tokens."""
        return mask / mask.sum(1, keepdim=True)

    def _sentence(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch hidden"]:
        hidden = self.module(inputs_embeds=embeddings, attention_mask=mask).last_hidden_state
        mean = torch.einsum("bt,bth->bh", self.share_read(mask).to(hidden.dtype), hidden)
        return F.normalize(mean, dim=-1)


def zero_shot_model(name: str, revision: str, classes: Sequence[str]) -> RunsFromEmbeddings:
    """The zero-shot classifier that a pre-trained model allows.

    By masked word, by next word, or by similarity.

    What it has is read from the architectures of its configuration: a language-model head that was
    trained, or none.
    """
    tokenizer = load_tokenizer(name, revision)
    words = {c: LABEL_WORDS[c] for c in classes}
    kinds = set(load_pretrained(AutoConfig, name, revision).architectures or ())
    if kinds & _MASKED_LMS and tokenizer.mask_token_id is not None:
        module = load_pretrained(AutoModelForMaskedLM, name, revision)
        return PromptedMaskedLM(module, tokenizer, words)
    if kinds & _CAUSAL_LMS:
        module = load_pretrained(AutoModelForCausalLM, name, revision)
        return PromptedCausalLM(module, tokenizer, words)
    module = load_pretrained(AutoModel, name, revision)
    return LabelSimilarity(module, tokenizer, {c: DESCRIPTIONS[c] for c in classes})


def _label_ids(tokenizer: Any, label_words: Mapping[str, str]) -> list[int]:
    """The first piece of each class word.

    The pieces must differ, or the model could not tell the classes apart.
    """
    ids = [pieces_in_text(tokenizer, word)[0] for word in label_words.values()]
    if (
        len(set(ids)) < len(ids)
        or tokenizer.unk_token_id in ids
        and tokenizer.unk_token_id != tokenizer.eos_token_id
    ):
        raise TouchstoneError(
            f"the tokenizer does not tell {', '.join(label_words.values())} apart by their first "
            "pieces; give other label words"
        )
    return ids


def pieces_in_text(tokenizer: Any, text: str) -> list[int]:
    """The tokens of words as they stand within a text, after another word and a space."""
    alone, after = (
        tokenizer(begin, add_special_tokens=False)["input_ids"] for begin in ("a", f"a {text}")
    )
    return list(after[len(alone) :])
