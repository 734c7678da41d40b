"""What the study of Ye et al. (2021) alone needs: a pronoun that should be even.

coreference  whom a pronoun speaks of, by rules
sentences    the steps of the filter, masking and swapping; clusters of another system
text         what a masked language model learns from
arms         what the arms of stage 02 are trained on
trainings    the trainings of stage 02, each a unit
asked        what stage 03 asks, and of whom
answers      what the models answer, each answer a unit
jobs         both as jobs, for several processes or machines
gate         unambiguous sentences, and how surely a model answers them
relabelling  captions judged blind, and what the filter is worth by them
kept_models  models that are trained once, and the gate that they must pass
weat         the word embedding association test
figures      the figures, each with its finding as the title
naming       names in words for figures and tables
"""
