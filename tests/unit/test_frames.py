"""The frames of each language: their examples, their cues, and which language a text is in."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from importlib.resources import files
from typing import Any

import pytest

from zettel.model import Kind, Note
from zettel.text.facts import ANY, HAS, Fact, belongings, endings, facts
from zettel.text.language_files import language, language_codes, language_of

OCTOBER = datetime(2024, 10, 5, tzinfo=timezone.utc)
FRAMES: dict[str, list[dict[str, Any]]] = {
    code: json.loads(files("zettel.text").joinpath("languages", f"{code}.json").read_text("utf-8"))["frames"]
    for code in language_codes()
}
EXAMPLES = [
    (frame["attribute"], text, expected)
    for frames in FRAMES.values()
    for frame in frames
    for text, expected in frame.get("examples", ())
]


def _facts(text: str, attribute: str = "") -> tuple[Fact, ...]:
    note = Note.model_construct(content=text, speaker="user", role="user", kind=Kind.EPISODIC, occurred_at=OCTOBER)
    return {HAS: belongings, ANY: endings}.get(attribute, facts)(note)


def _written(fact: Fact) -> list[str]:
    owner = " ".join([*sorted(fact.owner.person), *fact.owner.path])
    return [owner, fact.attribute, " ".join(sorted(fact.thing)), fact.value.text]


def test_english_and_german_have_frames() -> None:
    assert language_codes() == ("de", "en")


@pytest.mark.parametrize("code", language_codes())
def test_every_frame_has_examples(code: str) -> None:
    assert not [frame["attribute"] for frame in FRAMES[code] if not frame.get("examples")]


@pytest.mark.parametrize(("attribute", "text", "expected"), EXAMPLES)
def test_examples(attribute: str, text: str, expected: list[list[str]]) -> None:
    assert [_written(fact) for fact in _facts(text, attribute)] == expected


@pytest.mark.parametrize("code", language_codes())
def test_every_pattern_compiles_and_names_a_value(code: str) -> None:
    for frame in language(code).frames:
        for pattern in frame.patterns:
            kinds = pattern.regex.groupindex.keys() - {"subject", "thing"}
            assert kinds or pattern.positive is not None or pattern.sense == "topics", pattern.expression
            if pattern.sense == "topics":
                assert "thing" in pattern.regex.groupindex


@pytest.mark.parametrize("code", language_codes())
def test_cues_leave_out_no_pattern(code: str) -> None:
    chosen = language(code)
    for text in (text for frame in FRAMES[code] for text, _ in frame["examples"]):
        for clause in re.split(r"[,.:]\s", text):
            candidates = [pattern for _, pattern in chosen.candidates(clause)]
            for frame in chosen.frames:
                for pattern in frame.patterns:
                    assert pattern in candidates or not pattern.regex.match(clause), (pattern.expression, clause)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("I moved to Braga with my wife.", "en"),
        ("Wir sind letzte Woche nach Leipzig gezogen.", "de"),
        ("Me llamo Ana y vivo en Porto con mi hermana.", None),
        ("Le loyer est de 900 euros par mois.", None),
        ("Abito a Torino e lavoro in una scuola.", None),
        ("Ik woon in Utrecht en ik werk bij een bank.", None),
        ("12345", None),
    ],
)
def test_language_of_a_text(text: str, code: str | None) -> None:
    assert language_of(text) is (language(code) if code else None)


@pytest.mark.parametrize(
    "text",
    [
        "Vivo en Porto.",
        "El alquiler es de 900 euros al mes.",
        "Trabajo en Google desde mayo.",
        "J'habite à Lyon avec ma femme.",
        "Le loyer est de 900 euros.",
        "Mon chef est Ivan.",
    ],
)
def test_a_text_in_a_language_without_frames_states_no_facts(text: str) -> None:
    assert _facts(text) == ()
