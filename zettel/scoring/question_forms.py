"""Forms of questions that decide which kind of note answers: patterns of a language in a file, each one feature."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path

FORMS = (
    "first_person", "second_person", "asks_assistant", "asks_user", "request", "several", "summary", "past", "present",
    "when", "how_many", "who", "where", "why", "how", "yes_or_no", "question_mark",
)  # fmt: skip
"""Names of the forms. A question may have several. A request is one to which an instruction or preference may apply."""
PATTERNS = Path(__file__).with_suffix(".json")
"""The English patterns by name."""
MOST_CHARACTERS = 1_000
"""Characters of a question whose form counts. A longer text is a pasted document."""


def forms_of(text: str) -> tuple[bool, ...]:
    """Return for each of FORMS whether a question has it."""
    return _forms_of(text[:MOST_CHARACTERS])


@lru_cache(maxsize=256)
def _forms_of(text: str) -> tuple[bool, ...]:
    return tuple(pattern.search(text) is not None for pattern in _patterns())


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], ...]:
    patterns = json.loads(PATTERNS.read_bytes())
    return tuple(re.compile(patterns[name], re.IGNORECASE) for name in FORMS)
