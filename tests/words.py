"""Counts of unclear words per area, which may only fall. ``python -m tests.words`` lowers the committed counts."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMITTED = Path(__file__).with_suffix(".json")

WORDS = (
    "anew", "as far as", "brought back", "brings back", "desk", "for who", "gone", "held", "is no", "kept",
    "no longer", "of use", "put away", "room", "said", "say so", "says", "seam", "stands", "take back", "taken back",
    "tells", "that is none", "told", "whoever",
)  # fmt: skip
"""Prose and identifiers use the field's terms instead: returns, contains, stores, archived, reverted, again, useful."""
OPENERS = ("What", "Who", "Whoever", "Whether")
"""A docstring or a comment begins with a noun or a verb, not with a noun clause."""

AREAS = {
    "zettel": ("zettel", "*.py"),
    "graph": ("graph", "*.py"),
    "cypher": ("cypher", "*.*"),
    "docs": ("docs", "*.md"),
    "README": (".", "README.md"),
    "tests": ("tests", "*.py"),
    "examples": ("examples", "*.py"),
}
_LINKED = {ROOT / "zettel" / "graph", ROOT / "zettel" / "cypher"}
_EXCLUDED = {Path(__file__), Path(__file__).with_name("prose.py")}
"""Both files list the words."""
_PATTERNS = {word: re.compile(rf"(?<![a-z]){word}(?![a-z])", re.IGNORECASE) for word in WORDS}
_OPENERS = {word: re.compile(rf'(?:"""|^ *#+ |^ *// ){word}\b', re.MULTILINE) for word in OPENERS}


def text_of(area: str) -> str:
    """Return the text of all files of an area."""
    folder, pattern = AREAS[area]
    paths = (ROOT / folder).glob(pattern) if folder == "." else (ROOT / folder).rglob(pattern)
    own = sorted(path for path in paths if path.is_file() and not {path, *path.parents} & (_LINKED | _EXCLUDED))
    return "\n".join(path.read_text(encoding="utf-8") for path in own if path.suffix != ".pyc")


def counted(area: str) -> dict[str, int]:
    """Return how often each word occurs in an area; words that do not occur are left out."""
    text = text_of(area)
    counts = Counter({word: len(pattern.findall(text)) for word, pattern in _PATTERNS.items()})
    counts.update({f"{word} …": len(pattern.findall(text)) for word, pattern in _OPENERS.items()})
    return {word: count for word, count in sorted(counts.items()) if count}


def committed() -> dict[str, dict[str, int]]:
    """Return the highest count that each word may have in each area."""
    return {area: dict(counts) for area, counts in json.loads(COMMITTED.read_text(encoding="utf-8")).items()}


def main() -> None:
    """Write the present counts."""
    counts = {area: counted(area) for area in AREAS}
    COMMITTED.write_text(json.dumps(counts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print({area: sum(words.values()) for area, words in counts.items()})


if __name__ == "__main__":
    main()
