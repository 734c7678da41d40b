"""The same answers with less work, while the model stays as it is.

Nobody asks for other tokens' last layer (`first_token_only`) and parameters' gradients
(`parameters_fixed`), nor for the rows of a word table that no text uses (`rows_in_use`). A shortcut
holds for the heads that `transformers` ships; `check_reading` finds out whether it holds for a
given one. Shorter numbers (`in_precision`) are the one shortcut that changes the answers a little;
fused kernels (`compiled`) change the last digits.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..core.errors import TouchstoneError, did_you_mean
from .hf import HFClassifier, eager_attention
from .text_model import Encoded, RunsFromEmbeddings, TextModel, device_of, pad

if TYPE_CHECKING:  # a second of import, which comes with the first model
    from transformers import PreTrainedModel

# The layers that hand each token on by itself, after the attention.
_LIKE_BERT = ("BertSelfOutput", "RobertaSelfOutput", "ElectraSelfOutput")
_tried: WeakKeyDictionary[nn.Module, dict[type, bool]] = WeakKeyDictionary()  # what ignores padding
_PRECISIONS = {"float32": torch.float32, "tf32": torch.float32, "bfloat16": torch.bfloat16}


@contextmanager
def first_token_only(model: TextModel) -> Iterator[bool]:
    """Within, the last layer of a BERT-like classifier goes on with its first token alone.

    Exact, since the classifier reads no other; it saves two thirds of that layer. Yields whether it
    applies: to models that read the first token and whose layers are built as BERT's are (BERT,
    RoBERTa, ELECTRA). Others run as ever.
    """
    reads_first = isinstance(model, HFClassifier) and model.reads_first and model.one_token
    output = _after_attention(model.module) if reads_first else None
    if output is None:
        yield False
        return
    hook = output.register_forward_pre_hook(
        lambda module, inputs: tuple(tensor[:, :1] for tensor in inputs)  # each (batch, 1, hidden)
    )
    try:
        yield True
    finally:
        hook.remove()


@contextmanager
def without_padding(model: TextModel) -> Iterator[None]:
    """Within, an encoder of `transformers` is told that its batches hold no padding.

    It would find out itself that a mask is all ones, at each pass, and a GPU is waited for then.
    Modules of somebody's own, which may need a mask, and a head, which may take a mean, get theirs.
    """
    base = getattr(model.module, "base_model", model.module)
    if base is model.module or not type(base).__module__.startswith("transformers."):
        yield
        return
    hook = base.register_forward_pre_hook(
        lambda module, args, kwargs: (args, kwargs | {"attention_mask": None}), with_kwargs=True
    )
    try:
        yield
    finally:
        hook.remove()


def ignores_padding(model: TextModel) -> bool:
    """Whether a text has the same class scores beside a longer one, tried with two short texts.

    A model may hide padding from its attention and still not from a mean, or its positions may
    begin with the padding; nobody knows that of a head of somebody's own. Tried once a network and
    kind of model, for it lies in how they are built: of 32 sentences it would be a tenth of a pass.
    """
    if not isinstance(model, RunsFromEmbeddings) or model.pads_alike:
        return False
    tried = _tried.setdefault(model.module, {})
    if type(model) not in tried:
        tried[type(model)] = _ignores_padding(model)
    return tried[type(model)]


@torch.no_grad()
def _ignores_padding(model: RunsFromEmbeddings) -> bool:
    try:
        encoded = model.encode([["a"], "this is a good film .".split()])
    except TouchstoneError:  # a model that does not take every text
        return False
    device, pad_id = device_of(model.module), model.tokenizer.pad_token_id
    together, *alone = (
        model.logits(model.embed(ids), mask)
        for ids, mask in (pad(rows, pad_id, device=device) for rows in (encoded, *zip(encoded)))
    )
    eps = [torch.finfo(p.dtype).eps for p in model.module.parameters() if p.is_floating_point()]
    return torch.allclose(torch.cat(alone), together, *(max(1e-4, 4 * max(eps)),) * 2)


@torch.no_grad()
def check_reading(model: HFClassifier) -> None:
    """Hold the module's own class scores of two texts against those that explanations would see.

    Where they differ by the shortcuts (a head that reads more than one token: a mean, a maximum),
    these are switched off.

    Raises:
        TouchstoneError: where they differ without the shortcuts, too: then the module does more to
            its input than it shows.
    """
    encoded = model.encode([["a"], "this is a good film .".split()])
    texts = [torch.tensor([row.ids], device=device_of(model.module)) for row in encoded]
    plain = [
        model.module(input_ids=ids, attention_mask=torch.ones_like(ids)).logits.cpu().double()
        for ids in texts
    ]
    eps = [torch.finfo(p.dtype).eps for p in model.module.parameters() if p.is_floating_point()]
    allowed = max(1e-4, 4 * max(eps))  # in bfloat16, a few of its own last digits
    # The faster way first; the second one is the module's own.
    for model.one_token in (True, False):
        with first_token_only(model):
            gap = max(_gap(model, *pair) for pair in zip(texts, plain, strict=True))
        if gap <= allowed:
            return
    raise TouchstoneError(
        f"{type(model.module).__name__} gives other class scores from its word embeddings than "
        f"from its token ids (by {gap:.1%}), so explanations would be of another function; let its "
        "forward pass use inputs_embeds"
    )


def _gap(
    model: HFClassifier, ids: Int[Tensor, "batch token"], plain: Float[Tensor, "batch class"]
) -> float:
    """By how much the scores from embeddings differ from `plain`, relative to it."""
    gap = (model.logits(model.embed(ids), torch.ones_like(ids)).cpu() - plain).abs().max()
    return (gap / plain.abs().max().clamp(min=1e-6)).item()


@contextmanager
def parameters_fixed(module: nn.Module) -> Iterator[None]:
    """Within, no parameter asks for a gradient.

    Only the embeddings' is wanted, and a sixth of the time is saved.
    """
    learning = [parameter for parameter in module.parameters() if parameter.requires_grad]
    for parameter in learning:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)


def ids_in_use(*encoded: Sequence[Encoded]) -> list[int]:
    """The token ids that occur in sentences, sorted.

    >>> ids_in_use([Encoded([7, 3], [0, 1])], [Encoded([3], [0])])
    [3, 7]
    """
    return sorted({i for rows in encoded for row in rows for i in row.ids})


@contextmanager
def rows_in_use(module: PreTrainedModel, ids: Iterable[int]) -> Iterator[Int[Tensor, "vocab"]]:
    """Within the block the word table has only the rows of `ids`.

    Afterwards they are back in the whole table.

    Yields the map from token id to row (-1: not in use). Exact for Adam without weight decay: a row
    that no sentence uses has gradient 0 at every step, and Adam never moves it.
    """
    table: nn.Embedding = module.get_input_embeddings()
    chosen = torch.tensor(sorted(set(ids)), device=table.weight.device)
    row_of = torch.full((table.num_embeddings,), -1, device=table.weight.device)
    row_of[chosen] = torch.arange(len(chosen), device=chosen.device)
    padding = None if table.padding_idx is None else int(row_of[table.padding_idx])
    rows = table.weight.detach()[chosen].clone()  # (row, hidden)
    small = nn.Embedding.from_pretrained(
        rows, freeze=not table.weight.requires_grad, padding_idx=None if padding == -1 else padding
    )
    module.set_input_embeddings(small)
    try:
        yield row_of
    finally:
        with torch.no_grad():
            # In place, so that the whole table's parameter stays the object that others hold.
            table.weight[chosen] = small.weight
        module.set_input_embeddings(table)


@contextmanager
def in_precision(model: TextModel, precision: str) -> Iterator[TextModel]:
    """Within, the model, or a copy of it, computes in `precision`.

    Embeddings go in and class scores come out in float32. "tf32": matrix products with ten bits
    behind the point, on GPUs that have them; where there is no such product it stays float32.

    bfloat16 is worth it only where the processor has such arithmetic (how much it is worth depends
    on the processor: benchmarks/README.md) and the rows are many, since every new shape costs a
    while at first. On a CPU attention is computed step by step, for the fused kernel's backward
    pass is slow in bfloat16. Raises TouchstoneError for an unknown precision, or a model that is no
    transformer.
    """
    if precision not in _PRECISIONS:
        raise TouchstoneError(
            f"precision is {precision!r}{did_you_mean(precision, _PRECISIONS)}; write float32, "
            "tf32 or bfloat16"
        )
    if precision == "float32":
        yield model
        return
    if precision == "tf32":
        with _tensor_float_32():
            yield model
        return
    from transformers import PreTrainedModel

    if not isinstance(model.module, PreTrainedModel):
        raise TouchstoneError(
            f"{type(model).__name__} is no model of transformers and stays in float32; leave "
            "precision out"
        )
    low: Any = copy.copy(model)  # two of its methods are exchanged below
    low.module = _copied(model.module, _PRECISIONS[precision])
    vars(low.module).pop("forward", None)  # what `compiled` put there belongs to the original

    def logits(
        embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The class scores in float32, from embeddings in float32."""
        return type(model).logits(low, embeddings.to(_PRECISIONS[precision]), mask).float()

    low.embed, low.logits = model.embed, logits
    with ExitStack() as stack:
        if next(model.module.parameters()).device.type == "cpu":
            stack.enter_context(eager_attention(low.module))
        yield low


