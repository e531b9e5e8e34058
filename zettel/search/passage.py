"""Selects the passage of a note that fits a question best."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from zettel.text.markdown import LineKind, lines_of
from zettel.text.tokens import is_unspaced, token_of

if TYPE_CHECKING:
    from typing import TypeAlias

    from zettel.ports.query import Question

PASSAGE_CHARS = 300
"""Longest passage, in characters, without the header row of a table: two or three sentences."""
WHOLE_CHARS = 400
"""Longest content that is its own passage, in characters."""
PIECE_CHARS = 150
"""Longest piece of a sentence or line that is longer than a passage, in characters."""
COMMON_WEIGHT = 0.1
"""Weight of a token in addition to its rarity, so that common tokens count too."""
TIME_SHARE = 0.2
"""Share of the weight for tokens that only name a time: they rarely occur in the text of the answer."""
STEM_CUT = 4
"""Least characters of a stem of which the last may differ in the text ("happi" from "happy")."""
ROUNDING = 1e-9
"""Differences of sums of weights that are mere rounding."""
CUT = "…"

# The space after a mark, or line ends, as in ``zettel.text.extraction``; also after a mark in quotes or brackets.
_SENTENCE_END = re.compile(
    r"\s(?:(?<=\n)|(?<=[.!?\u2026\u061f]\s)(?<!\b[A-Z]\.\s)(?<!\b[DMS][rst]\.\s)(?<!\bMrs\.\s)"
    r"|(?<=[.!?\u2026][\"')\]*]\s))\s*"
)
_SENTENCE_OR_IDEOGRAPHIC_END = re.compile(rf"{_SENTENCE_END.pattern}|(?<=[\u3002\uff01\uff1f])\s*")
_ITEM = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\S")
_ITEM_SIGNS = frozenset("-*+0123456789")
_CODE_OR_TABLE = re.compile(r"^[ \t]*(?:```|~~~)|^[ \t|:]*-[-|: \t]*$", re.MULTILINE)
"""Occurs in every text with a code block or a table."""
_UNIT_NUMBER = attrgetter("unit")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


_Unit: TypeAlias = tuple[int, int, int]
"""The span of a sentence, list item, table row or line of code, and its group: a passage does not cross groups."""


def select_passage(content: str, question: Question) -> str:
    """Return the sentences or lines of ``content`` that fit ``question`` best, about 300 characters.

    These are consecutive sentences, list items, table rows or lines of code that contain the question's tokens with the
    most weight, and then their neighbours, as many as fit. Table rows follow the header row of their table. Among equal
    passages the first is selected. Content of at most ``WHOLE_CHARS`` characters is returned whole.
    """
    if len(content) <= WHOLE_CHARS:
        return content
    units, headers = _units(content)
    if not units:
        return content.strip()[:PASSAGE_CHARS]
    first, last = _extended(content, units, *_best_run(units, _weights_in(content, units, question)))
    start, _, group = units[first]
    passage = content[start : units[last][1]].rstrip()
    header = headers.get(group)
    return passage if header is None or start <= header[0] else f"{content[slice(*header)]}\n{passage}"


def marked_passage(passage: str, content: str) -> str:
    """Return a passage with an ellipsis where text of ``content`` is missing before or after it."""
    text, whole = passage.strip(), content.strip()
    before = "" if whole.startswith(text.partition("\n")[0]) else CUT
    return f"{before}{text}{'' if whole.endswith(text.rpartition(chr(10))[2]) else CUT}"


def _units(content: str) -> tuple[list[_Unit], dict[int, tuple[int, int]]]:
    """The units of a text, and the span of the header row of each group that is a table."""
    units: list[_Unit] = []
    headers: dict[int, tuple[int, int]] = {}
    if not _CODE_OR_TABLE.search(content):
        _add_sentences(units, content, 0, len(content), 0)
        return units, headers
    for group, (_, lines) in enumerate(groupby(lines_of(content), key=_UNIT_NUMBER)):
        first, *others = lines
        if first.unit < 0:
            _add_sentences(units, content, first.start, (others or [first])[-1].end, group)
            continue
        if first.kind is LineKind.HEADER:
            headers[group] = first.start, first.text_end
        for line in (first, *others):
            if line.kind is not LineKind.FENCE and line.kind is not LineKind.RULE and line.text_end > line.start:
                _add_unit(units, content, line.start, line.text_end, group)
    return units, headers


def _add_sentences(units: list[_Unit], content: str, start: int, end: int, group: int) -> None:
    """Append the sentences of a span of text. A heading or a list item in one line is one unit."""
    start += len(content[start:end]) - len(content[start:end].lstrip())
    line_end = _end_of_item(content, start, end)
    pattern = _SENTENCE_END if content.isascii() else _SENTENCE_OR_IDEOGRAPHIC_END
    for match in pattern.finditer(content, start, end):
        last, following = match.span()
        if last < line_end:
            continue
        if last > start:
            _add_unit(units, content, start, last, group)
        start = following
        if start < end and content[start] in _ITEM_SIGNS:
            line_end = _end_of_item(content, start, end)
    if start < end:
        _add_unit(units, content, start, end, group)


def _end_of_item(content: str, start: int, end: int) -> int:
    """The end of the line that begins here, if it is a list item of one unit; else ``start``."""
    if not _ITEM.match(content, start, end):
        return start
    line_end = content.find("\n", start, end)
    line_end = end if line_end < 0 else line_end
    return line_end if line_end - start <= PASSAGE_CHARS else content.index(content[start:].split()[1], start)


def _add_unit(units: list[_Unit], content: str, start: int, end: int, group: int) -> None:
    if end - start <= PASSAGE_CHARS:
        units.append((start, end, group))
    else:
        units += _pieces(content, start, end, group)


def _pieces(content: str, start: int, end: int, group: int) -> list[_Unit]:
    """Pieces of a long sentence, cut between words if possible."""
    units: list[_Unit] = []
    while end - start > PIECE_CHARS:
        cut = content.rfind(" ", start + 1, start + PIECE_CHARS)
        cut = start + PIECE_CHARS if cut < 0 else cut
        units.append((start, cut, group))
        start = cut + (content[cut] == " ")
    return [*units, (start, end, group)]


def _weights_in(content: str, units: Sequence[_Unit], question: Question) -> dict[int, dict[str, float]]:
    """The weights of the question's tokens in each unit that contains some, by the unit's place."""
    folded = _folded(content)
    starts = [start for start, _, _ in units]
    weights: dict[int, dict[str, float]] = {}
    rarity, is_time = question.rarity.tolist(), question.time_tokens.tolist()
    for token, rare, is_in_time in zip(question.tokens, rarity, is_time, strict=True):
        weight = (COMMON_WEIGHT + rare) * (TIME_SHARE if is_in_time else 1)
        for place in _places(folded, token):
            at = bisect_right(starts, place) - 1
            if at >= 0 and place < units[at][1]:
                weights.setdefault(at, {})[token] = weight
    return weights


def _places(folded: str, token: str) -> list[int]:
    """The places of a token in a folded text.

    It searches for the stem, and then compares the token of each word that contains it. That is several times faster
    than the tokens of all words, and misses only words such as "dying", whose stem has other letters.
    """
    is_whole = is_unspaced(token)
    stem = token[:-1] if len(token) >= STEM_CUT and not is_whole and token.isalpha() else token
    places: list[int] = []
    place = folded.find(stem)
    while place >= 0:
        if is_whole:
            places.append(place)
            place = folded.find(stem, place + 1)
            continue
        start, end = place, place + len(stem)
        while start and (folded[start - 1].isalnum() or folded[start - 1] == "'"):
            start -= 1
        word = _WORD.match(folded, start) or _WORD.match(folded, place)
        end = max(end, word.end() if word else end)
        if stem is token and not token.isalpha():  # a number, or letters with digits
            is_found = word is not None and (token in (word[0], token_of(word[0])) or "." in token)
        else:
            is_found = word is not None and token_of(word[0]) == token
        if is_found:
            places.append(place)
        place = folded.find(stem, end)
    return places


def _folded(text: str) -> str:
    """The text in lower case without accents, with the same places."""
    lowered = text.lower()
    if text.isascii():
        return lowered
    if len(lowered) != len(text):  # a few letters grow when lowered
        lowered = "".join(lower if len(lower := character.lower()) == 1 else character for character in text)
    for character in set(lowered):
        if character > "\x7f" and (base := _base_of(character)) != character:
            lowered = lowered.replace(character, base)
    return lowered


@lru_cache(maxsize=4096)
def _base_of(character: str) -> str:
    """The letter without accents; the character itself if that is not one character."""
    if character in "\u2019\u02bc":
        return "'"
    base = unicodedata.normalize("NFKD", character)[0].casefold() if character.isalpha() else character
    return base if len(base) == 1 else character


def _best_run(units: Sequence[_Unit], weights: dict[int, dict[str, float]]) -> tuple[int, int]:
    """The first and last place of the shortest run that contains most weight and is short enough; the first unit."""
    best, run = 0.0, (0, 0)
    matched = sorted(weights)
    counts: dict[str, int] = {}
    total, left = 0.0, 0
    for right, last in enumerate(matched):
        for token, weight in weights[last].items():
            counts[token] = counts.get(token, 0) + 1
            total += weight if counts[token] == 1 else 0.0
        while left < right:
            first = weights[matched[left]]
            fits = _fits(units, matched[left], last)
            if fits and (total <= best + ROUNDING or any(counts[token] == 1 for token in first)):
                break
            for token, weight in first.items():
                counts[token] -= 1
                total -= 0.0 if counts[token] else weight
            left += 1
        if total > best + ROUNDING:
            best, run = total, (matched[left], last)
    return run


def _extended(content: str, units: Sequence[_Unit], first: int, last: int) -> tuple[int, int]:
    """The run with the units after it and then before it that fit, without a heading at the end."""
    matched = last
    while last + 1 < len(units) and _fits(units, first, last + 1):
        last += 1
    while last > matched and content.startswith("#", units[last][0]):
        last -= 1
    while first and _fits(units, first - 1, last):
        first -= 1
    return first, last


def _fits(units: Sequence[_Unit], first: int, last: int) -> bool:
    start, _, group = units[first]
    _, end, end_group = units[last]
    return group == end_group and end - start <= PASSAGE_CHARS
