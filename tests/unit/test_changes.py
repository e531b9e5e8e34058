"""Rules that decide which English statements supersede which."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.evolve.claims import are_comparable, claims, concern_same_matter, may_change_facts
from zettel.evolve.fact_changes import FactChange, change_links, change_of, in_time
from zettel.model import Kind, LinkType, Note

START = datetime(2024, 1, 1, tzinfo=timezone.utc)


def _note(seq: int, content: str, *, speaker: str | None = "Ann", day: int | None = None, **fields: object) -> Note:
    when = None if day is None else START + timedelta(days=day)
    defaults: dict[str, object] = {
        "id": f"n_{seq}", "event_ids": (f"e_{seq}",), "seq": seq, "recorded_at": START, "content": content,
        "speaker": speaker, "occurred_at": when, "valid_from": when,
    }  # fmt: skip
    return Note.model_validate(defaults | fields)


def _change(before: str, after: str, *, dated: bool = True, speaker: str = "Ann") -> FactChange | None:
    days = (0, 100) if dated else (None, None)
    old, new = _note(1, before, day=days[0]), _note(2, after, speaker=speaker, day=days[1])
    return change_of(old, new, dated) if are_comparable(new, old) else None


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(before, after) for before, _, after in (line.partition(" => ") for line in text.strip().splitlines())]


REPLACED = _pairs("""
I live in Bergen, above a bakery. => I've moved to Oslo, into a flat.
Ann lives in Bergen. => Ann lives in Oslo now.
I live in Bergen. => I no longer live in Bergen, we have a house in Oslo.
I work at Northwind. => I quit Northwind and work for Contoso now.
My phone number is 555-0142-778. => My new phone number is 555-0199-332.
My dentist appointment is on Tuesday. => They moved my dentist appointment to Friday.
The launch is on 14 May. => The launch has been postponed to 2 June.
My favourite tea is Earl Grey. => My favourite tea is rooibos now.
Ben is in charge of the billing service. => Tom is responsible for the billing service now.
My boss is Helen. => My new boss is Ivan.
A day pass is 8 euros. => A day pass is 10 euros now.
The request timeout is 30 seconds. => The request timeout is 60 seconds.
I take notes on paper. => I no longer take notes on paper, I take notes on a tablet.
The ferry ticket costs 20 euros for adults. => For adults the ferry ticket is 25 euros.
A small coffee is 3 euros. => A small coffee is 4 euros.
The upload timeout is 30 seconds. => The timeout for uploads is 60 seconds.
My seat to Oslo is number 12. => My seat to Oslo is number 14.
My piano teacher is Eva Lund. => My lovely piano teacher Karl Moe came with cake.
My sister Eva lives in Oslo. => My sister Eva moved to Bergen.
My dentist Eva Lund is nice. => My dentist Karl Moe is nice.
I work at Nordlys on weekdays. => I work at Kafe Moen on weekdays.
""")
UNCHANGED = _pairs("""
I live in Bergen. => Did you move to Oslo?
I live in Bergen. => If I moved to Oslo, I'd miss the rain.
I live in Bergen. => I might move to a flat in Oslo next year.
I live in Bergen. => I almost took a flat in Oslo.
I live in Bergen. => My sister lives in Oslo.
I live in Bergen. => When I lived in Oslo, I had a cat.
I live in Oslo. => I used to live in Bergen.
I live in Bergen. => They offered me a flat in Oslo, but I turned it down.
I live in Bergen. => Everyone thinks I moved to Oslo.
The launch is on 14 May. => We considered moving the launch to 2 June.
My favourite colour is blue. => My daughter's favourite colour is green.
My phone number is 555-0142-778. => Ben's phone number is 555-0199-332.
My dentist appointment is on Tuesday. => My doctor appointment is on Friday.
The rent is 900 euros. => The new phone costs 950 euros.
Ann painted the barn and used 2 brushes. => Ben painted the boat and used 3 brushes.
I found 20 euros in my coat. => I found 50 euros in my coat.
Ben is in charge of catering. => Ben is in charge of the music now.
Ida painted the mill number 2 red. => Ida painted the mill number 3 red.
We met at 10 in the cafe. => We met at 11 in the cafe.
The ferry ticket costs 20 euros for adults. => The ferry ticket costs 10 euros for children.
A single room costs 90 euros. => A double room costs 140 euros.
A small coffee costs 3 euros. => A large coffee costs 5 euros.
The pool is 8 euros on weekdays. => The pool is 12 euros on weekends.
The deposit for the flat is 2000 euros. => The rent for the flat is 900 euros.
My flight to Oslo is on 3 May. => My flight to Rome is on 9 May.
The port of the staging server is 8080. => The port of the production server is 9090.
My seat to Oslo is number 12. => My seat back is number 14.
The room number on floor 2 is 214. => The room number on floor 3 is 317.
My tennis coach is Eva Lund. => My swimming coach is Karl Moe.
My tutor for maths is Eva Lund. => My tutor for physics is Karl Moe.
My sister Eva lives in Oslo. => My sister Marit lives in Bergen.
I live in Bergen. => My sister Eva lives in Oslo.
My favourite tea is Earl Grey. => My sister Eva's favourite tea is rooibos.
Ann takes care of the garden. => Ben takes care of the garden too.
Ann lives in Bergen. => Ann also lives in Oslo.
I work at Nordlys. => I work at Kafe Moen as well.
Ann works at Nordlys on weekdays. => Ann works at Kafe Moen on Saturdays.
""")
IN_DOUBT = _pairs("""
My teacher is Eva Lund. => My piano teacher is Karl Moe.
My doctor is Eva Lund. => My doctor for the knee is Karl Moe.
The ticket costs 20 euros. => The ticket costs 10 euros for children.
Ann works at Nordlys. => Ann works at Kafe Moen on Saturdays.
""")


@pytest.mark.parametrize(("before", "after"), REPLACED)
def test_a_change_supersedes_the_old_statement(before: str, after: str) -> None:
    change = _change(before, after)
    assert change is not None
    assert change.type is LinkType.SUPERSEDES
    assert change.reason.startswith("says that ")


@pytest.mark.parametrize(("before", "after"), UNCHANGED)
def test_a_statement_without_change_supersedes_nothing(before: str, after: str) -> None:
    assert _change(before, after) is None


@pytest.mark.parametrize(("before", "after"), IN_DOUBT)
def test_statements_about_possibly_different_things_only_contradict(before: str, after: str) -> None:
    change = _change(before, after)
    assert change is not None
    assert change.type is LinkType.CONTRADICTS


@pytest.mark.parametrize(
    ("after", "fields", "type"),
    [
        ("The rent is 900 euros.", {}, LinkType.CONTRADICTS),
        ("The rent is 900 euros now.", {}, LinkType.SUPERSEDES),
        ("Sorry, I was wrong. The rent is 900 euros.", {}, LinkType.SUPERSEDES),
        ("The rent is 900 euros.", {"session": "later"}, LinkType.SUPERSEDES),
    ],
)
def test_in_one_session_only_explicit_changes_supersede(after: str, fields: dict[str, object], type: LinkType) -> None:
    soon = START + timedelta(minutes=5)
    change = change_of(_note(1, "The rent is 800 euros.", day=0), _note(2, after, valid_from=soon, **fields), True)
    assert change is not None
    assert change.type is type


def test_the_reason_contains_the_old_and_the_new_value() -> None:
    change = _change("I live in Bergen.", "I live in Oslo.")
    assert change == (LinkType.SUPERSEDES, "says that Ann's home changed: Bergen \u2192 Oslo")


def test_without_dates_only_an_explicit_change_supersedes() -> None:
    undecided = _change("Ann lives in Bergen.", "Ann lives in Oslo.", dated=False)
    assert undecided == (LinkType.CONTRADICTS, "says otherwise of Ann's home: Bergen / Oslo")
    link = _change("Ann lives in Bergen.", "Ann lives in Oslo now.", dated=False)
    assert link is not None
    assert link.type is LinkType.SUPERSEDES


def test_the_subject_may_be_the_speaker_or_a_third_person() -> None:
    assert _change("I live in Bergen.", "Ann lives in Oslo now.", speaker="Ben")
    assert not _change("I live in Bergen.", "I live in Oslo now.", speaker="Ben")


def test_insights_facts_and_archived_notes_supersede_nothing() -> None:
    old, new = _note(1, "I live in Bergen.", day=0), _note(2, "I live in Oslo.", day=9)
    assert may_change_facts(new)
    assert change_of(old, new, True)
    for fields in ({"kind": Kind.INSIGHT}, {"kind": Kind.SEMANTIC}, {"archived": True}):
        other = new.model_copy(update=fields)
        assert not may_change_facts(other)
        assert claims(other) == ()
    assert not change_of(old, new.model_copy(update={"event_ids": old.event_ids}), True)


def test_late_arrivals_are_superseded_by_the_next_statement_in_time() -> None:
    late = _note(9, "I live in Turku.", day=30)
    towns = (("Bergen", 0), ("Oslo", 90), ("Graz", 60))
    others = [_note(seq, f"I live in {town}.", day=day) for seq, (town, day) in enumerate(towns, 1)]
    links = {(link.source, link.target) for link in change_links(late, others, START)}
    assert links == {("n_9", "n_1"), ("n_3", "n_9")}


TEXTS = st.sampled_from([text for pair in (*REPLACED, *UNCHANGED) for text in pair])
ROLES = st.sampled_from(["Ann", "Ben", None])
NOTES = st.lists(st.tuples(TEXTS, ROLES, st.none() | st.integers(0, 9)), min_size=2, max_size=6)


@given(NOTES, st.randoms())
def test_candidate_order_does_not_matter(
    statements: list[tuple[str, str | None, int | None]], chance: Random
) -> None:
    *others, note = (_note(seq, text, speaker=speaker, day=day) for seq, (text, speaker, day) in enumerate(statements))
    mixed = others[:]
    chance.shuffle(mixed)
    first = {(link.source, link.type, link.target) for link in change_links(note, others, START)}
    shuffled_links = {(link.source, link.type, link.target) for link in change_links(note, mixed, START)}
    ended = {target for _, _, target in first ^ shuffled_links}
    assert ended <= {note.id}, "of two that follow late news at the same time either may be taken"
    for source, kind, target in first:
        assert note.id in (source, target)
        assert source != target
        assert kind in (LinkType.SUPERSEDES, LinkType.CONTRADICTS)


@given(st.tuples(st.none() | st.integers(0, 3), st.none() | st.integers(0, 3)))
def test_earlier_note_is_symmetric(days: tuple[int | None, int | None]) -> None:
    first, second = _note(1, "a", day=days[0]), _note(2, "b", day=days[1])
    assert in_time(first, second) == in_time(second, first)


def test_facts_on_one_subject_are_candidates_for_a_model() -> None:
    texts = ("Ann lives in Oslo.", "Ann lives in Bergen.", "Ben plays chess.", "The ferry costs 9 euros.",
            "The ferry costs 8 euros.")  # fmt: skip
    facts = [_note(number, text, speaker=None, kind=Kind.SEMANTIC) for number, text in enumerate(texts)]
    assert concern_same_matter(facts[0], facts[1])
    assert concern_same_matter(facts[3], facts[4])
    assert not concern_same_matter(facts[0], facts[2])
    assert not concern_same_matter(facts[0], facts[3])
