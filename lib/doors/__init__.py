"""What outsiders come through: their own models, explainers and explanations.

`wrap(module, tokenizer)` takes somebody's own Hugging Face classifier; `explain_texts(model, texts, "LIME")` explains it.
"""

from lib.doors.own_model import explain_texts, word_list, wrap

__all__ = ["explain_texts", "word_list", "wrap"]
