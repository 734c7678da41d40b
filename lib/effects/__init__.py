"""Effects of concepts on a model's predictions: the pairs, the explainers that estimate the effects, and their errors."""
