"""Writes out what people type in a hurry: "whats ur tip" as "what's your tip", so that rules for English apply."""

from __future__ import annotations

import re

_WORDS = {
    "u": "you", "ur": "your", "urs": "yours", "pls": "please", "plz": "please", "ive": "I've",
    "dont": "don't", "doesnt": "doesn't", "didnt": "didn't", "cant": "can't", "isnt": "isn't", "arent": "aren't",
    "wasnt": "wasn't", "havent": "haven't", "hasnt": "hasn't", "whats": "what's", "wheres": "where's", "whos": "who's",
    "hows": "how's", "whens": "when's", "thats": "that's", "theres": "there's", "youre": "you're", "wanna": "want to",
    "gonna": "going to", "gotta": "have to",
}  # fmt: skip
"""Only forms that are no other word, as "its", "were" and "well" are, and German "im"."""
_WORD = re.compile(rf"(?<![\w'\u2019])(?:{'|'.join(_WORDS)})(?![\w'\u2019])", re.IGNORECASE)


def written_out(text: str) -> str:
    """Return a text with its shorthand written out.

    >>> written_out("whats ur tip for my tires")
    "what's your tip for my tires"
    """
    return _WORD.sub(lambda word: _WORDS[word[0].lower()], text)
