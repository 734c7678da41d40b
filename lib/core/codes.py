"""What readers see in place of codes that several rooms show, in figures, tables and verdicts."""

SCHEMES = {  # what learns
    "ZS": "zero-shot",
    "C": "head only",
    "CEf": "head + embeddings",
    "CE": "head + new embeddings",
    "CEfAf": "everything",
    "OLA-CEA": "one attention layer",
}
DATASETS = {"D_A": "all gendered words", "D_S": "subject only"}  # where the words were changed
METHODS = {"InputXGradient": "Input x Gradient"}  # the others are called as readers call them
SIDES = {"verum": "expected class", "malum": "other class"}  # whose explanations are correlated
