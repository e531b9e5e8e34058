# ruff: noqa: E501
"""Secrets are found by their shape, and nothing else is taken for one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.secret_samples import SAMPLES
from zettel.core.privacy import SecretGuard, mark_of, redacted
from zettel.errors import InvalidInput, SecretRefused
from zettel.model import Event
from zettel.text.secret_shapes import CARD, IBAN, is_valid_iban, secret_shapes, secrets_in

DATA = Path(__file__).parents[1] / "data"
OURS = {"kwitek:kwitek@"}
"""The only secret in our own chats: a password in an address."""


def test_there_are_samples_of_all_shapes() -> None:
    assert SAMPLES.keys() == {shape.kind for shape in secret_shapes()} | {CARD, IBAN}
    assert len(SAMPLES) >= 90


@pytest.mark.parametrize("frame", ["{}", "Take {}, and run.", "({})", '"{}"', "é\nİ {}\nb", "`{}`"])
@pytest.mark.parametrize("kind", SAMPLES)
def test_each_shape_is_found_and_replaced(kind: str, frame: str) -> None:
    sample, secret = SAMPLES[kind]
    text = frame.format(sample)
    assert [(found.kind, text[found.start : found.end]) for found in secrets_in(text)] == [(kind, secret)]
    assert redacted(text) == text.replace(secret, mark_of(kind))
    assert redacted(redacted(text)) == redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "It begins with -----BEGIN PRIVATE KEY----- and ends. Keys are called sk-something or ghp_x, see eyJ.",
        "http://localhost:8080/@ann http://a.b:80/x@y postgres://ann:[key]@db",
        "The password is wrong. Your password is required, password: none, password=getpass.getpass() PASSWORD=$DB_PW",
        "I forgot my password for the bank in 2019. The passcode to success is patience.",
        'password = os.environ["DB_PASSWORD"], api_key: str = "your-api-key-goes-here-1234", token=<YOUR_TOKEN_12345678>',
        "Pin it to the board, pin 7. The pin is 4 mm, 1200-grit. My opinion is 4711 times worth it. PIN is 12.50",
        "4111 1111 1111 1112, GB82 WEST 1234 5698 7654 33, NO93 8601 1117 948, XX12 3456 7890 1234",
        "commit 3fa90b7c5d1e3fa90b7c5d1e3fa90b7c5d1e3fa9, id 550e8400-e29b-41d4-a716-446655440000, key: value",
        "The seed phrase is on paper. cio, sl. and pat are words; SK 3fa9 and key-note are words, and so is risk-free-sk-1.",
        "Reset your password: https://example.com/reset2 or https://example.com/?page=2&token=<YOUR_TOKEN_12345678>",
        "The order 4532015112830366 has arrived, user_id=4111111111111111. I pass: 2 hearts. Use the password manager 1Password, password v2.",
        "Use Bearer tokens: Authorization: Bearer <token>. $2 for a $5 meal, $6$ more.",
        "Read the api key rotation-policy-2024-v2.",
        "The mountain pass is 2500ft high, the pass is 12B. The token is spent.",
    ],
)
def test_talk_about_secrets_is_not_a_secret(text: str) -> None:
    assert secrets_in(text) == []


def test_both_halves_of_a_key_of_aws_are_secrets() -> None:
    key, secret = (SAMPLES[kind][1] for kind in ("AWS access key", "AWS secret key"))
    for text in (f"access key {key} secret {secret}", f"aws: {key} / {secret}"):
        assert redacted(text) == text.replace(key, mark_of("AWS access key")).replace(secret, mark_of("AWS secret key"))
    commit = "0a1b2c3d" * 5
    assert commit in redacted(f"{key} leaked in commit {commit}")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("network Fjellheim, password Gr4uten!77", "Gr4uten!77"),
        ("user: root pass: toor99", "toor99"),
        ("**Password:** `tulips77`", "tulips77"),
        ("| password | tulips77 |", "tulips77"),
        ("<password>tulips77</password>", "tulips77"),
        ("my pin code: 4711", "4711"),
        ("The PIN for the blue card is now 471188.", "471188"),
        ("Das Passwort lautet Tulpe77!", "Tulpe77"),
        ("passord for wifi: tulipan7", "tulipan7"),
        ('{"password": "tulips"}', "tulips"),
        ("password is `tulips`", "tulips"),
        ("SSH passphrase = 'a7-b8'", "a7-b8"),
        ("use the api key tw_9f8a7b6c5d4e3f2a1b0c9d8e for weather", "tw_9f8a7b6c5d4e3f2a1b0c9d8e"),
        ("export PGPASSWORD=tulips7", "tulips7"),
        ("the wifi pass is gr4uten77", "gr4uten77"),
        ("my pw is now Gr4uten!77", "Gr4uten!77"),
        ("pass for the printer is gr4uten77", "gr4uten77"),
        ("the token is tok_9f8a7b6c5d4e3f2a1b0c", "tok_9f8a7b6c5d4e3f2a1b0c"),
        ("hf_" + "aBcDeFgHiJ" * 3 + "aBcD", "hf_" + "aBcDeFgHiJ" * 3 + "aBcD"),
        ("client_secret: a1b2c3d4e5f6a7b8c9", "a1b2c3d4e5f6a7b8c9"),
        ("mongodb+srv://ann:t7@x@cluster.example", "t7@x"),
        ("DE89370400440532013000", "DE89370400440532013000"),
        ("5555-5555-5555-4444", "5555-5555-5555-4444"),
        ("card no. 4111111111111111", "4111111111111111"),
        ("order it with 4111111111111111", "4111111111111111"),
    ],
)
def test_plain_speech_and_assignments(text: str, secret: str) -> None:
    assert secret in [text[found.start : found.end] for found in secrets_in(text)]


def test_a_truncated_private_key_is_found() -> None:
    cut = SAMPLES["private key"][1].partition("\n-----END")[0]
    (found,) = secrets_in(f"{cut}\nSorry.")
    assert (found.kind, found.start, found.end) == ("private key", 0, len(cut))


def test_account_numbers_have_the_length_of_their_country() -> None:
    assert is_valid_iban("NO9386011117947")
    assert not is_valid_iban("NO93860111179470")
    text = "NO93 8601 1117 947 4711 AND MORE"
    assert redacted(text) == "[redacted IBAN] 4711 AND MORE"


def test_our_own_chats_and_conversations_contain_none() -> None:
    texts = [text for folder in ("chats", "conversations") for text in _texts_in(DATA / folder)]
    found = [(secret, text) for text in texts for secret in secrets_in(text)]
    wrong = [text[max(0, it.start - 20) : it.end + 20] for it, text in found]
    wrong = [place for place in wrong if not any(own in place for own in OURS)]
    assert len(texts) > 20_000
    assert wrong == []


def _texts_in(folder: Path) -> Iterator[str]:
    for file in sorted(folder.rglob("*.json*")):
        lines = [file.read_text()] if file.suffix == ".json" else file.read_text().splitlines()
        for line in lines:
            yield from _strings(json.loads(line))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


class TestGuard:
    TOKEN = SAMPLES["GitHub token"][1]

    def test_an_event_without_secrets_is_the_same_object(self) -> None:
        event = Event(content="The harbour is calm.", metadata={"n": 7, "at": "2024"}, payload=[{"a": None}])
        assert SecretGuard("redact").event(event).value is event

    def test_every_field_of_an_event_is_redacted(self) -> None:
        token, mark = self.TOKEN, mark_of("GitHub token")
        event = Event(
            content=token, title=token, speaker=token, session=token, external_id=token, source=token,
            payload={token: [token, 4111111111111111], "pin": 4711, "password": 48213377, "ok": 12},
            metadata={"password": "tulips", token: 1},
        )  # fmt: skip
        value, kinds = SecretGuard("redact").event(event)
        assert (value.content, value.title, value.speaker, value.session) == (mark, mark, mark, mark)
        assert (value.external_id, value.source.file) == (None, mark)
        assert value.payload == {mark: [mark, mark_of(CARD)], "pin": mark_of("PIN"), "password": mark_of("password"), "ok": 12}
        assert value.metadata == {"password": mark_of("password"), mark: 1}
        assert set(kinds) == {"GitHub token", CARD, "PIN", "password"}

    def test_equal_marks_of_keys_stay_two_keys(self) -> None:
        event = Event(content="a", metadata={self.TOKEN: 1, f"{self.TOKEN}z": 2})
        assert len(SecretGuard("redact").event(event).value.metadata) == 2

    def test_unbroken_digits_in_ids_are_no_cards(self) -> None:
        event = Event(content="a", external_id="4111111111111111", session="4111111111111111")
        assert SecretGuard("block").event(event).value is event

    def test_a_refusal_names_kind_and_field_and_not_the_secret(self) -> None:
        with pytest.raises(SecretRefused) as refused:
            SecretGuard("block").event(Event(content="a", metadata={"env": self.TOKEN}))
        assert str(refused.value) == (
            "the event contains what looks like a secret, GitHub token (metadata), and privacy='block' stores none: "
            "take it out, or open the memory with privacy='redact'"
        )

    @pytest.mark.parametrize("privacy", ["report", "redact", "block"])
    def test_values_that_no_note_can_have_are_refused(self, privacy: Any) -> None:
        deep: list[Any] = []
        for _ in range(5_000):
            deep = [deep]
        with pytest.raises(InvalidInput, match="levels deep"):
            SecretGuard(privacy).fields({"metadata": {"a": deep}})
        assert SecretGuard(privacy).fields({"metadata": {7: "x"}, "valid_to": None}).kinds == ()

    def test_report_and_off_change_nothing(self) -> None:
        event = Event(content=self.TOKEN)
        assert SecretGuard("report").event(event) == (event, ("GitHub token",))
        assert SecretGuard("off").event(event) == (event, ())
