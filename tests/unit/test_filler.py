"""Filler turns without content, and turns that only look like filler."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.text.filler import is_filler


@pytest.mark.parametrize(
    "text",
    """
    ok|OK!|okay...|okaaay|Thanks!|thank you so much!!|Thanks, you too!|haha|HAHAHA 😂|lol|wow|👍|❤️❤️|...|?|;)|hmm|ohhh
    sounds good, see you|Sounds great! Talk to you later|bye, take care|Hey! How are you?|What's up?|Really?|And you?
    Congrats, well done!|That's so sweet|aww, thank you, friend|Good night, everyone!|got it, thx|Can't wait!
    Danke schön!|Alles klar, bis bald|Merci beaucoup !|D'accord, à bientôt|¡Muchas gracias!|Vale, hasta luego
    Grazie mille!|Muito obrigada|dank je wel|Спасибо!|хорошо, до встречи|谢谢！|好的，明白了
    ありがとうございます。|了解です|감사합니다|ㅋㅋㅋ|哈哈哈
    """.replace("\n", "|").split("|"),
)
def test_filler_is_recognised(text: str) -> None:
    assert is_filler(text.strip())


@pytest.mark.parametrize(
    "text",
    """
    yes|No.|never|Yeah!|I am|you too|I will|Thanks, Bob!|ok, Friday|see you tomorrow|see you at 5|42
    Sounds good, Oslo then
    great hike|thanks for the lasagne|Good luck with the exam|ok, I sold it|C++|https://a.example/b|Is it good?|Why?
    Who was it?|How are you and the twins?|I was great|nein|oui|да|はい|네|可以吗|明天见
    danke für das Buch|gracias por todo
    thanks, pneumonia is over|lol that boss|#urgent|@bob|$5|no problem with line 3
    """.replace("\n", "|").split("|"),
)
def test_content_is_not_filler(text: str) -> None:
    text = text.strip()
    assert not is_filler(text) or not text


def test_tool_results_are_not_filler() -> None:
    assert is_filler("ok", "assistant")
    assert not is_filler("ok", "tool")
    assert not is_filler("OK", "tool")


def test_long_text_is_never_filler() -> None:
    assert not is_filler("thanks " * 40)


@given(st.text(max_size=60))
def test_a_number_or_an_unknown_word_is_content(text: str) -> None:
    assert not is_filler(f"thanks {text} 7")
    assert not is_filler(f"thanks {text} zyzzyva")
