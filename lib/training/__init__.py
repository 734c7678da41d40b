"""One training loop, and what is trained with it: classifiers, language models, probes.

`loop` descends; `classifier`, `language_model`, `masked_lm` and `probe` say what on. `side_by_side`
trains several seeds of a small model at once, `transfer` a classifier by its transfer scheme.
"""
