"""Selection of links to the nearest older notes."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from zettel.link.near import CONTEXTUAL, MAX_NEAR_LINKS, STATIC, binding, close, near_cosines, near_links, speakers
from zettel.model import TermUse
from zettel.ports import NearestNotes

NOW = datetime(2024, 1, 1, tzinfo=timezone.utc)


def term(key: str, kind: str = "name") -> TermUse:
    return TermUse(key, key.title(), kind, 1)


def linked(near: list[tuple[str, float]], speaker: str | None = None, **terms: list[TermUse]) -> list[tuple[str, str]]:
    """Return the notes that note "new" is linked to, with the reasons."""
    notes_terms = {"new": [], **{other: [] for other, _ in near}, **terms}
    links = near_links(
        NearestNotes("new", tuple(near)),
        speaker,
        {id: binding(own) for id, own in notes_terms.items()},
        {id: speakers(own) for id, own in notes_terms.items()},
        NOW,
        STATIC,
    )
    return [(link.target, link.reason) for link in links]


@pytest.mark.parametrize(
    ("cosine", "shared", "reason"),
    [
        (0.85, [], "cosine 0.85"),
        (0.84, [], None),
        (0.5, [term("kestrel")], "cosine 0.50, both have Kestrel"),
        (0.49, [term("kestrel")], None),
        (0.6, [term("harbour", "keyword")], None),
        (0.6, [term("harbour", "keyword"), term("ferry", "keyword")], "cosine 0.60, both have Harbour, Ferry"),
        (0.6, [term("sea", "tag"), term("harbour", "keyword")], None),
    ],
)
def test_closeness_or_shared_terms_link_notes(cosine: float, shared: list[TermUse], reason: str | None) -> None:
    links = linked([("old", cosine)], new=shared, old=shared)
    assert links == ([("old", reason)] if reason else [])


def test_speaker_names_are_not_shared_terms() -> None:
    shared = [term("bob")]
    assert linked([("a", 0.7)], new=shared, a=shared)
    assert not linked([("a", 0.7)], new=[*shared], a=[term("bob", "speaker")])
    assert not linked([("a", 0.7), ("b", 0.6)], new=shared, a=shared, b=[term("bob", "speaker")])


def test_roles_are_not_shared_terms() -> None:
    shared = [term("user")]
    assert linked([("a", 0.7)], "Ann", new=shared, a=shared)
    assert not linked([("a", 0.7)], "User", new=shared, a=shared)


def test_only_the_nearest_few_are_linked() -> None:
    near = [(f"n{place}", 0.99 - place / 100) for place in range(9)]
    assert [other for other, _ in linked(near)] == ["n0", "n1", "n2"][:MAX_NEAR_LINKS]


def test_the_cosines_follow_the_embedder() -> None:
    assert near_cosines("all-MiniLM-L6-v2-static-256") == STATIC
    assert near_cosines("all-MiniLM-L6-v2-int8") == CONTEXTUAL
    near = NearestNotes("new", (("a", 0.6), ("b", 0.4), ("c", 0.2)))
    assert [other for other, _ in close(near, STATIC).others] == ["a"]
    assert [other for other, _ in close(near, CONTEXTUAL).others] == ["a", "b"]
