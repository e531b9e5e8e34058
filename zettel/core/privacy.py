"""The treatment of secrets before anything is stored: ``privacy`` is off, report, redact or block.

Every text that enters a memory passes the ``SecretGuard`` of its engine: events (``core.remember``), changes of notes
(``core.edit``), reasons, logged questions, errors of jobs and whole memories. ``zettel.text.secret_shapes`` finds the
secrets: keys, tokens, passwords, card and account numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from zettel.core.arguments import checked, require_keepable
from zettel.errors import SecretRefused
from zettel.model import MAX_NAME, Event, Scope, Source
from zettel.ports.settings import Privacy
from zettel.text.secret_shapes import CARD, MARK, Secret, secrets_in

T = TypeVar("T")

_LONG_NUMBER = 10**12
"""Whole numbers of JSON from here on may be card numbers."""
_log = logging.getLogger("zettel.privacy")


class Screened(NamedTuple):
    """An event or the fields of a note as they may be stored, and the kinds of the secrets that were found."""

    value: Any
    kinds: tuple[str, ...] = ()


class SecretGuard:
    """Applies ``privacy`` to what a memory is about to store. Takes linear time."""

    def __init__(self, privacy: Privacy) -> None:
        self.privacy = privacy

    @property
    def keeps_out(self) -> bool:
        """Return whether no secret may be stored."""
        return self.privacy in ("redact", "block")

    def event(self, event: Event) -> Screened:
        """Return the event to store, the same object if it has no secret or may have one.

        An ``external_id`` with a secret is removed, because a mark identifies nothing. Raises ``SecretRefused``, and
        ``InvalidEvent`` if the marks make a text too long.
        """
        if self.privacy == "off" or not _has_secret(_texts_of_event(event)):
            return Screened(event)
        redaction = _Redaction()
        source = event.source
        changed: dict[str, Any] = {
            name: redaction.optional(name, getattr(event, name)) for name in ("content", "title", "speaker")
        }
        changed |= {name: redaction.value(name, getattr(event, name)) for name in ("payload", "metadata")}
        changed["session"] = redaction.name("session", event.session)
        changed["source"] = source and Source(
            file=redaction.name("source", source.file), position=redaction.name("source", source.position)
        )
        is_clean_id = redaction.name("external_id", event.external_id) == event.external_id
        changed["external_id"] = event.external_id if is_clean_id else None
        kinds = self._decide(redaction, "the event")
        if self.privacy != "redact" or not kinds:
            return Screened(event, kinds)
        return Screened(checked(event.model_copy(update=changed)), kinds)

    def fields(self, fields: Mapping[str, Any]) -> Screened:
        """Return the fields to set on a note. Raises ``SecretRefused``, and ``InvalidInput`` for no JSON."""
        if self.privacy == "off":
            return Screened(fields)
        redaction = _Redaction()
        for name, value in fields.items():
            require_keepable(name, value)
        changed = {name: redaction.value(name, value) for name, value in fields.items()}
        kinds = self._decide(redaction, "the change")
        return Screened(changed if self.privacy == "redact" else fields, kinds)

    def text(self, name: str, text: str) -> str:
        """Return a text to store, such as a reason. Raises ``SecretRefused``."""
        changed: str = self.fields({name: text}).value[name]
        return changed

    def cleaned(self, text: str) -> str:
        """Return a text that zettel stores on its own account, such as a logged question, without its secrets."""
        return redacted(text) if self.keeps_out else text

    def require_clean(self, name: str, value: Any, way_out: str) -> None:
        """Raise ``SecretRefused`` for a JSON value with a secret that cannot be redacted, unless it may be stored."""
        if self.keeps_out:
            require_keepable(name, value)
            redaction = _Redaction()
            redaction.value(name, value)
            if redaction.found:
                raise SecretRefused(f"{redaction.summary(name)}: {way_out}")

    def require_clean_scope(self, scope: Scope) -> None:
        """Raise ``SecretRefused`` for a scope named by a secret: a mark instead would join the scopes of people."""
        names = {name: value for name, value in scope.model_dump().items() if value}
        self.require_clean("the scope", names, "name it otherwise")

    def _decide(self, redaction: _Redaction, what: str) -> tuple[str, ...]:
        if redaction.found and self.privacy == "block":
            raise SecretRefused(
                f"{redaction.summary(what)}, and privacy='block' stores none: take it out, or open the memory with "
                "privacy='redact'"
            )
        return tuple(redaction.found)


def report(guard: SecretGuard, kinds: tuple[str, ...]) -> None:
    """Log a warning that names the kinds of secrets in a write, if there are any."""
    if kinds:
        done = "redacted" if guard.keeps_out else "stored"
        hint = "" if guard.keeps_out else ": privacy='redact' replaces secrets, privacy='block' refuses them"
        _log.warning("%s what looks like a secret (%s)%s", done, ", ".join(kinds), hint)


def redacted(text: str) -> str:
    """Return a text with every secret replaced by a mark with its kind, such as ``[redacted GitHub token]``."""
    return _Redaction().text("", text)


def mark_of(kind: str) -> str:
    """Return the mark that replaces a secret of this kind."""
    return f"[{MARK} {kind}]"


def without(text: str, secrets: list[Secret], mark: Callable[[str, str], str]) -> str:
    """Replace parts of a text; ``mark`` gets kind and text of each."""
    parts, end = [], 0
    for kind, start, stop in secrets:
        parts += [text[end:start], mark(kind, text[start:stop])]
        end = stop
    return "".join((*parts, text[end:]))


def map_keys(value: Mapping[str, T], changed: Callable[[str], str]) -> Iterator[tuple[str, str, T]]:
    """Yield key, changed key and value of each item; equal changed keys are numbered: two keys stay two keys."""
    seen: set[str] = set()
    for key, inner in value.items():
        name = base = changed(key)
        nth = 1
        while name in seen:
            nth += 1
            name = f"{base} {nth}"
        seen.add(name)
        yield key, name, inner


class _Redaction:
    """Redacts values, and collects the kinds of secrets with the fields that contain them."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}

    def summary(self, what: str) -> str:
        kinds = ", ".join(self.found)
        fields = dict.fromkeys(field for fields in self.found.values() for field in fields if field)
        where = f" ({', '.join(fields)})" if fields and what not in fields else ""
        return f"{what} contains what looks like a secret, {kinds}{where}"

    def text(self, field: str, text: str) -> str:
        return self._without(field, text, secrets_in(text))

    def optional(self, field: str, text: str | None) -> str | None:
        return None if text is None else self.text(field, text)

    def name(self, field: str, text: str | None) -> str | None:
        """Redact an id or the name of a session or file. Unbroken digits in them are mostly numbers of a database."""
        if text is None:
            return None
        secrets = [it for it in secrets_in(text) if it.kind != CARD or not text[it.start : it.end].isdecimal()]
        return self._without(field, text, secrets)[:MAX_NAME] if secrets else text

    def value(self, field: str, value: Any) -> Any:
        """Redact a JSON value. The name of a value counts: ``{"password": "…"}``."""
        if isinstance(value, str):
            return self.text(field, value)
        if isinstance(value, (list, tuple)):
            return type(value)(self.value(field, inner) for inner in value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= _LONG_NUMBER:
            return self._changed(field, value, str(value))
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            return value  # nothing that can be stored has other keys
        named = map_keys(value, lambda key: self.text(field, key))
        return {name: self._named(field, key, inner) for key, name, inner in named}

    def _named(self, field: str, key: str, value: Any) -> Any:
        if isinstance(value, str):
            before = len(key) + len(': "')
            secrets = [
                Secret(secret.kind, max(secret.start - before, 0), min(secret.end - before, len(value)))
                for secret in secrets_in(_pair(key, value))
                if secret.end > before and secret.start < before + len(value)
            ]
            return self._without(field, value, secrets)
        if isinstance(value, int) and not isinstance(value, bool):
            return self._changed(field, value, *_number_pairs(key, value))
        return self.value(field, value)

    def _changed(self, field: str, number: int, *texts: str) -> Any:
        """Return the mark of a number that is a secret in one of ``texts``, which end with it, else the number."""
        for text in texts:
            for kind, _, end in secrets_in(text):
                if end == len(text.rstrip('"')):
                    self._count(kind, field)
                    return mark_of(kind)
        return number

    def _without(self, field: str, text: str, secrets: list[Secret]) -> str:
        for secret in secrets:
            self._count(secret.kind, field)
        return without(text, secrets, lambda kind, _: mark_of(kind)) if secrets else text

    def _count(self, kind: str, field: str) -> None:
        fields = self.found.setdefault(kind, [])
        if field not in fields:
            fields.append(field)


def _pair(key: str, value: str) -> str:
    return f'{key}: "{value}"'


def _number_pairs(key: str, number: int) -> tuple[str, str]:
    """Return both texts of a number that are searched: quoted digits may be a password, others may not."""
    return f"{key}: {number}", _pair(key, str(number))


def _has_secret(texts: Iterator[str]) -> bool:
    """Return whether texts together have a secret: one search is faster than many."""
    return bool(secrets_in("\n".join(texts)))


def _texts_of_event(event: Event) -> Iterator[str]:
    source = event.source
    names = (event.title, event.speaker, event.session, event.external_id)
    for text in (event.content, *names, *((source.file, source.position) if source else ())):
        if text is not None:
            yield text
    if event.payload is not None or event.metadata:
        yield from _texts_of(event.payload)
        yield from _texts_of(event.metadata)


def _texts_of(value: Any) -> Iterator[str]:
    """Yield the texts of a JSON value; a text or number in an object with its key."""
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, int) and not isinstance(item, bool):
            yield str(item)
        elif isinstance(item, list):
            todo.extend(item)
        elif isinstance(item, dict):
            for key, inner in item.items():
                if isinstance(inner, str):
                    yield _pair(key, inner)
                elif isinstance(inner, int) and not isinstance(inner, bool):
                    yield from _number_pairs(key, inner)
                else:
                    yield key
                    todo.append(inner)
