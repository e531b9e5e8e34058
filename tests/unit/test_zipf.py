"""The synthetic scope of any size: reproducible, streamed, with Zipf-distributed words."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from statistics import mean

import pytest

from zettel.bench.zipf import SESSION, VOCABULARY, ZipfScope
from zettel.text.tokens import token_of


@pytest.fixture(scope="module")
def scope() -> ZipfScope:
    return ZipfScope(2_000)


def test_the_scope_is_reproducible(scope: ZipfScope) -> None:
    second = ZipfScope(2_000)
    assert second.session(9) == scope.session(9)
    assert second.questions(20) == scope.questions(20)
    assert ZipfScope(2_000, seed=12).session(9) != scope.session(9)
    first = next(iter(scope))
    assert first.content == (
        "Drummer on of a first shouldn thing Addressed by there be loadedleans frenzyunpaid more home?"
    )


def test_any_session_can_be_generated_alone(scope: ZipfScope) -> None:
    assert scope.session(7) == list(islice(scope, 7 * SESSION, 8 * SESSION))


@pytest.mark.parametrize("notes", [1, SESSION, SESSION + 1])
def test_the_number_of_messages_is_as_requested(notes: int) -> None:
    events = list(ZipfScope(notes))
    assert [event.external_id for event in events] == [str(n) for n in range(notes)]
    assert len({event.session for event in events}) == -(-notes // SESSION)


def test_messages_have_a_hundred_characters_and_years_of_dates(scope: ZipfScope) -> None:
    events = list(scope)
    assert 97 < mean(len(event.content) for event in events) < 103
    dates = [event.occurred_at for event in events if event.occurred_at is not None]
    assert len(dates) == len(events)
    assert dates == sorted(dates)
    assert (dates[-1] - dates[0]).days > 5 * 365


def test_words_follow_zipfs_law(scope: ZipfScope) -> None:
    words = Counter(word for event in scope for word in event.content[:-1].lower().split())
    shares = [count / words.total() for _, count in words.most_common()]
    assert len(words) < VOCABULARY
    assert 0.02 < shares[0] < 0.06
    for rank in (10, 100, 1_000):
        assert 0.04 < shares[rank - 1] * rank < 0.3, "share times rank stays about the same"
    functional = sum(count for word, count in words.items() if not token_of(word)) / words.total()
    assert 0.3 < functional < 0.5


def test_questions_mix_words_of_their_message_with_common_words(scope: ZipfScope) -> None:
    messages = {str(event.external_id): event.content.lower().strip(".?").split() for event in scope}
    for text, source in scope.questions(50):
        question_words = text[:-1].lower().split()
        assert text.endswith("?")
        assert 5 <= len(question_words) <= 8
        of_message = [word for word in question_words if token_of(word) and word in messages[source]]
        assert len(of_message) >= 3
        assert any(not token_of(word) for word in question_words) or len(question_words) < 8
