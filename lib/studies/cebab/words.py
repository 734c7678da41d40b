"""Tables of this study as readers see them."""

from ...core.notebooks import in_words

__all__ = ["in_words"]
