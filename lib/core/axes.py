"""The words for tensor axes: `Float[Tensor, "batch token hidden"]` is written with these only.

A test reads the signatures of lib; a new axis gets its word here.
"""

AXES: dict[str, str] = {
    "batch": "rows that go through a model together",
    "token": "positions of a sequence: sub-words, with the special tokens and the padding",
    "hidden": "the components of an embedding or of a hidden state",
    "width": "the components of a layer inside a head",
    "layer": "the layers of a model, the embeddings first",
    "head": "the attention heads of a layer",
    "vocab": "the entries of a vocabulary",
    "class": "the classes that a classifier tells apart",
    "concept": "the concepts that an intervention sets",
    "draw": "resamples, or random splits",
    "explainer": "explainers that are compared",
    "step": "the steps of a path or of a training",
    "seed": "models of one kind with different seeds, trained side by side",
}
