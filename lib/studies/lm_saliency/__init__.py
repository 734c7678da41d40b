"""What the study of Ding & Koehn (2021) alone needs: agreement lines and the texts behind them.

lines       the table of agreement lines, its files and its baselines
templates   the two synthetic sets
extraction  lines from treebanks and from coreference
grammar     a corpus with known agreement, and held-out lines
recipes     the published text corpora from their sources
text        examples for probes
plans       what a language model is made from
trainings   language models and students, trained or read where they are
probing     probes, their controls and what models answer, the same way
knowledge   what a model knows of number, by construction
explanations  sets explained in models, the same way
items       what of that is handed on: numbers of lines and pairs
jobs        all of these as units that can be made apart
"""