@contextmanager
def compiled(model: TextModel, backend: str = "inductor") -> Iterator[None]:
    """Within, the network's passes are those that `torch.compile` makes of it.

    The same numbers but for the last digits. It pays where many rows meet a large model: each new
    kind of batch costs seconds to a minute of compiling at first, and what is compiled is forgotten
    with the block. Methods that change how functions run (DeepLift, AttnLRP) see the model as it
    is, and so does one in bfloat16.

    Args:
        model: its module is compiled, and as it was afterwards.
        backend: of `torch.compile`; "inductor" needs a C++ compiler on a CPU, Triton on a GPU.
    """
    plain = model.module.forward
    # Explanations hang hooks on layers and go back through a graph twice; both must be told.
    # Each method's batches are of another kind (gradient or not, one row, many): 8 are few.
    told = torch._dynamo.config.patch(skip_nnmodule_hook_guards=False, recompile_limit=64)
    with told, torch._functorch.config.patch(donated_buffer=False):
        fast = torch.compile(plain, dynamic=True, backend=backend)

        def forward(*args: Any, **kwargs: Any) -> Any:
            has_rules = torch.overrides._get_current_function_mode() is not None
            return (plain if has_rules else fast)(*args, **kwargs)

        model.module.forward = forward
        try:
            yield
        finally:
            del model.module.forward
            torch.compiler.reset()


@contextmanager
def _tensor_float_32() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _after_attention(module: nn.Module) -> nn.Module | None:
    layers = getattr(getattr(module.base_model, "encoder", None), "layer", None)
    output = getattr(getattr(layers[-1], "attention", None), "output", None) if layers else None
    return output if type(output).__name__ in _LIKE_BERT else None


def _copied(module: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    """A copy with its numbers in another type.

    Each is converted as it is copied, so that nothing is copied twice.

    The frequencies of rotary positions stay as they are: rounded, they would turn far tokens to
    wrong places.
    """
    numbers = [
        t
        for name, t in (*module.named_parameters(), *module.named_buffers())
        if t.is_floating_point() and not name.endswith("inv_freq")
    ]
    # By identity, as the memo of deepcopy: tied tensors stay tied.
    converted = {id(t): t.detach().to(dtype) for t in numbers}
    for tensor in numbers:
        if isinstance(tensor, torch.nn.Parameter):
            converted[id(tensor)] = torch.nn.Parameter(converted[id(tensor)], tensor.requires_grad)
    return copy.deepcopy(module, converted)
