"""Lasting states: traits, homes, likes, habits, names and numbers; no events, moods, plans, questions or requests."""

from __future__ import annotations

import pytest

from zettel.text.states import is_state

LASTING = """
I'm vegan. | Call me Bo. | Please call me Bo. | I'm allergic to nuts. | I am allergic to peanuts!
I live in Oslo. | I work at the city library. | I prefer tea. | I never eat fish. | My boss is Ingrid.
The vault code is 1234. | My favourite colour is green. | I have two kids. | I have a dog.
Ben lives in Rome. | I'm a nurse. | I can't eat gluten. | My name is Bo. | I keep two hens in the garden.
I play the cello every evening. | I'm from Oslo. | I'm Norwegian. | We live in Bergen, above a bakery.
My wife is allergic to cats. | My dog is called Kestrel. | I drive a Volvo. | My sister's name is Tove.
Hi! I'm vegan. Thanks! | Well, I'm vegan, thanks. | My wifi password is hunter2. | I don't eat meat.
"""
PASSING = """
Went running this morning. | I ran to Asker. | I'm tired. | I'm at the office. | It's raining.
The server is down. | I'm running late. | I'm on my way. | I have a headache. | I have a meeting.
I have a question. | I need help. | I agree. | I like it. | I like your idea. | I prefer the second option.
I love the plan. | I'm a bit late. | I'm a mess. | I'm home. | Dinner is ready. | My leg is sore.
My train is late. | I'm sick. | I moved to Oslo. | I live in Oslo now. | I'm done. | Call me tomorrow.
Call me back. | Thanks! | In Oslo. | Where do I live? | I think I'm vegan. | I live in Oslo until May.
If I were vegan I would starve. | I work from home on Monday. | My exam is on 4 May.
I'm vegan, but I ate fish. | The nightly deploy finished. | Ida painted the barn. | I keep spending too much.
I might live in Oslo. | He lives in Oslo.
"""


def _texts(table: str) -> list[str]:
    return [text.strip() for line in table.strip().splitlines() for text in line.split("|") if text.strip()]


@pytest.mark.parametrize("text", _texts(LASTING))
def test_a_lasting_state(text: str) -> None:
    assert is_state(text)


@pytest.mark.parametrize("text", _texts(PASSING))
def test_what_happens_again_is_not_a_state(text: str) -> None:
    assert not is_state(text)
