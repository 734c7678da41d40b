"""Errors that a reader can act on: one sentence naming file, row and remedy."""


class TouchstoneError(ValueError):
    """Something that was given is not usable; the message says what, where and what to do about it."""
