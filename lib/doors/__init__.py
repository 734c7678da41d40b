"""What outsiders come through: their own models, explainers and explanations.

`wrap(module, tokenizer)` takes somebody's own Hugging Face classifier;
`explain_texts(model, texts, "LIME")` explains it; `word_list(explanations)` is that as plain data.
"""

from .own_model import explain_texts, word_list, wrap

__all__ = ["explain_texts", "word_list", "wrap"]
