"""CEBaB: how well do explainers estimate the effect of a concept on a model (arXiv 2205.14140)?

Texts: `reviews` (reading and checking the corpus), `hub` (the same from the Hugging Face hub),
`worlds` (reviews whose truth is known), `pairs` (edits of one text as pairs). Models: `reviewers`
(classifiers of stars and aspects), `reading` (what is kept of them, and files from elsewhere).
Explainers: `explainer` says what one is, `questions` what it is given, `registry` lists all;
`from_labels` (they need no weights), `directions` (they read embeddings) and `encoders` (they train
an encoder) hold them. Units: `trainings` (stage 2), `asking` (stage 3), `jobs`. Other people's:
`outside` (a model), `heads` (of two layers, or a function), `own_explainer`.
"""
