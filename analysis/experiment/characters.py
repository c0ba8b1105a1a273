"""Characters that no name and no text should have, because a terminal would do something instead of showing them."""

import unicodedata

from quorisk.kernels.errors import ConfigError

_TURNING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
"""Bidirectional classes that reorder the characters after them: a name, or a number beside it, would read wrong."""


def is_control(character: str) -> bool:
    """Whether a character controls terminals or reorders text, or is a byte of a file name that is not UTF-8."""
    if character in "\n\t":
        return False
    return unicodedata.category(character) in ("Cc", "Cs") or unicodedata.bidirectional(character) in _TURNING


def one_line(text: str) -> str:
    """Returns a text on one line, with escapes in the place of characters that a terminal would act upon."""
    return "".join(ascii(each)[1:-1] if is_control(each) else each for each in " ".join(text.split()))


def check_words(name: str, words: str) -> str:
    """Returns a text for people unchanged. Raises ConfigError, which calls it `name`, if it has control characters."""
    if found := next(filter(is_control, words), None):
        raise ConfigError(f"{name}: has a control character, {ascii(found)[1:-1]}; remove it")
    return words
