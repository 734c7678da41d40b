"""CEBaB: how well do explainers estimate the effect of a concept on a model (arXiv 2205.14140)?

Texts: `reviews` (reading and checking the corpus), `hub` (the same from the Hugging Face hub),
`worlds` (reviews whose truth is known), `pairs` (edits of one text as pairs). Models: `reviewers`
(classifiers of stars and aspects), `head` (a model's last layer), `outside` (models from
elsewhere). Explainers: `explainer` says what one is, `questions` what it is given, `registry` lists
all; `floors`, `from_labels`, `directions`, `erasers`, `causalm` and `proxy` hold them.
"""
