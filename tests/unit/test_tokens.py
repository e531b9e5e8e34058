"""Tokens: equal for questions and notes, in every script."""

from __future__ import annotations

import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.text.background import COMMON_ZIPF, background_rarity, rarity_of, zipf
from zettel.text.tokens import MAX_TOKEN, bare_title, clean, phrase_key, tokenize, words

STORABLE = st.text(st.characters(exclude_categories=("Cs",)))
ANYTHING = st.text(st.characters())  # lone surrogates too: questions may contain them, notes cannot


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The boats are sailing", ["boat", "sail"]),
        ("Ann's boats; the students' boat", ["ann", "boat", "student", "boat"]),
        ("I don't and won't, it isn't, we'll", []),
        ("O\u2019Brien and O'Brien", ["obrien", "obrien"]),
        ("Zürich café, naïve", ["zurich", "cafe", "naiv"]),
        ("l'été d'Oslo", ["ete", "oslo"]),
        ("1,000.50 crowns in 2019, v3.11.2", ["1000.50", "crown", "2019", "3.11.2"]),
        ("1,2,3", ["1", "2", "3"]),
        ("on 2024-05-01 at 10:30", ["2024", "05", "01", "10", "30"]),
        ("call foo_bar() in foo_bar.py", ["call", "foo", "bar", "foo", "bar", "py"]),
        ("Ёлки и ёлка", ["елк", "елк"]),
        ("الكِتَابُ في المكتبة ١٢٣", ["كتاب", "مكتب", "123"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("字 한국어", ["字", "한국", "국어"]),
        ("iPhone手机", ["iphon", "手机"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("ﬁne ½", ["fine", "1", "2"]),
        ("soft\u00adhyphen zero\u200bwidth", ["softhyphen", "zerowidth"]),
        ("", []),
        ("?! ... \U0001f600", []),
    ],
)
def test_samples_have_the_expected_tokens(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


@given(ANYTHING)
def test_any_text_gives_the_same_tokens_twice(text: str) -> None:
    tokens = tokenize(text)
    assert tokenize(text) == tokens
    assert all(tokens)


@given(STORABLE)
def test_unicode_forms_of_a_text_have_the_same_tokens(text: str) -> None:
    for form in ("NFC", "NFKC", "NFKD", "NFD"):
        assert tokenize(unicodedata.normalize(form, text)) == tokenize(text)


@given(STORABLE)
def test_words_carry_their_tokens_and_positions(text: str) -> None:
    cleaned = clean(text)
    parsed = words(text)
    assert [word.token for word in parsed if word.token] == tokenize(text)
    assert all(cleaned[word.start : word.end] == word.text for word in parsed)


def test_long_unspaced_text_is_cut() -> None:
    assert all(len(token) <= MAX_TOKEN for token in tokenize("x" * 10_000))


def test_tokenizing_is_thread_safe() -> None:
    texts = [f"running{number} boats{number} Ёлками{number} sailing mountains" for number in range(400)]
    alone = [tokenize(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(tokenize, [text.replace("running", "Running") for text in texts]))
    assert results == alone


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("  The  Lord of\tthe Rings ", "the lord of the rings"),
        ("Ann's O'Neill-Report_2", "ann oneill report 2"),
        ("\uff21\uff42\uff43", "abc"),
        ("Straße", "strasse"),
        ("東京・タワー", "東京 タワー"),
        ("...", ""),
    ],
)
def test_a_phrase_has_the_expected_key(text: str, key: str) -> None:
    assert phrase_key(text) == key


@given(STORABLE)
def test_phrase_key_is_a_normal_form(text: str) -> None:
    key = phrase_key(text)
    assert phrase_key(key) == key
    assert phrase_key(unicodedata.normalize("NFKC", text)) == key


def test_rarity_orders_words_of_every_script() -> None:
    for common, rarer in [("people", "harpsichord"), ("человек", "клавесин"), ("كتاب", "قيثارة"), ("日本", "薔薇")]:
        (common_token,), (rare_token, *_) = tokenize(common)[:1], tokenize(rarer)
        assert rarity_of(common_token) < rarity_of(rare_token)
    assert rarity_of("qqzzxyw") == 1.0
    assert zipf("peopl") < COMMON_ZIPF


def test_random_pairs_have_the_rarity_of_chance() -> None:
    assert rarity_of("的是") < rarity_of("鼈甕")


@given(st.lists(ANYTHING))
def test_background_rarity_has_a_value_from_0_to_1_for_each_token(tokens: list[str]) -> None:
    rarity = background_rarity(tokens)
    assert rarity.shape == (len(tokens),)
    assert rarity.dtype == "float32"
    assert all(0 <= value <= 1 for value in rarity)


@pytest.mark.parametrize(
    ("title", "bare"),
    [
        ("Alien (1979 film)", "Alien"),
        ("Alien \t (film) \n", "Alien"),
        ("Alien(film)", "Alien"),
        ("Alien (film) again", "Alien (film) again"),
        ("  (film)", ""),
        ("Alien (a) (b)", "Alien (a)"),
    ],
)
def test_a_title_is_named_without_its_qualifier(title: str, bare: str) -> None:
    assert bare_title(title) == bare


def test_a_title_of_blanks_takes_no_longer_than_other_titles() -> None:
    start = time.process_time()  # CPU time of this process only
    bare_title("Alien" + " " * 40_000 + "film")
    assert time.process_time() - start < 0.5
