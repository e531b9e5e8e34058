"""Cached LLM answers and model costs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import date

from zettel.model import ModelUse

_COUNTED = ("calls", "hits", "prompt_tokens", "completion_tokens", "usd")
_SUMS = ", ".join(f"{name} = {name} + excluded.{name}" for name in _COUNTED)
_ADD = f"""INSERT INTO model_use (scope, day, model, {", ".join(_COUNTED)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (scope, day, model) DO UPDATE SET {_SUMS}"""


def put(sql: sqlite3.Connection, scope: int, key: str, text: str, notes: Iterable[int]) -> None:
    """Cache an answer, replacing any with the same key; ``notes`` are numbers."""
    _delete(sql, sql.execute("SELECT number FROM answers WHERE scope = ? AND key = ?", (scope, key)).fetchall())
    number = sql.execute("INSERT INTO answers (scope, key, text) VALUES (?, ?, ?)", (scope, key, text)).lastrowid
    sql.executemany("INSERT INTO answer_notes (note, answer) VALUES (?, ?)", [(note, number) for note in notes])


def erase(sql: sqlite3.Connection, notes: Iterable[int]) -> None:
    """Destroy the answers to prompts that contain text of these notes (numbers)."""
    for note in notes:
        _delete(sql, sql.execute("SELECT answer FROM answer_notes WHERE note = ?", (note,)).fetchall())


def _delete(sql: sqlite3.Connection, numbers: list[tuple[int]]) -> None:
    sql.executemany("DELETE FROM answer_notes WHERE answer = ?", numbers)
    sql.executemany("DELETE FROM answers WHERE number = ?", numbers)


def text_of(sql: sqlite3.Connection, scope: int, key: str) -> str | None:
    """Return the cached answer with this key."""
    row = sql.execute("SELECT text FROM answers WHERE scope = ? AND key = ?", (scope, key)).fetchone()
    return row[0] if row else None


def add_use(sql: sqlite3.Connection, scope: int, use: ModelUse) -> None:
    """Add to the model's costs of the scope on that day."""
    sql.execute(_ADD, (scope, use.day.isoformat(), use.model, *(getattr(use, name) for name in _COUNTED)))


def use_since(sql: sqlite3.Connection, scope: int | None, since: date | None) -> list[ModelUse]:
    """Return model costs of one scope or of all, by day and model."""
    rows = sql.execute(
        f"""SELECT day, model, {", ".join(f"SUM({name})" for name in _COUNTED)} FROM model_use
        WHERE day >= :since AND (:scope IS NULL OR scope = :scope) GROUP BY day, model ORDER BY day, model""",
        {"since": (since or date.min).isoformat(), "scope": scope},
    )
    return [
        ModelUse(day=date.fromisoformat(day), model=model, **dict(zip(_COUNTED, sums, strict=True)))
        for day, model, *sums in rows
    ]
