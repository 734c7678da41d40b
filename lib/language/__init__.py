"""One English sentence: parsing, gendered words, names, verbs, who is meant."""
