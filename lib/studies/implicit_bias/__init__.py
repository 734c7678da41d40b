"""What the study of Ye et al. (2021) alone needs: a pronoun that should be even.

sentences  the steps of the filter, masking and swapping
text       what a masked language model learns from
weat       the word embedding association test
"""
