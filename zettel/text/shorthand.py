"""Writes out what people type in a hurry: "whats ur tip" as "what's your tip", so that rules for English apply."""

from __future__ import annotations

import re

_WORDS = {
    "u": "you", "ur": "your", "urs": "yours", "pls": "please", "plz": "please", "ive": "I've", "dont": "don't",
    "doesnt": "doesn't", "didnt": "didn't", "cant": "can't", "isnt": "isn't", "arent": "aren't", "wasnt": "wasn't",
    "wont": "won't", "couldnt": "couldn't", "shouldnt": "shouldn't", "wouldnt": "wouldn't", "havent": "haven't",
    "hasnt": "hasn't", "whats": "what's", "wheres": "where's", "whos": "who's", "hes": "he's", "shes": "she's",
    "theyre": "they're", "weve": "we've", "youve": "you've", "theyve": "they've", "hows": "how's", "whens": "when's",
    "thats": "that's", "theres": "there's", "youre": "you're", "wanna": "want to", "gonna": "going to",
    "gotta": "have to",
}  # fmt: skip
"""Only forms that are no other word, as "its", "were" and "well" are."""
_SHORT = frozenset((*_WORDS, "im"))
_LETTERS = re.compile("[a-z]+")
_WORD = re.compile(rf"(?<![\w'\u2019])(?:{'|'.join(_WORDS)})(?![\w'\u2019])", re.IGNORECASE)
_IM = re.compile(
    r"(?<![\w'\u2019])im(?=\s(?:not|a|an|the|at|with|on|so|now|just|also|still|really|back|(?-i:[a-z]+)ing|veg\w+)\b)",
    re.IGNORECASE,
)
"""English "I'm", by the next word: German "im" is followed by a noun."""


def written_out(text: str) -> str:
    """Return a text with its shorthand written out.

    >>> written_out("whats ur tip for my tires")
    "what's your tip for my tires"
    """
    if _SHORT.isdisjoint(_LETTERS.findall(text.lower())):
        return text
    return _WORD.sub(lambda word: _WORDS.get(word[0].lower(), word[0]), _IM.sub("I'm", text))
