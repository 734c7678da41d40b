"""One English sentence: parse, gendered words, names, verbs, whom a pronoun means.

The way of a sentence: `parse` (spaCy, live or stored) gives a document; `dependencies` says what
its labels mean; `lexicon` and `names` find the words that tell a gender, `possessives` tells *him*
from *his*, `subject_reference` finds what speaks of the subject, `verbs` what must agree with
"they"; `annotator` puts these decisions together into a `labels.Label`.
"""
