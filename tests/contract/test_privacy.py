"""Redacted and refused secrets on every store: in events, notes, their histories, terms and logged questions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.secret_samples import SAMPLES
from zettel import Memory, Scope
from zettel.core.privacy import mark_of
from zettel.errors import InvalidInput, SecretRefused

KINDS = ("GitHub token", "password", "PIN", "JWT", "card number")


def test_a_redacted_memory_has_no_secret_anywhere(url: Any) -> None:
    texts = [SAMPLES[kind][0] for kind in KINDS]
    with Memory(url, privacy="redact") as memory:
        ids = memory.add_many([{"content": text, "metadata": {"copy": text}} for text in texts])
        memory.update(ids[0], context=texts[0], keywords=[SAMPLES["JWT"][1]])
        memory.link(ids[0], ids[1], reason=texts[1])
        memory.search(texts[2])
        memory.flush()
        everything = [
            *((event, notes) for event, notes in memory.dump()), *map(memory.history, ids), *map(memory.terms, ids),
            *map(memory.links, ids), *memory.searches(),
        ]  # fmt: skip
        assert [kind for kind in KINDS if SAMPLES[kind][1] in repr(everything)] == []
        assert all(mark_of(kind) in repr(everything) for kind in KINDS)
        assert memory.search("Which token?")


def test_a_refused_text_changes_nothing(url: Any) -> None:
    with Memory(url, privacy="block") as memory:
        note = memory.add("The harbour is calm.")
        before = memory.stats()
        for kind in KINDS:
            with pytest.raises(SecretRefused, match=kind):
                memory.add_many([{"content": "A boat."}, {"content": SAMPLES[kind][0]}])
            with pytest.raises(SecretRefused, match=kind):
                memory.update(note, context=SAMPLES[kind][0])
        memory.flush()
        assert memory.stats()["events"] == before["events"]
        assert len(memory.history(note)) == 1


def test_no_retention_makes_a_scope_named_by_a_secret(url: Any) -> None:
    with Memory(url, privacy="block") as memory:
        with pytest.raises(InvalidInput, match="secret"):
            memory.set_retention(timedelta(days=3), scope=Scope(user=SAMPLES["GitHub token"][1]))
        assert SAMPLES["GitHub token"][1] not in repr(list(memory.scopes()))
