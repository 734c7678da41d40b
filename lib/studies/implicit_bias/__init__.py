"""What the study of Ye et al. (2021) alone needs: a pronoun that should be even.

sentences    the steps of the filter, masking and swapping
text         what a masked language model learns from
kept_models  models that are trained once, and the gate that they must pass
weat         the word embedding association test
"""
