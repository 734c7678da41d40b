"""What the assay alone needs: one explainer, asked about items of every truth of this repository.

models     small models of its own, where no other study has left any
answers    what models say to altered texts: the truths that are about the model
items      the texts that are explained, and altered ones that no explainer sees
explainers registered explainers, and the floors beside them
truths     the truths, and the one primary score of each
edits      nested pairs of texts, where one is the other with words removed by a person
plants     texts with planted words that decide a label, and a frequent decoy that does not
nouns      what a word does to an answer, by exchanging it for others of its kind
edit_scores the second score of edits: skill after one scale
swapped    deletion by the words of a sentence's other form
own_model  the truths on somebody's own classifier
fresh      code that was handed in, on new items
data_set   all explanations of a run, with card and Croissant
figures, stage_figures  those of stage 05, and those of stages 02 to 04
trainings  the units of stage 2, `asking` those of stage 3, `deleting` those of stage 4
jobs       all of them as jobs, for several processes or machines
synthesis  do the truths rank explainers alike, and is that more than one model's doing?
"""
