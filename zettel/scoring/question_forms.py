"""Forms of questions that decide which kind of note answers: English patterns, each a feature of the question."""

from __future__ import annotations

import re

MOST_CHARACTERS = 1_000
"""Characters of a question whose form counts. A longer text is a pasted document."""

_GAVE = (
    r"said|say|gave|give|suggest\w*|recommend\w*|told|tell|propos\w*|wrote|write|mention\w*|list\w*|explain\w*|advis\w*"
    r"|came up|made|provid\w*|show\w*|drafted|described|calculated|estimated|work(?:ed)? out|pick\w*"
)
"""What an assistant did with something that it produced."""
_GIVEN = (
    r"suggest\w*|recommend\w*|advice|list|answer|version|draft|table|plan|formula|explanation|example|tip|steps?"
    r"|estimate|recipe|code|script|template|outline|proposal|wording|warning|rule|pick|mixture|model|function"
)
"""What an assistant produced."""

FORMS = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "first_person": r"\b(?:i|me|my|mine|we|our|us|i'm|i've|i'd)\b",
        "second_person": r"\b(?:you|your|yours|assistant)\b",
        "assistant_said": rf"\b(?:(?:did|had|have|do) you|you (?:{_GAVE})|your (?:\w+ ){{0,3}}?(?:{_GIVEN})"
        r"|(?:was|were|been) (?:suggested|recommended)|the assistant)\b",
        "user_said": r"\b(?:(?:did|have|had) i|i (?:said|say|mention\w*|told|asked|ask|want\w*|decided|plan\w*|bought"
        r"|had|was|am|use|like|prefer)|my|am i|do i|was i|mine)\b",
        "request": r"^\W*(?:can|could|would|will|please|help|suggest|give|write|draft|recommend|show|make|create|plan"
        r"|design|explain|tell|list|how (?:do|can|should|would) i|what should|what would|what's a|what are some|any)\b",
        "several": r"\b(?:all|both|each|kinds?|types?|ways|things|list|everything|every|summar\w*|overview|order"
        r"|sequence|walk me|progress\w*|history|evol\w*|across|throughout|over time|how many|(?:what|which) \w+s)\b",
        "summary": r"\b(?:summar\w*|overview|recap|progress\w*|how .* (?:went|evolved|developed|changed)|comprehensive"
        r"|walk me through|story|timeline|from .* to )\b",
        "past": r"\b(?:before|original\w*|initial\w*|first|previous\w*|used to|at first|earlier|old|former\w*|back then"
        r"|was|were|had)\b",
        "present": r"\b(?:now|current\w*|latest|these days|still|today|at the moment|new|recent\w*|is|are|final\w*"
        r"|eventually|in the end)\b",
        "when": r"\b(?:when|what (?:day|date|month|year|time)|which (?:day|date|month|year))\b",
        "how_many": r"\bhow (?:many|much|long|often|old|far|big|tall)\b",
        "who": r"\bwho(?:m|se)?\b",
        "where": r"\bwhere\b",
        "why": r"\bwhy\b|\breasons?\b",
        "how": r"^how\b(?! (?:many|much|long|often|old|far|big|tall))",
        "yes_or_no": r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|would|will|should)\b",
        "question_mark": r"\?\s*$",
    }.items()
}
"""A question may have several forms. A "request" asks for something new, to which a preference may apply."""
