"""What outsiders come through: their own models, explainers and explanations.

`wrap(module, tokenizer)` takes somebody's own Hugging Face classifier;
`explain_texts(model, texts, "LIME")` explains it; `word_list(explanations)` is that as plain data.
`from_words(rows, scores, method)` brings word scores of another program into the one format.
"""

from .own_model import explain_texts, word_list, wrap
from .readers import from_words

__all__ = ["explain_texts", "from_words", "word_list", "wrap"]
