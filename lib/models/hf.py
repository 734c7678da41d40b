"""Any Hugging Face sequence classifier, run from its word embeddings, and its attention."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call, vmap

from ..core.errors import TouchstoneError
from .text_model import (
    Encoded,
    RunsFromEmbeddings,
    TextModel,
    device_of,
    length_buckets,
    lengths_of,
    pad,
    widened,
)

if TYPE_CHECKING:  # a second of import, which comes with the first model
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Reading = dict[str, Tensor]  # what the head reads of the encoder, by the name of the output field


class HFClassifier(RunsFromEmbeddings):
    """A sequence classifier of `transformers`: its parts are found, not listed by name.

    A classifier reads one token of the encoder's output. It is the first where the tokenizer puts
    its class token there (BERT, RoBERTa), and the last real token otherwise (XLNet's class token,
    GPT-2's last word). A head that reads more (their mean, say) is a matter of
    `lib.models.shortcuts.check_reading`, which sets `one_token` to False.
    """

    def __init__(
        self, module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, classes: Sequence[str]
    ) -> None:
        prepare_padding(module, tokenizer)
        self.module, self.tokenizer, self.classes = module.eval(), tokenizer, tuple(classes)
        self.max_length = longest_input(module, tokenizer)
        self.reads_first = tokenizer("a")["input_ids"][0] == tokenizer.cls_token_id
        self.one_token = True

    @property
    def independent(self) -> bool:
        """Whether each class has its own yes or no, as the configuration's `problem_type` says."""
        return getattr(self.module.config, "problem_type", None) == "multi_label_classification"

    def logits(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The class scores, computed from the word embeddings.

        Padding (mask 0) stands on the right.
        """
        if self.reads_first or not self.one_token:
            return widened(
                self.module(inputs_embeds=self._narrowed(embeddings), attention_mask=mask).logits
            )
        return self.head(self.reading(embeddings, mask))

    def reading(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Reading:
        """The one token of the encoder's output that the head reads."""
        output = self.module.base_model(
            inputs_embeds=self._narrowed(embeddings), attention_mask=mask
        )
        return read_token(output, self.position_read(mask))

    def position_read(self, mask: Int[Tensor, "batch token"]) -> Int[Tensor, "batch"]:
        """The first token of each row, or the last real one."""
        if not self.one_token:
            return super().position_read(mask)
        return torch.zeros_like(mask[:, 0]) if self.reads_first else mask.sum(1) - 1

    def head(self, reading: Reading) -> Float[Tensor, "batch class"]:
        """The class scores from what `reading` kept.

        The same numbers as `logits`, without the encoder.
        """
        return widened(run_head(self.module, reading))

    def _narrowed(
        self, embeddings: Float[Tensor, "batch token hidden"]
    ) -> Float[Tensor, "batch token hidden"]:
        """The embeddings in the type that the module computes in, which may have fewer bits."""
        kind = self.module.get_input_embeddings().weight.dtype
        return embeddings.to(kind) if kind.is_floating_point else embeddings

    @torch.no_grad()
    def read_all(self, encoded: Sequence[Encoded], batch_size: int) -> Reading:
        """Run a frozen encoder once over all sentences, in exact-length batches.

        Raises TouchstoneError for a head that reads more than one token, since its input cannot be
        kept this way.
        """
        device = device_of(self.module)
        buckets = length_buckets(lengths_of(encoded), batch_size)
        readings: list[Reading] = []
        for bucket in buckets:
            # each (batch, token)
            ids, mask = pad(
                [encoded[i] for i in bucket], self.tokenizer.pad_token_id, device=device
            )
            readings.append(self.reading(self.embed(ids), mask))
            # one batch tells whether the head reads nothing but this token
            if bucket is buckets[0] and not torch.allclose(
                self.head(readings[0]), self.logits(self.embed(ids), mask), atol=1e-4
            ):
                raise TouchstoneError(
                    f"the head of {type(self.module).__name__} reads more than one token of its "
                    "encoder, so what it reads cannot be kept; choose another scheme than C"
                )
        # Back from the order of the buckets to that of the sentences.
        order = torch.tensor([i for bucket in buckets for i in bucket], device=device).argsort()
        return {
            name: torch.cat([reading[name] for reading in readings])[order] for name in readings[0]
        }

    def parts(self) -> dict[str, dict[str, nn.Parameter]]:
        """The parameters by part; each is in exactly one.

        `embeddings`: the embedding tables and what stands beside them (positions, LayerNorm);
        `encoder`: the rest of the base model; `head`: what is not base model.
        """
        base, table = self.module.base_model, self.module.get_input_embeddings()
        home = next(m for m in base.modules() if any(child is table for child in m.children()))
        holders = [home]
        if home is base:  # GPT-2's words and positions lie in the base model itself
            holders = [m for m in base.children() if isinstance(m, nn.Embedding)]
        in_base, in_tables = _ids([base]), _ids(holders)
        parts: dict[str, dict[str, nn.Parameter]] = {"embeddings": {}, "encoder": {}, "head": {}}
        for name, p in self.module.named_parameters():
            part = "embeddings" if id(p) in in_tables else "encoder" if id(p) in in_base else "head"
            parts[part][name] = p
        return parts

    def redraw(self, part: str, seed: int) -> None:
        """Give a part new random parameters.

        Tables Xavier uniform with the norms kept, all else as in pre-training.
        """
        redraw(self.module, self.parts()[part], seed)


def layer_stack(module: PreTrainedModel) -> nn.ModuleList:
    """The transformer layers of a model, lowest first.

    The longest list of modules that it holds.
    """
    stacks = [m for m in module.base_model.modules() if isinstance(m, nn.ModuleList)]
    if not stacks:
        raise TouchstoneError(f"{type(module).__name__} has no list of layers; train it as a whole")
    return max(stacks, key=len)


def read_token(output: Any, at: Int[Tensor, "batch"]) -> Reading:
    """The hidden state of one token a row, and the pooled vector where there is one."""
    rows = torch.arange(len(at), device=at.device)
    reading = {
        "last_hidden_state": output.last_hidden_state[rows, at][:, None]
    }  # (batch, 1, hidden)
    pooled = getattr(output, "pooler_output", None)
    return reading if pooled is None else reading | {"pooler_output": pooled}


def run_head(
    module: PreTrainedModel, reading: Reading, parameters: dict[str, Tensor] | None = None
) -> Tensor:
    """What the module's head makes of a reading: (batch, class), or (batch, vocab) of an LM's head.

    The module runs whole, its encoder answering from the reading; with other values for the
    `parameters` that are named.
    """
    hidden, base = reading["last_hidden_state"], module.base_model  # (batch, 1, hidden)
    # a head that looks for the last token that is not padding must find this one
    ids = torch.full(
        hidden.shape[:2],
        int(getattr(module.config, "pad_token_id", None) == 0),
        device=hidden.device,
    )
    # Some heads call the base model, others (OPT's, BART's decoder) its decoder.
    asked = {base, getattr(base, "decoder", base)}
    for part in asked:
        # an instance's attribute hides the method of its class
        part.forward = lambda *args, **kwargs: _Answer(reading)
    try:
        if parameters is None:
            return module(input_ids=ids).logits.reshape(len(hidden), -1)
        output = functional_call(module, parameters, kwargs={"input_ids": ids})
        return output.logits.reshape(len(hidden), -1)
    finally:
        for part in asked:
            del part.forward


def with_own_head(model: HFClassifier) -> HFClassifier:
    """Another classifier over the same encoder, which both hold; its head is a copy."""
    other = copy.copy(model)
    head = {id(p) for p in model.parts()["head"].values()}
    tensors = (*model.module.parameters(), *model.module.buffers())
    # deepcopy takes what its memo names as copied already: the encoder's tensors are shared.
    other.module = copy.deepcopy(model.module, {id(t): t for t in tensors if id(t) not in head})
    return other


def stacked_heads(
    model: HFClassifier, reading: Reading
) -> Callable[[dict[str, Tensor], Tensor], Tensor]:
    """The class scores of many heads at once: a function of their parameters and their rows.

    Parameters go by name and have the axes "seed ..."; rows of `reading` are "seed batch", scores
    "seed batch class".
    """
    of_all = vmap(partial(run_head, model.module))
    return lambda parameters, rows: of_all(
        {name: values[rows] for name, values in reading.items()}, parameters
    )


class _Answer(tuple):
    """An encoder's output that was computed earlier.

    By position, or by name with None for what was not kept.
    """

    def __new__(cls, reading: Reading) -> _Answer:
        answer = super().__new__(cls, reading.values())
        answer.__dict__.update(reading)
        return answer

    def __getattr__(self, name: str) -> None:
        # Heads ask for what they may use (`pooler_output`), and take None for "not there".
        return None


@torch.no_grad()
def redraw(module: PreTrainedModel, parameters: Mapping[str, nn.Parameter], seed: int) -> None:
    """Draw parameters anew.

    Embedding tables: Xavier uniform; other matrices: normal, as before pre-training; biases 0.

    The LayerNorm beside the embedding tables is kept, as in the paper's released code.
    """
    # On the CPU and in the order of the names: the same numbers on every device.
    generator = torch.Generator().manual_seed(seed)
    std = getattr(module.config, "initializer_range", None) or 0.02
    for name, p in parameters.items():
        owner = module.get_submodule(name.rpartition(".")[0])
        if isinstance(owner, nn.Embedding):
            # Drawn into a tensor of its own, for p may lie on another device than the generator.
            bound = math.sqrt(6 / sum(p.shape))
            p.copy_(torch.empty(p.shape).uniform_(-bound, bound, generator=generator))
        elif p.ndim >= 2:
            p.copy_(torch.empty(p.shape).normal_(0, std, generator=generator))
        elif isinstance(owner, nn.Linear):
            p.zero_()


@torch.no_grad()
def attention_maps(
    model: TextModel,
    embeddings: Float[Tensor, "batch token hidden"],
    mask: Int[Tensor, "batch token"],
) -> Float[Tensor, "layer batch head token token"]:
    """How strongly each token (second last axis) attends to each token (last axis).

    The weights of a layer, a head and a token sum to 1.

    Raises:
        TouchstoneError: for a model that is no transformer, or whose attention is not the ordinary
            kind.
    """
    from transformers import PreTrainedModel

    if not isinstance(model.module, PreTrainedModel):
        raise TouchstoneError(
            f"{type(model).__name__} has no attention layers of transformers; choose another method"
        )
    dtype = model.module.get_input_embeddings().weight.dtype
    with eager_attention(model.module):
        output = model.module.base_model(
            inputs_embeds=embeddings.to(dtype), attention_mask=mask, output_attentions=True
        )
    layers = output.attentions  # each (batch, head, token, token)
    # Convolutions and state spaces give None, or maps of another form.
    if not layers or any(layer is None or layer.ndim != 4 for layer in layers):
        raise TouchstoneError(
            f"{type(model.module).__name__} does not hand out its attention weights; choose "
            "another method"
        )
    return widened(torch.stack(layers))


@contextmanager
def eager_attention(module: nn.Module) -> Iterator[None]:
    """Within, attention is computed step by step: fused kernels do not hand out its weights.

    In every transformer that the module is or holds.
    """
    from transformers import PreTrainedModel

    inside = [part for part in module.modules() if isinstance(part, PreTrainedModel)]
    before = [part.config._attn_implementation for part in inside]
    for part in inside:
        part.set_attn_implementation("eager")
    try:
        yield
    finally:
        for part, kind in zip(inside, before, strict=True):
            part.set_attn_implementation(kind)


def prepare_padding(module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Give a tokenizer without padding (GPT-2) its end-of-text for it.

    Masks, not ids, say what is padding.
    """
    if tokenizer.pad_token_id is None and tokenizer.eos_token_id is None:
        raise TouchstoneError(
            f"{type(tokenizer).__name__} has neither a padding nor an end token, and "
            "explanations put one in the "
            "place of words; set tokenizer.pad_token to a token of its vocabulary"
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    module.config.pad_token_id = tokenizer.pad_token_id


def check_vocabulary(tokenizer: PreTrainedTokenizerBase, n_rows: int | None, source: str) -> None:
    """Refuse a tokenizer that an embedding table of `n_rows` was not made for, if that is known.

    A table may have some rows more than there are tokens, for sizes that are fast to compute with,
    and tokens may have been added to a tokenizer (a padding token), but not to its model.

    Raises:
        TouchstoneError: beginning with `source`.
    """
    n_tokens = len(tokenizer)
    if n_rows and (tokenizer.vocab_size > n_rows or n_rows - n_tokens > max(128, n_rows // 10)):
        raise TouchstoneError(
            f"{source}: its tokenizer has {n_tokens} tokens and its embedding table {n_rows} rows, "
            "so they do not belong together; take the tokenizer that the model was trained with (a "
            "folder needs its tokenizer.json or vocabulary beside config.json)"
        )


def longest_input(module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """The most tokens a model reads: what its tokenizer says, within its positions."""
    limit = getattr(module.config, "max_position_embeddings", None) or -1
    if limit < 0:
        return int(tokenizer.model_max_length)
    tables = [m for m in module.modules() if isinstance(m, nn.Embedding)]
    places = [m.padding_idx for m in tables if m.num_embeddings == limit]
    offset = max((i + 1 for i in places if i is not None), default=0)  # RoBERTa begins there
    return min(int(tokenizer.model_max_length), limit - offset)


def _ids(modules: Sequence[nn.Module]) -> set[int]:
    return {id(p) for m in modules for p in m.parameters()}
