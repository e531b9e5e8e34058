"""``graphml``: notes as nodes and links as edges, for Gephi, networkx and other programs that show or measure graphs.

``terms`` brings the Terms along, with an edge HAS_TERM from each note that weighs how often it uses one, and ``events``
the events, with an edge FROM from each note to those it rests on. Vectors and what is archived stay out. Gephi
takes ``label`` and ``weight`` for its own; the type of an edge is its ``label`` and its ``kind``.

It is written piece by piece, all nodes before all edges, so that of the memory no more than the ids is held;
networkx's own writer would build the whole document first.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from xml.sax.saxutils import escape, quoteattr

from zettel.model import EventRecord, Link, Note
from zettel.pages import pages as pages_of

from .work import PAGE, Work

TERMS, EVENTS = "terms", "events"

LABEL_CHARACTERS = 80
"""Longest label: what stands beside a node in a picture."""

_NODE = {
    "label": "string", "kind": "string", "text": "string", "role": "string", "session": "string",
    "occurred_at": "string", "valid_from": "string", "valid_to": "string", "recorded_at": "string",
    "keywords": "string", "tags": "string", "importance": "double", "confidence": "double",
}  # fmt: skip
_EDGE = {"label": "string", "kind": "string", "weight": "double", "reason": "string", "recorded_at": "string"}

# XML has no characters for these, not even escaped.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


async def pages(work: Work) -> AsyncGenerator[bytes, None]:
    """The document in pieces."""
    await work.expect(notes=2, **({"events": 1} if EVENTS in work.include else {}))
    yield _head().encode()
    known: set[str] = set()
    if EVENTS in work.include:
        async for event, _ in work.store.dump(work.scope):
            known.add(event.event_id)
            work.report.events += 1
            work.told(1)
            yield _event(event).encode()
    terms: set[str] = set()
    async for notes in pages_of(work.store, work.scope, PAGE):
        known.update(note.id for note in notes)
        told = [_note(note) for note in notes]
        if TERMS in work.include:
            used = await work.store.uses(work.scope, [note.id for note in notes])
            new = {use.key: use.text for uses in used.values() for use in uses if use.key not in terms}
            told += [_node(_term_id(key), {"label": text, "kind": "term"}) for key, text in new.items()]
            terms.update(new)
        work.report.notes += len(notes)
        work.told(len(notes))
        yield "".join(told).encode()
    work.report.terms = len(terms)
    async for piece in _edges(work, known, terms):
        yield piece.encode()
    yield b"</graph>\n</graphml>\n"


async def _edges(work: Work, known: set[str], terms: set[str]) -> AsyncIterator[str]:
    """Edges between nodes that were written: what came or went meanwhile has none."""
    async for notes in pages_of(work.store, work.scope, PAGE):
        ids = [note.id for note in notes if note.id in known]
        here = set(ids)
        links = [link for link in await work.store.links(work.scope, ids) if link.source in here]
        told = [_link(link) for link in links if link.target in known]
        if EVENTS in work.include:
            rested_on = ((note.id, event) for note in notes if note.id in here for event in note.event_ids)
            told += [_edge(note, event, {"label": "FROM"}) for note, event in rested_on if event in known]
        if TERMS in work.include:
            for note, uses in (await work.store.uses(work.scope, ids)).items():
                counted = ((use.key, {"label": "HAS_TERM", "weight": use.count}) for use in uses if use.key in terms)
                told += [_edge(note, _term_id(key), values) for key, values in counted]
        work.report.links += len(told)
        work.told(len(notes))
        yield "".join(told)


def _head() -> str:
    keys = [
        f'<key id="{_key(place, name)}" for="{place}" attr.name="{name}" attr.type="{kind}"/>\n'
        for place, values in (("node", _NODE), ("edge", _EDGE))
        for name, kind in values.items()
    ]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
        f'{"".join(keys)}<graph edgedefault="directed">\n'
    )


def _key(place: str, name: str) -> str:
    return f"{place}_{name}"


def _note(note: Note) -> str:
    values: dict[str, object] = {
        "label": note.title or note.caption or note.content,
        "kind": note.kind.value,
        "text": note.content,
        "keywords": ", ".join(note.keywords),
        "tags": ", ".join(note.tags),
        "importance": note.importance,
        "confidence": note.confidence,
        "valid_from": note.valid_from and note.valid_from.isoformat(),
        "valid_to": note.valid_to and note.valid_to.isoformat(),
    }
    return _node(note.id, {**values, **_where_and_when(note)})


def _event(event: EventRecord) -> str:
    values = {"label": event.title or event.content, "kind": "event", "text": event.content}
    return _node(event.event_id, {**values, **_where_and_when(event)})


def _where_and_when(one: Note | EventRecord) -> dict[str, object]:
    at = one.occurred_at and one.occurred_at.isoformat()
    return {"role": one.role, "session": one.session, "occurred_at": at, "recorded_at": one.recorded_at.isoformat()}


def _term_id(key: str) -> str:
    return f"term {key}"


def _node(id: str, values: Mapping[str, object]) -> str:
    label = " ".join(str(values["label"]).split())[:LABEL_CHARACTERS]
    return f"<node id={_quoted(id)}>{''.join(_data('node', {**values, 'label': label}))}</node>\n"


def _link(link: Link) -> str:
    told = {"reason": link.reason, "recorded_at": link.recorded_at.isoformat()}
    return _edge(link.source, link.target, {"label": link.type.value, "weight": link.weight, **told})


def _edge(source: str, target: str, values: Mapping[str, object]) -> str:
    told: dict[str, object] = {"weight": 1.0, **values, "kind": values["label"]}
    return f"<edge source={_quoted(source)} target={_quoted(target)}>{''.join(_data('edge', told))}</edge>\n"


def _data(place: str, values: Mapping[str, object]) -> Iterator[str]:
    for name, value in values.items():
        if value is not None and value != "":
            text = escape(_valid(str(value)), {"\r": "&#13;"})  # a bare one would be read as the end of a line
            yield f'<data key="{_key(place, name)}">{text}</data>'


def _quoted(text: str) -> str:
    return quoteattr(_valid(text))


def _valid(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
