"""What outsiders come through: their own models, explainers and explanations.

`wrap(module, tokenizer)` takes somebody's own Hugging Face classifier;
`explain_texts(model, texts, "LIME")` explains it; `word_list(explanations)` is that as plain data.
`from_words(rows, scores, method)` brings word scores of another program into the one format, and
so do `from_captum`, `from_shap`, `from_lime`, `from_inseq` with what these return, `from_tokens`
and `from_components` with scores of tokens.
`explain_continuation(lm, tokenizer, prompt, continuation)` explains what a decoder says;
`write_prompts` and `read_answers` ask a language model for its own account. `score.score_file`
holds a file against a study's truth, which `touchstone score` does from a shell.
"""

from ..attribution.continuation import explain_continuation
from .other_tools import from_captum, from_components, from_inseq, from_lime, from_shap
from .own_model import explain_texts, word_list, wrap
from .readers import from_words
from .self_explanations import read_answers, write_prompts
from .tokens import from_tokens

__all__ = [
    "explain_continuation",
    "explain_texts",
    "from_captum",
    "from_components",
    "from_inseq",
    "from_lime",
    "from_shap",
    "from_tokens",
    "from_words",
    "read_answers",
    "word_list",
    "wrap",
    "write_prompts",
]
