"""Flags texts that look like instructions to a model, and derives the trust in a note.

Rules run on every event before it is stored, and only set ``flags`` and ``trust``: callers decide what follows. They
cover common prompt injections (survey: Greshake et al. 2023, "Not what you've signed up for") in English, and
overrides in some other languages. An attacker who knows the rules can avoid them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from zettel.model import Note, Role
from zettel.text.markdown import FENCED

CONVERSATION_TRUST = 1.0
"""Trust in texts of people and of the agent itself."""
TOOL_TRUST = 0.5
"""Trust in results of tools: anybody may have written them."""
FLAGGED_FACTOR = 0.5
"""Factor of the trust if the text looks like instructions."""

_WORDS = r"(?:[\w'’-]+ ){0,4}?"
_ENDING = r"\w{0,12}"
"""Of a word; bounded, because a text may consist of word beginnings, and the search starts at each of them."""
_RULES = r"(?:instruction|instrucci|instruç|istruzion|instruktion|anweisung|prompt|guideline|directive|system message)"
_FORMER = (
    r"(?:previous|prior|above|earlier|preceding|foregoing|former|all|your|any other|system|the system"
    r"|pr[ée]c[ée]dentes|anteriores|precedenti|vorherigen|bisherigen|les|las|le|alle|todas)"
)
_MODELS = r"(?:the |any |all )?(?:ai|assistant|agent|llm|language model)s?\b"


class _Kind(NamedTuple):
    """A flag and its pattern; every match contains one of the ``signs``, which are faster to find."""

    name: str
    signs: tuple[str, ...]
    pattern: re.Pattern[str]


_KINDS = (
    _Kind(  # overrides the prompt: "ignore all previous instructions", "forget everything above"
        "override",
        ("ignor", "disregard", "forget", "overrid", "overrul", "bypass", "olvid", "oubli", "vergiss", "dimentic",
         "new instructions", "new system instructions"),
        re.compile(
            rf"(?:ignor|disregard|forget|overrid|overrul|bypass|olvid|oubli|vergiss|dimentic){_ENDING} "
            rf"(?:{_WORDS}{_FORMER} {_WORDS}{_RULES}"
            rf"|{_WORDS}{_RULES}{_ENDING} (?:pr[ée]c[ée]dent|anterior|precedent)"
            r"|(?:everything|anything|all|whatever) (?:above|before this|you (?:were|have been) told))"
            r"|new (?:system )?instructions ?:"
        ),
    ),
    _Kind(  # commands to a model
        "command",
        ("must now", "now on", "you are now", "as an ai", "important ", "note to", "dear ", "when asked", "user asks",
         "when summarizing", "read this"),
        re.compile(
            r"you must now (?!be\b)|from now on,? you (?:will|must|are to|only|always|never|shall) "
            r"|you are now (?:in )?(?:dan\b|jailbroken|unrestricted|an? (?:unrestricted|unfiltered) "
            r"|(?:developer|debug|admin|god) mode)"
            r"|as an ai (?:language model|assistant|agent),? you (?:must|should|will)"
            rf"|important (?:instructions?|message) (?:for|to) {_MODELS}|(?:note to|dear) {_MODELS}"
            r"|when (?:asked|the user asks|summarizing|you read this)[^.\n]{0,60}?,? (?:always |you must |instead )"
            r"(?:reply|respond|answer|say|output)"
        ),
    ),
    _Kind(  # reveals secrets, or hides something from the user
        "leak",
        ("system prompt", "initial instructions", "hidden instructions", "api key", "the user"),
        re.compile(
            r"(?:reveal|print|repeat|output|show|leak|send|tell) (?:me )?(?:your|the) (?:[\w'-]+ )?"
            r"(?:system prompt|(?:initial|hidden) instructions|api keys?\b)"
            r"|(?:do not|don't|never) (?:tell|inform|mention (?:this|it) to|reveal (?:this|it) to|alert|warn) "
            r"the user\b(?! (?:base|group))"
            r"|without (?:telling|informing|asking|alerting) the user"
        ),
    ),
    _Kind(  # markup of roles in chats
        "role",
        ("<|", "<<sys", "inst]", "<system", "</system", "<assistant", "</assistant", "<instruction", "</instruction",
         "##", "system:", "system :", "system prompt", "system message", "system override", "system note",
         "system instruction"),
        re.compile(
            r"<\|[a-z_]{2,30}\|>|<<sys>>|\[/?inst\]|</?(?:system|assistant|instructions?|system_prompt|system-reminder)>"
            r"|## ?(?:system|instructions?|assistant) ?:"
            r"|\bsystem(?: (?:prompt|message|override|note|instructions?))? ?: ?"
            r"(?:you |ignore|disregard|from now|the assistant|new |always |never |do not|override)"
        ),
    ),
    _Kind(  # calls of tools, as models write them
        "tool",
        ("tool_", "function", "<invoke", "</invoke"),
        re.compile(
            r"</?(?:tool_call|function_call|tool_use|function_calls|invoke)\b|<function="
            r"|\"(?:tool_calls|function_call)\" ?:"
        ),
    ),
)  # fmt: skip
_COMMENT = re.compile(
    r"(?:<!--|^\[//\]: ?#)(?:(?!-->|<!--).){0,300}?\b(?:you|your|yourself|assistants?|ai|agents?|llms?|ignore|disregard"
    r"|remember|reply|respond|answer (?:with|that))\b",
    re.DOTALL | re.MULTILINE,
)
"""A comment of HTML or Markdown, outside code, that addresses a reader: a page does not show it."""
_UNSEEN = re.compile("[\U000e0020-\U000e007f\u202a-\u202e\u2066-\u2069]|[\u200b\u2060\u2062-\u2064]{3}")
"""Characters visible to models only: tags, changes of direction, runs without width."""


def flags_of(*texts: str | None) -> tuple[str, ...]:
    """Return the flags of the fields of a note, or of one text: override, command, leak, role, tool, hidden."""
    text = "\n".join(field for field in texts if field)
    folded = text.lower()
    flags = [
        kind.name for kind in _KINDS if any(map(folded.__contains__, kind.signs)) and kind.pattern.search(folded)
    ]
    has_comment = ("<!--" in folded or "[//]:" in folded) and _COMMENT.search(FENCED.sub("", folded))
    if has_comment or (not text.isascii() and _UNSEEN.search(text)):
        flags.append("hidden")
    return tuple(flags)


def trust_of(role: Role | None, flags: tuple[str, ...], ceiling: float = 1.0) -> float:
    """Return the trust in a note, 0 .. 1, from its role, its flags and the highest trust in its writer."""
    return lowered(min(TOOL_TRUST if role == "tool" else CONVERSATION_TRUST, ceiling), flags)


def lowered(trust: float, flags: tuple[str, ...]) -> float:
    """Return the trust in a text that would have this trust without its flags."""
    return trust * FLAGGED_FACTOR if flags else trust


def authored_flags(note: Note) -> tuple[str, ...]:
    """Return the flags of a note, including those of the context, keywords and tags that a model or person wrote."""
    written = [getattr(note, name) for name in note.authored]
    texts = [text for value in written for text in (value if isinstance(value, tuple) else (value,))]
    return flags_of(note.speaker, note.title, note.content, *texts)
