"""Tags and texts of HTML in one pass, in time that grows with the length of any input.

Python's ``HTMLParser`` reads ``<a b=c <a b=c …`` and unclosed comments again at every ``<``, in quadratic time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import NamedTuple, TypeAlias


class StartTag(NamedTuple):
    """``<name …>`` with its attributes, in lower case."""

    name: str
    attributes: dict[str, str]


class EndTag(NamedTuple):
    """``</name>``, in lower case."""

    name: str


Token: TypeAlias = StartTag | EndTag | str

_TAG = re.compile(r"</?([A-Za-z][^\s/<>]*)")
_ATTRIBUTE = re.compile(r"[\s/]*([^\s/>][^\s/>=]*)(\s*=\s*)?")
_BARE_VALUE = re.compile(r"[^\s>]*")
_RAW = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in ("script", "style")}
"""Elements whose content contains no tags, and their ends."""
_TOO_LARGE = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")
"""References to characters that do not exist; Python would convert the number, however long it is."""


def html_tokens(html: str) -> Iterator[Token]:
    """Yield the tags and texts of HTML in order, without comments and declarations. A tag without an end is text.

    Example: ``<p>a &amp; b`` yields ``StartTag("p", {})`` and ``"a & b"``.
    """
    last = {sign: html.rfind(sign) for sign in ">\"'"}
    at = 0
    while (start := html.find("<", at)) >= 0:
        if start > at:
            yield unescaped(html[at:start])
        at = start
        if html.startswith("<!--", start):
            end = html.find("-->", start + 2)
            at = len(html) if end < 0 else end + 3
        elif last[">"] < start:
            break
        elif match := _TAG.match(html, start):
            token, at = _tag(html, match, last)
            yield token
            if isinstance(token, StartTag) and html.startswith("/>", at - 2):
                yield EndTag(token.name)
            elif isinstance(token, StartTag) and (end_tag := _RAW.get(token.name)):
                closing = end_tag.search(html, at)
                at = len(html) if closing is None else closing.start()
        elif html.startswith(("<!", "<?", "</"), start):
            at = html.find(">", start) + 1
        else:
            yield "<"
            at += 1
    if at < len(html):
        yield unescaped(html[at:])


def unescaped(text: str) -> str:
    """Return a text with its character references replaced: ``&amp;`` by ``&``."""
    return unescape(_TOO_LARGE.sub("\ufffd", text)) if "&" in text else text


def _tag(html: str, match: re.Match[str], last: Mapping[str, int]) -> tuple[StartTag | EndTag, int]:
    """Return the tag at a match of ``_TAG``, and its end; ``last`` contains the last place of each quote."""
    name, at = match[1].lower(), match.end()
    if html[match.start() + 1] == "/":
        return EndTag(name), html.find(">", at) + 1
    attributes: dict[str, str] = {}
    while found := _ATTRIBUTE.match(html, at):
        at, value = found.end(), ""
        if found[2]:
            quote = html[at : at + 1]
            if last.get(quote, -1) > at and quote != ">":
                end = html.find(quote, at + 1)
                value, at = html[at + 1 : end], end + 1
            else:
                bare = _BARE_VALUE.match(html, at)
                assert bare is not None
                value, at = bare[0], bare.end()
        attributes.setdefault(found[1].lower(), unescaped(value))
    end = html.find(">", at)
    return StartTag(name, attributes), len(html) if end < 0 else end + 1
