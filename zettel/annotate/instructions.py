"""What in a text looks like instructions to the model that reads it, and how far a note is to be trusted.

Rules only, for they run on every event before it is stored. They name what they see; what is done about it is up to
whoever reads ``flags`` and ``trust``, or puts a note in quarantine. They know the usual ways to take a language model
over (Greshake et al. 2023, "Not what you've signed up for", has a survey), in English and the override in some other
languages; somebody who knows these rules can write around them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TOLD = 1.0
"""Trust in what people and the agent itself said."""
FETCHED = 0.5
"""Trust in what a tool brought: anybody may have written it."""
FLAGGED = 0.5
"""What is left of either if the text looks like instructions."""
_TOOLS = frozenset({"tool", "function", "tool_result", "function_call_output", "ipython", "web", "browser"})
"""Roles, case-folded, by which chat formats call what tools brought."""

_WORDS = r"(?:[\w'’-]+ ){0,4}?"
_ENDING = r"\w{0,12}"
"""Of a word; bounded, for it is looked for from every beginning on, and a text may be one beginning after the other."""
_RULES = r"(?:instruction|instrucci|instruç|istruzion|instruktion|anweisung|prompt|guideline|directive|system message)"
_FORMER = (
    r"(?:previous|prior|above|earlier|preceding|foregoing|former|all|your|any other|system|the system"
    r"|pr[ée]c[ée]dentes|anteriores|precedenti|vorherigen|bisherigen|les|las|le|alle|todas)"
)
_MODELS = r"(?:the |any |all )?(?:ai|assistant|agent|llm|language model)s?\b"


class _Kind(NamedTuple):
    """What is looked for under one name; one of the ``signs`` stands in all of it, and is sooner looked for."""

    name: str
    signs: tuple[str, ...]
    pattern: re.Pattern[str]


_KINDS = (
    _Kind(  # takes over: "ignore all previous instructions", "forget everything above"
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
    _Kind(  # commands as only somebody does who steers a model
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
    _Kind(  # has it tell what it should keep, or keep what it should tell
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
    _Kind(  # markup by which chats tell who speaks
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
_UNSEEN = re.compile("[\U000e0020-\U000e007f\u202a-\u202e\u2066-\u2069]|[\u200b\u2060\u2062-\u2064]{3}")
"""Characters that models read and people do not see: tags, changes of direction, runs without width."""


def flags_of(*said: str | None) -> tuple[str, ...]:
    """What in the fields of a note, or in one text, looks like instructions to a model: override, command, leak, role,
    tool, hidden; in this order."""
    text = "\n".join(field for field in said if field)
    folded = text.lower()
    found = [
        kind.name for kind in _KINDS if any(map(folded.__contains__, kind.signs)) and kind.pattern.search(folded)
    ]
    if not text.isascii() and _UNSEEN.search(text):
        found.append("hidden")
    return tuple(found)


def trust_of(role: str | None, flags: tuple[str, ...]) -> float:
    """How far a note is to be trusted, 0 .. 1, by who said it and what it looks like."""
    trust = FETCHED if (role or "").casefold() in _TOOLS else TOLD
    return trust * FLAGGED if flags else trust
