"""Profiles: detection of personal statements, and separation of lasting and recent ones."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone

import pytest

from tests.unit.test_insights import note
from zettel.evolve.profile import MAX_CHARS, Statement, profile, shortened, statements
from zettel.model import Kind


def day(month: int, day: int) -> datetime:
    return datetime(2024, month, day, tzinfo=timezone.utc)


def statements_by(person: str, when: datetime, text: str) -> list[Statement]:
    return statements(note(person, None, text, id=f"n_{text}{when}", event_ids=(f"e_{text}{when}",), occurred_at=when))


def profile_lines(messages: Iterable[tuple[datetime, str]], latest: datetime) -> list[str]:
    """Return the lines of the profile of a user with these messages."""
    found = [each for when, text in messages for each in statements_by("user", when, text)]
    result = profile(found, ["user"], latest)
    assert result is not None
    return result.content.splitlines()


@pytest.mark.parametrize(
    "text",
    ["I love rye bread.", "I'm allergic to hazelnuts.", "My favorite film is Stalker.", "We live in Bergen now.",
     "I\u2019m learning Portuguese.", "I still don't like opera.", "I've always hated tunnels, I avoid tunnels."],
)  # fmt: skip
def test_personal_statements_are_detected(text: str) -> None:
    (statement,) = statements(note("Ann", 1, f"Good morning! {text}"))
    assert (statement.person, statement.text) == ("Ann", text.replace("\u2019", "'"))


@pytest.mark.parametrize(
    ("speaker", "text"),
    [("Ann", "I'd love to see the bread."), ("Ann", "Do I love rye bread?"), ("assistant", "I love rye bread."),
     (None, "I love rye bread."), ("Ann", "The bread is rye."), ("Ann", "Ben lives in Turin.")],
)  # fmt: skip
def test_other_sentences_are_not_personal_statements(speaker: str | None, text: str) -> None:
    assert statements(note(speaker, 1, text)) == []


def test_a_fact_is_about_the_person_it_begins_with() -> None:
    (statement,) = statements(note(None, 1, "Ann lives in Oslo.", kind=Kind.SEMANTIC))
    assert statement.person == "Ann"
    repeated = [statement, statement]
    result = profile(repeated, ["Ann Lund"], day(5, 1))
    assert result is not None
    assert result.people == ("Ann Lund",)
    assert profile(repeated, ["Bob"], day(5, 1)) is None


@pytest.mark.parametrize(
    ("fact", "speakers", "person"),
    [
        ("Ann Lund lives in Oslo.", ["Ann Lund", "Ann Kim"], "Ann Lund"),
        ("Ann Lund's mother lives in Oslo.", ["Ann Kim", "Ann Lund"], "Ann Lund"),
        ("Ann Lund lives in Oslo.", ["Ann", "Bob"], "Ann"),
        ("Ann lives in Oslo.", ["Ann", "Ann Kim"], "Ann"),
        ("Ann\u2019s Volvo is in Oslo.", ["Ann Kim"], "Ann Kim"),
        ("Ann lives in Oslo.", ["Ann Kim", "Ann Lund"], None),
        ("Ann Lund lives in Oslo.", ["Ann Kim"], None),
    ],
)
def test_a_name_is_resolved_to_one_speaker(fact: str, speakers: list[str], person: str | None) -> None:
    """A first name that two speakers share is ambiguous and assigned to neither."""
    (statement,) = statements(note(None, 1, fact, kind=Kind.SEMANTIC))
    result = profile([statement], speakers, day(5, 1))
    assert (result.people if result else ()) == ((person,) if person else ())


def test_lasting_and_recent_statements_have_separate_sections() -> None:
    all_statements = [
        *statements_by("Ann", day(1, 1), "I love rye bread."),
        *statements_by("Ann", day(3, 1), "I love rye bread more than anything."),
        *statements_by("Ann", day(3, 2), "I collect brass buttons."),
        *statements_by("Ann", day(2, 2), "Please always answer in metric units."),
        *statements_by("Bob", day(3, 3), "I'm allergic to hazelnuts."),
        *statements_by("Bob", day(1, 3), "I play the tuba."),
    ]
    result = profile(all_statements, ["Ann", "Bob"], day(3, 4))
    assert result is not None
    assert result.content.splitlines() == [
        "Instructions",
        "- Ann: Please always answer in metric units. (2024-02-02)",
        "Lasting",
        "- Ann: I love rye bread more than anything. (2 days, 2024-01-01 to 2024-03-01)",
        "- Bob: I play the tuba. (2024-01-03)",
        "Recent",
        "- Ann: I collect brass buttons. (2024-03-02)",
        "- Bob: I'm allergic to hazelnuts. (2024-03-03)",
    ]
    assert result.people == ("Ann", "Bob")
    assert len(result.sources) == 6
    assert profile(all_statements[::-1], ["Bob", "Ann"], day(3, 4)) == result


def test_one_mention_suffices_and_what_changed_is_replaced() -> None:
    """The home, diet and allergy of a user, of whom nothing else is known."""
    said = [
        (day(1, 1), "I live in Porto. I'm vegetarian. I'm allergic to nuts."),
        (day(3, 1), "We moved to Braga last week."),
        (day(4, 1), "I'm vegan now."),
    ]
    assert profile_lines(said, day(5, 1)) == [
        "Lasting",
        "- user: I'm allergic to nuts. (2024-01-01)",
        "- user: We moved to Braga last week. (2024-03-01)",
        "Recent",
        "- user: I'm vegan now. (2024-04-01)",
    ]


def test_what_ended_is_left_out() -> None:
    found = [
        *statements_by("user", day(1, 1), "I work at Halden Shipyard."),
        *statements_by("user", day(2, 1), "I no longer work at Halden Shipyard."),
        *statements_by("user", day(2, 1), "My daughter Mia is allergic to eggs."),
    ]
    result = profile(found, ["user"], day(6, 1))
    assert result is not None
    assert result.content.splitlines() == ["Lasting", "- user: My daughter Mia is allergic to eggs. (2024-02-01)"]


def test_a_replaced_clause_is_left_out_and_the_others_stay() -> None:
    messages = [
        (day(1, 1), "hey im lena, i live in lisbon and im allergic to nuts"),
        (day(1, 2), "can u stop with the bold text?"),
        (day(3, 1), "were moving to porto in july!"),
    ]
    assert profile_lines(messages, day(8, 1)) == [
        "Instructions",
        "- user: can u stop with the bold text? (2024-01-02)",
        "Lasting",
        "- user: Hey I am Lena, I am allergic to nuts (2024-01-01)",
        "- user: were moving to porto in july! (2024-03-01)",
    ]


def test_a_phrase_about_something_that_ended_is_left_out() -> None:
    messages = [
        (day(1, 1), "hiya, i live in a tiny flat in stockport with my boyfriend callum"),
        (day(1, 2), "my boyfriend callum works at Meta."),
        (day(1, 3), "We live near the canal with our cat Momo."),
        (day(3, 1), "so. me and callum split up."),
    ]
    assert profile_lines(messages, day(8, 1)) == [
        "Lasting",
        "- user: hiya, i live in a tiny flat in stockport (2024-01-01)",
        "- user: We live near the canal with our cat Momo. (2024-01-03)",
        "- user: me and callum split up. (2024-03-01)",
    ]


def test_plans_for_past_days_and_questions_are_left_out() -> None:
    messages = [
        (day(1, 8), "Our trip to the farm is this Friday."),
        (day(1, 8), "my mum is coming to stay with us from jan 20 till the 24th"),
        (day(1, 9), "what should i get my sister, a telescope or a skateboard"),
        (day(1, 9), "I've been vegan since 3 May 2019."),
        (day(1, 9), "pls always give me recipes w/o mushrooms"),
        (day(1, 9), "never suggest fish"),
    ]
    found = [each for when, text in messages for each in statements_by("user", when, text)]
    soon, later = (profile(found, ["user"], when) for when in (day(1, 10), day(5, 1)))
    assert soon is not None
    assert later is not None
    assert "farm" in soon.content
    assert "telescope" not in soon.content
    assert later.content.splitlines() == [
        "Instructions",
        "- user: never suggest fish (2024-01-09)",
        "- user: pls always give me recipes w/o mushrooms (2024-01-09)",
        "Lasting",
        "- user: I've been vegan since 3 May 2019. (2024-01-09)",
    ]


def test_what_was_true_for_some_weeks_only_is_left_out_later() -> None:
    messages = [
        (day(1, 8), "I live in Porto for now."),
        (day(1, 8), "I'm on 20 mg of ramipril for now."),
        (day(1, 9), "I work at Aldi now."),
    ]
    soon, later = (profile_lines(messages, when) for when in (day(1, 20), day(5, 1)))
    assert [line for line in soon if "Porto" in line]
    assert not [line for line in later if "Porto" in line]
    assert [line for line in later if "ramipril" in line], "a medicine stays"
    assert [line for line in later if "Aldi" in line]


def test_a_profile_has_a_maximum_length() -> None:
    things = "violins oysters glaciers lanterns turnips trams herons kayaks magnets walruses".split()
    spoken: list[Statement] = []
    for person in ("Ann", "Bob", "Cleo", "Dan"):
        for n, thing in enumerate(things):
            for month in (1, 3):
                spoken += statements_by(person, day(month, n + 1), f"I love {thing} {'and walks along the shore ' * 4}")
    result = profile(spoken, ["Ann", "Bob", "Cleo", "Dan"], day(3, 12))
    assert result is not None
    assert len(result.content) <= MAX_CHARS
    assert len(result.people) == 3


def test_a_profile_contains_no_secrets() -> None:
    found = statements(note("Ann", 1, "I'm vegan. My password: hunter2-Lobster. I live in Porto."))
    assert [statement.text for statement in found] == ["I'm vegan.", "I live in Porto."]


PROFILE = """Instructions
- user: Answer in metric units. (2024-01-02)
- user: Never use emoji. (2024-03-02)
Lasting
- user: I live in Leeds. (2024-01-01)
- user: I work at Acme. (2024-02-01)
Recent
- user: I'm training for a marathon. (2024-05-01)"""


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1000, ["metric", "emoji", "Leeds", "Acme", "marathon"]),
        (230, ["metric", "emoji", "Acme", "marathon"]),
        (190, ["metric", "emoji", "marathon"]),
        (110, ["metric", "emoji"]),
        (60, ["emoji"]),
        (10, []),
    ],
)
def test_a_shortened_profile_contains_instructions_and_what_is_new(most: int, expected: list[str]) -> None:
    text = shortened(PROFILE, lambda text: len(text) <= most)
    assert len(text) <= most
    assert [word for word in ("metric", "emoji", "Leeds", "Acme", "marathon") if word in text] == expected
    assert not any(line in text.splitlines()[-1:] for line in ("Instructions", "Lasting", "Recent"))
