"""What of a text can be seen: a word of blanks or of signs without width is none."""

import re
import unicodedata

HALF = re.compile(r"[\ud800-\udfff]")  # half a character, which cannot be written or encoded
_UNSEEN = ("Cc", "Cf", "Zs", "Zl", "Zp")  # categories: control, zero width, blanks


def is_visible(text: str) -> bool:
    """Whether a reader sees anything of a text.

    >>> is_visible("she"), is_visible(" " + chr(0x200B)), is_visible("")
    (True, False, False)
    """
    return text.isalnum() or any(unicodedata.category(sign) not in _UNSEEN for sign in text)
