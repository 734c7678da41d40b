"""What the study of Ding & Koehn (2021) alone needs: agreement lines and the texts behind them.

lines       the table of agreement lines, its files and its baselines
templates   the two synthetic sets
extraction  lines from treebanks and from coreference
grammar     a corpus with known agreement, and held-out lines
recipes     the published text corpora from their sources
text        examples for probes
trainings   language models and students, trained or read where they are
probing     probes and their controls, the same way
explanations  sets explained in models, the same way
jobs        all of these as units that can be made apart
"""
