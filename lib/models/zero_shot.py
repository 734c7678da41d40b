"""Zero-shot classifiers: pre-trained models that answer without any training."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
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
from .weights import load_encoder_path, load_tokenizer, quiet

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

    A kind says where its cue stands and which token is read.

    Words of the cue have no word id, so no explanation can give them a share of a sentence.
    """

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
        encoded = [self._with_cue(sentence) for sentence in super().encode(sentences)]
        for i, words in enumerate(sentences):
            check_length(i, words, len(encoded[i].ids), self.max_length)
        return encoded

    def logits(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The language model's scores of the class words, at the one position that is read."""
        output = self.module.base_model(inputs_embeds=embeddings, attention_mask=mask)
        scores = run_head(
            self.module, read_token(output, self.position_read(mask))
        )  # (batch, vocab)
        return scores[:, torch.tensor(self.label_ids, device=scores.device)]

    def reference_ids(self, ids: Int[Tensor, "batch token"]) -> Int[Tensor, "batch token"]:
        """The same sequences with nothing in them.

        Special tokens and the cue kept, all others padding.
        """
        return torch.where(self._cue_mask(ids), ids, super().reference_ids(ids))

    @abstractmethod
    def _with_cue(self, sentence: Encoded) -> Encoded:
        """The sentence with the cue."""

    @abstractmethod
    def _cue_mask(self, ids: Int[Tensor, "batch token"]) -> Bool[Tensor, "batch token"]:
        """Which tokens are the cue's."""

    def _pieces(self, text: str) -> list[int]:
        return pieces_in_text(self.tokenizer, text)


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
        before = self._pieces(f"{self.choice.capitalize()} :")
        self.cue = [*before, tokenizer.mask_token_id, *self._pieces(".")]
        # a class token that stands first stays first
        self.lead = 1 if tokenizer("a").word_ids()[0] is None else 0
        self.position = self.lead + len(before)

    def _with_cue(self, sentence: Encoded) -> Encoded:
        cut = self.lead
        return Encoded(
            [*sentence.ids[:cut], *self.cue, *sentence.ids[cut:]],
            [*sentence.word_ids[:cut], *[None] * len(self.cue), *sentence.word_ids[cut:]],
        )

    def position_read(self, mask: Int[Tensor, "batch token"]) -> Int[Tensor, "batch"]:
        """The mask token of the cue."""
        return torch.full_like(mask[:, 0], self.position)

    def _cue_mask(self, ids: Int[Tensor, "batch token"]) -> Bool[Tensor, "batch token"]:
        at = torch.arange(ids.shape[1], device=ids.device)
        return ((at >= self.lead) & (at < self.lead + len(self.cue))).expand_as(ids)


class PromptedCausalLM(PromptedModel):
    """A causal language model; the cue stands after the sentence, and what follows it is read."""

    def __init__(
        self,
        module: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        label_words: Mapping[str, str] = LABEL_WORDS,
    ) -> None:
        super().__init__(module, tokenizer, label_words)
        self.cue = self._pieces(f"The gender of this person ( {self.choice} ) is")

    def _with_cue(self, sentence: Encoded) -> Encoded:
        word_ids = [*sentence.word_ids, *[None] * len(self.cue)]
        return Encoded([*sentence.ids, *self.cue], word_ids)

    def position_read(self, mask: Int[Tensor, "batch token"]) -> Int[Tensor, "batch"]:
        """The last token, after which the class word would come."""
        return mask.sum(1) - 1

    def _cue_mask(self, ids: Int[Tensor, "batch token"]) -> Bool[Tensor, "batch token"]:
        real = ids != self.tokenizer.pad_token_id
        padding = real.flip(1).long().cumsum(1).flip(1) == 0  # only what ends the row
        ends = ids.shape[1] - padding.sum(1, keepdim=True)  # (batch, 1)
        at = torch.arange(ids.shape[1], device=ids.device)
        return (at >= ends - len(self.cue)) & (at < ends)


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

    def _sentence(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch hidden"]:
        hidden = self.module(inputs_embeds=embeddings, attention_mask=mask).last_hidden_state
        weights = (mask / mask.sum(1, keepdim=True)).to(hidden.dtype)  # (batch, token)
        return F.normalize(torch.einsum("bt,bth->bh", weights, hidden), dim=-1)


def zero_shot_model(name: str, revision: str, classes: Sequence[str]) -> RunsFromEmbeddings:
    """The zero-shot classifier that a pre-trained model allows.

    By masked word, by next word, or by similarity.

    What it has is read from the architectures of its configuration: a language-model head that was
    trained, or none.
    """
    source, options = load_encoder_path(name, revision), {"revision": revision or None}
    words, tokenizer = {c: LABEL_WORDS[c] for c in classes}, load_tokenizer(name, revision)
    with quiet():
        kinds = set(AutoConfig.from_pretrained(source, **options).architectures or ())
        if kinds & _MASKED_LMS and tokenizer.mask_token_id is not None:
            module = AutoModelForMaskedLM.from_pretrained(source, **options)
            return PromptedMaskedLM(module, tokenizer, words)
        if kinds & _CAUSAL_LMS:
            module = AutoModelForCausalLM.from_pretrained(source, **options)
            return PromptedCausalLM(module, tokenizer, words)
        module = AutoModel.from_pretrained(source, **options)
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
