"""Long sentences and words to avoid in the documentation. ``python -m tests.prose`` lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = [
    path
    for pattern in ("*.md", "docs/**/*.md", "clients/*/*.md", "examples/*.md")
    for path in sorted(ROOT.glob(pattern))
    if not path.name.startswith(("AGENTS", "CLAUDE"))
]
MAX_WORDS = 30
"""A sentence with more words is long."""
MAX_LONG_SHARE = 0.03
"""The largest share of long sentences in all pages together."""

AVOIDED = {
    r"tells|told": "returns, reports, contains, states",
    r"says|said": "states, reports",
    r"holds|held": "contains, caches",
    r"keeps|kept": "stores, leaves",
    r"put away|brought back|brings? back": "archived, restored",
    r"fad(?:ed|es?|ing)": "decayed, decay",
    r"tak(?:es?|en|ing) back|took back": "revert, reverted",
    r"anew": "again",
    r"of use|proved": "useful",
    r"two clocks": "bitemporal: valid time and transaction time",
    r"pools?": "candidates",
    r"desks?": "cached LLM client",
    r"rooms?": "package",
    r"seams?": "port",
    r"faces?": "API",
    r"outlines?": "write-side index",
    r"collectors?": "GC pause",
    r"patience": "retry limit",
    r"tall(?:y|ies)": "counters",
    r"as one line": "as a single error",
    r"for who(?:ever)?|whoever": "for readers",
    r"that is none": "is not a …",
}
"""Patterns of words with a plainer or more exact replacement in the field, and the replacement."""
IN_HEADINGS = {r"no longer": "fixed"}
ALLOWED = (
    "held-out", "held out",  # the term of machine learning
    "Hugging Face",
    "your collector", "the collector that",  # of OpenTelemetry
)  # fmt: skip
"""Phrases in which such a word is the field's own term or a name."""

_FENCE = re.compile(r"^ *(`{3,}).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->|<[^>\n]+>|^::: [^\n]*(?:\n    [^\n]*)*", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)")
_QUOTE = re.compile(r"“[^”]*”|\"[^\"\n]{2,80}\"")
_ITEM = re.compile(r"^ *(?:[-*+]|\d+\.) +", re.MULTILINE)
_END = re.compile(r"(?<=[.!?:])[)\"”]*\s+(?=[A-Z“\"`(\[_]|zettel\b|Code\b)")
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|approx|no)\.", re.IGNORECASE)
_WORD = re.compile(r"\w[\w'’.,/%+-]*")
_HEADING = re.compile(r"^(?:#+ .*|- \*\*[^*\n]+\*\*)", re.MULTILINE)


def _compiled(patterns: Mapping[str, str]) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(rf"(?<![\w-])(?:{key})(?![\w-])", re.IGNORECASE), value) for key, value in patterns.items()]


_AVOIDED, _AVOIDED_IN_HEADINGS = _compiled(AVOIDED), _compiled(IN_HEADINGS)


class Found(NamedTuple):
    """A sentence of a page, and what to change in it."""

    page: str
    sentence: str
    remark: str


def sentences(markdown: str) -> Iterator[str]:
    """Yield the sentences of paragraphs and list items: without code, tables, headings and the targets of links."""
    text = _COMMENT.sub("", _FENCE.sub("\n\n", markdown))
    text = _LINK.sub(r"\1", text)
    text = _CODE.sub("Code", text)
    text = re.sub(r"^ *(?:\|.*|#+ .*)$", "\n", text, flags=re.MULTILINE)
    for block in re.split(r"\n\s*\n", _ITEM.sub("\n\n", text)):
        flat = _ABBREVIATION.sub(r"\1", " ".join(re.sub(r"\*+", "", block).split()))
        yield from (sentence for sentence in _END.split(flat) if _WORD.search(sentence))


def words(sentence: str) -> int:
    """Return the number of words of a sentence; a piece of code is one word."""
    return len(_WORD.findall(sentence))


def long_sentences() -> tuple[list[Found], int]:
    """Return the long sentences of all pages, and the number of all sentences."""
    every = [(page, sentence) for page in PAGES for sentence in sentences(page.read_text(encoding="utf-8"))]
    long = [Found(_name(page), text, f"{words(text)} words") for page, text in every if words(text) > MAX_WORDS]
    return long, len(every)


def avoided_words() -> list[Found]:
    """Return the uses of avoided words, outside of code, quotations and the allowed phrases; tables included."""
    found = []
    for page in PAGES:
        text = _CODE.sub("Code", _COMMENT.sub("", _FENCE.sub("\n\n", page.read_text(encoding="utf-8"))))
        text = _QUOTE.sub("Quotation", _LINK.sub(r"\1", text))
        for phrase in ALLOWED:
            text = text.replace(phrase, "")
        headings = "\n".join(_HEADING.findall(text))
        for patterns, searched in ((_AVOIDED, text), (_AVOIDED_IN_HEADINGS, headings)):
            for pattern, instead in patterns:
                for match in pattern.finditer(searched):
                    around = " ".join(searched[max(0, match.start() - 60) : match.end() + 60].split())
                    found.append(Found(_name(page), around, f"{match[0]}: write {instead}"))
    return found


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def main() -> None:
    """Print everything that is found."""
    long, count = long_sentences()
    for found in [*long, *avoided_words()]:
        print(f"{found.page}: {found.remark}: {found.sentence}")
    print(f"{len(long)} of {count} sentences ({len(long) / count:.1%}) have more than {MAX_WORDS} words")


if __name__ == "__main__":
    main()
