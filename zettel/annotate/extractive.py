"""The annotator without a model: extracts caption, context, keywords and tags from the text, in well under 1 ms."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from zettel.model import TimeRange
from zettel.ports import Annotation, Passage, TermStats
from zettel.text.dates import find_dates
from zettel.text.extraction import sentences, tags_of
from zettel.text.keywords import TextTerms, best_keywords, find_terms

CAPTION_CHARS = 60
"""A caption fits on a node of a drawn graph."""

GIST_CHARS = 160
"""Characters of the text that a context quotes."""

MAX_DATES = 2

MAX_TOPICS = 4


class ExtractiveAnnotator:
    """Note fields from the text, the scope's statistics and a background table of word frequencies."""

    name = "extractive"

    async def annotate(self, passages: Sequence[Passage], stats: TermStats) -> list[Annotation]:
        """Return one ``Annotation`` per passage, in order; never waits, so it can run before a commit."""
        return [annotate(passage, stats) for passage in passages]


def annotate(passage: Passage, stats: TermStats) -> Annotation:
    """Return caption, context, keywords and tags of one passage."""
    text = passage.content
    text_terms = find_terms(text)
    dates = find_dates(text, passage.occurred_at)
    gist = _gist(text, text_terms)
    return Annotation(
        caption=_clip(passage.title or gist or text.strip(), CAPTION_CHARS),
        context=_context(passage, gist, text_terms, dates),
        keywords=best_keywords(text_terms, stats, len(text)),
        tags=tags_of(text, bool(dates)),
    )


def _gist(text: str, text_terms: TextTerms) -> str:
    """Return the sentence with the most names and rare words; the first of equals."""
    parts = sentences(text)
    if len(parts) <= 1:
        return parts[0] if parts else ""
    names = [name.text for name in text_terms.names]
    words = [(word.text, word.rarity) for word in text_terms.words]  # in lower case, all of them

    def score(sentence: str) -> float:
        lowered = sentence.lower()
        named = sum([1.0 for name in names if name in sentence or name in lowered])
        return sum([rarity for word, rarity in words if word in lowered], named)

    return max(parts, key=score)


def _context(passage: Passage, gist: str, text_terms: TextTerms, dates: Sequence[TimeRange]) -> str:
    """Return speaker, date and content as one sentence."""
    when = _day(passage.occurred_at) if passage.occurred_at else None
    head = ", ".join(part for part in (passage.speaker, when) if part)
    quoted = _clip(gist, GIST_CHARS).rstrip(" .")
    if passage.title and not quoted.startswith(passage.title):
        quoted = f"{passage.title}: {quoted}" if quoted else passage.title
    others = [name.text for name in text_terms.names if name.text not in quoted][:MAX_TOPICS]
    named = [date._replace(text=date.text.rstrip(".,;")) for date in dates]
    asides = [f"{date.text} is {_days(date)}" for date in named if not date.text[-4:].isdecimal()][:MAX_DATES]
    asides += [f"also {', '.join(others)}"] if others else []
    body = f"{quoted} ({'; '.join(asides)})" if asides else quoted
    return f"{head}: {body}" if head and body else head or body


def _days(date: TimeRange) -> str:
    first, last = date.start, date.end - timedelta(days=1)
    if last <= first:
        return _day(first)
    same_month = (first.year, first.month) == (last.year, last.month)
    return f"{first.day if same_month else _day(first)} to {_day(last)}"


_MONTHS = ("January February March April May June July August September October November December").split()


def _day(moment: datetime) -> str:
    moment = moment.astimezone(timezone.utc) if moment.tzinfo else moment
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


def _clip(text: str, longest: int) -> str:
    """Return ``text`` on one line of at most ``longest`` characters, cut between words."""
    line = " ".join(text[: 2 * longest + 40].split())
    if len(line) <= longest:
        return line
    cut = line[: longest - 1]
    at = cut.rfind(" ")
    return (cut[:at] if at > longest // 2 else cut).rstrip(" ,;:-") + "\u2026"
