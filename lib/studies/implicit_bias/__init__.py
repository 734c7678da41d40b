"""What the study of Ye et al. (2021) alone needs: a pronoun that should be even.

coreference  whom a pronoun speaks of, by rules
sentences    the steps of the filter, masking and swapping; clusters of another system
text         what a masked language model learns from
kept_models  models that are trained once, and the gate that they must pass
weat         the word embedding association test
"""
