"""Small objects of shap and inseq, as these libraries made them, for tests that need neither.

In an environment with both: `python tests/doors/store_objects.py` writes `shap.json` and
`inseq.json` beside this file, with the versions.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
import transformers as tf

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent / "models_for_tests")]

from causal_families import decoder  # noqa: E402
from small_models import tiny_tokenizer  # noqa: E402

from lib.core.files import save_json  # noqa: E402

TEXTS = ["he sings the old song .", "they sing ."]


def store_shap() -> None:
    """Partition values of two texts, with the tokenizer's pieces and with words as features."""
    import shap

    tokenizer = tiny_tokenizer()
    torch.manual_seed(0)
    small = {"hidden_size": 12, "num_attention_heads": 2, "intermediate_size": 8}
    config = tf.BertConfig(vocab_size=16, num_hidden_layers=1, num_labels=3, **small)
    model = tf.BertForSequenceClassification(config).eval()

    def answers(texts: list[str]) -> torch.Tensor:
        encoded = tokenizer([str(text) for text in texts], return_tensors="pt", padding=True)
        encoded.pop("token_type_ids", None)
        with torch.no_grad():
            return model(**encoded).logits.softmax(-1).numpy()

    stored = {"version": version("shap")}
    for name, splitter in (("pieces", tokenizer), ("words", r"\s+")):
        masker = shap.maskers.Text(splitter)
        found = shap.Explainer(answers, masker, output_names=["F", "M", "NB"])(TEXTS)
        stored[name] = {
            "data": [list(map(str, pieces)) for pieces in found.data],
            "values": [values.round(6).tolist() for values in found.values],
            "output_names": list(map(str, found.output_names)),
        }
    save_json(stored, HERE / "shap.json")


def store_inseq() -> None:
    """Input x gradient of two prompts of a tiny GPT-2, aggregated and not."""
    import inseq

    model, tokenizer = decoder("GPT-2")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    wrapped = inseq.load_model(model, "input_x_gradient", tokenizer=tokenizer)
    prompts = ["she sings the old", "they sing the"]
    whole = [f"{prompts[0]} song", f"{prompts[1]} song"]
    found = wrapped.attribute(prompts, whole, show_progress=False)
    stored = {"version": version("inseq"), "attribution_method": found.info["attribution_method"]}
    for name, output in (("vectors", found), ("numbers", found.aggregate())):
        stored[name] = [
            {
                "target": [token.token for token in one.target],
                "target_attributions": [
                    # JSON has no NaN, which is what inseq writes for tokens to come
                    [None if np.isnan(row).any() else row.round(5).tolist() for row in token]
                    for token in one.target_attributions.float().numpy()
                ],
                "attr_pos_start": one.attr_pos_start,
                "attr_pos_end": one.attr_pos_end,
            }
            for one in output.sequence_attributions
        ]
    save_json(stored, HERE / "inseq.json")


if __name__ == "__main__":
    store_inseq()
    store_shap()
