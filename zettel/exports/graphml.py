"""Export format ``graphml``: notes as nodes and links as edges, for Gephi, networkx and the like.

``terms`` adds terms, with weighted HAS_TERM edges, and ``events`` adds events, with FROM edges. Vectors and archived
notes are not exported. Gephi reads ``label`` and ``weight``; the type of an edge is its ``label`` and its ``kind``.

The document is streamed, all nodes before all edges, so only ids stay in memory. networkx would build the whole
document first.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from xml.sax.saxutils import escape, quoteattr

from zettel.core.paging import pages as pages_of
from zettel.model import EventRecord, Link, Note

from .task import PAGE, ExportTask

TERMS, EVENTS = "terms", "events"

LABEL_CHARACTERS = 80
"""Characters of a label at most."""

_NODE = {
    "label": "string", "kind": "string", "text": "string", "speaker": "string", "role": "string", "session": "string",
    "occurred_at": "string", "valid_from": "string", "valid_to": "string", "recorded_at": "string",
    "keywords": "string", "tags": "string", "importance": "double", "confidence": "double",
}  # fmt: skip
_EDGE = {"label": "string", "kind": "string", "weight": "double", "reason": "string", "recorded_at": "string"}

# XML cannot represent these characters, not even escaped.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


async def pages(task: ExportTask) -> AsyncGenerator[bytes, None]:
    """Yield the document in pieces."""
    await task.count_total(notes=2, **({"events": 1} if EVENTS in task.include else {}))
    yield _head().encode()
    known: set[str] = set()
    if EVENTS in task.include:
        async for event, _ in task.store.dump(task.scope):
            known.add(event.event_id)
            task.report.events += 1
            task.advance(1)
            yield _event(event).encode()
    terms: set[str] = set()
    async for notes in pages_of(task.store, task.scope, PAGE):
        known.update(note.id for note in notes)
        elements = [_note(note) for note in notes]
        if TERMS in task.include:
            used = await task.store.uses(task.scope, [note.id for note in notes])
            new = {use.key: use.text for uses in used.values() for use in uses if use.key not in terms}
            elements += [_node(_term_id(key), {"label": text, "kind": "term"}) for key, text in new.items()]
            terms.update(new)
        task.report.notes += len(notes)
        task.advance(len(notes))
        yield "".join(elements).encode()
    task.report.terms = len(terms)
    async for piece in _edges(task, known, terms):
        yield piece.encode()
    yield b"</graph>\n</graphml>\n"


async def _edges(task: ExportTask, known: set[str], terms: set[str]) -> AsyncIterator[str]:
    """Yield the edges between written nodes; concurrent changes are ignored."""
    async for notes in pages_of(task.store, task.scope, PAGE):
        ids = [note.id for note in notes if note.id in known]
        here = set(ids)
        links = [link for link in await task.store.links(task.scope, ids) if link.source in here]
        elements = [_link(link) for link in links if link.target in known]
        if EVENTS in task.include:
            origins = ((note.id, event) for note in notes if note.id in here for event in note.event_ids)
            elements += [_edge(note, event, {"label": "FROM"}) for note, event in origins if event in known]
        if TERMS in task.include:
            for note, uses in (await task.store.uses(task.scope, ids)).items():
                counted = ((use.key, {"label": "HAS_TERM", "weight": use.count}) for use in uses if use.key in terms)
                elements += [_edge(note, _term_id(key), values) for key, values in counted]
        task.report.links += len(elements)
        task.advance(len(notes))
        yield "".join(elements)


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


def _where_and_when(item: Note | EventRecord) -> dict[str, object]:
    at = item.occurred_at and item.occurred_at.isoformat()
    return {
        "speaker": item.speaker, "role": item.role, "session": item.session,
        "occurred_at": at, "recorded_at": item.recorded_at.isoformat(),
    }  # fmt: skip


def _term_id(key: str) -> str:
    return f"term {key}"


def _node(id: str, values: Mapping[str, object]) -> str:
    label = " ".join(str(values["label"]).split())[:LABEL_CHARACTERS]
    return f"<node id={_quoted(id)}>{''.join(_data('node', {**values, 'label': label}))}</node>\n"


def _link(link: Link) -> str:
    elements = {"reason": link.reason, "recorded_at": link.recorded_at.isoformat()}
    return _edge(link.source, link.target, {"label": link.type.value, "weight": link.weight, **elements})


def _edge(source: str, target: str, values: Mapping[str, object]) -> str:
    elements: dict[str, object] = {"weight": 1.0, **values, "kind": values["label"]}
    return f"<edge source={_quoted(source)} target={_quoted(target)}>{''.join(_data('edge', elements))}</edge>\n"


def _data(place: str, values: Mapping[str, object]) -> Iterator[str]:
    for name, value in values.items():
        if value is not None and value != "":
            text = escape(_valid(str(value)), {"\r": "&#13;"})  # parsers read an unescaped one as a line end
            yield f'<data key="{_key(place, name)}">{text}</data>'


def _quoted(text: str) -> str:
    return quoteattr(_valid(text))


def _valid(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
