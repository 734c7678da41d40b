"""What the study of Ye et al. (2021) alone needs: a pronoun that should be even.

coreference  whom a pronoun speaks of, by rules; clusters: by another system
sentences    the steps of the filter, masking and swapping
text         what a masked language model learns from
weat         the word embedding association test
"""
