"""The example of a submission's code: a function of a model and of rows with words."""


def by_length(model, rows):
    """The longer a word the more it counts."""
    return [[float(len(word)) for word in row.words] for row in rows]
