"""The file of webhooks: its targets, their secrets and addresses, and one clear error for each mistake."""

from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path
from typing import Any

import pytest
import yaml
from standardwebhooks import Webhook

from zettel import Scope
from zettel.errors import InvalidInput
from zettel.local.webhook_targets import is_public, load_targets, new_secret
from zettel.local.webhooks import signature

SECRET = new_secret()
CRM: dict[str, Any] = {"url": "https://crm.example/hook", "secret": SECRET}


def write(folder: Path, content: Any) -> Path:
    path = folder / "webhooks.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def test_a_target_has_defaults(tmp_path: Path) -> None:
    targets, queue = load_targets(write(tmp_path, {"targets": {"crm": CRM}}))
    crm = targets["crm"]
    assert (crm.name, crm.url, crm.content, crm.private) == ("crm", CRM["url"], False, False)
    assert all(crm.accepts(Scope(user="ann"), event) for event in ("added", "changed", "deleted"))
    assert queue == tmp_path / "webhooks.yaml.queue"


def test_a_target_selects_events_and_scopes(tmp_path: Path) -> None:
    fields = CRM | {"events": ["deleted"], "scope": "tenant=acme,user=*"}
    targets, queue = load_targets(write(tmp_path, {"targets": {"crm": fields}, "queue": "other.queue"}))
    accepts = targets["crm"].accepts
    assert accepts(Scope(tenant="acme", user="ann"), "deleted")
    assert not accepts(Scope(tenant="acme", user="ann"), "added")
    assert not accepts(Scope(tenant="acme"), "deleted")
    assert not accepts(Scope(tenant="other", user="ann"), "deleted")
    assert queue == tmp_path / "other.queue"


def test_secrets_from_the_environment_and_of_a_rotation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRM_SECRET", SECRET)
    both = {"a": {"url": CRM["url"], "secret_env": "CRM_SECRET"}, "b": CRM | {"secret": [SECRET, new_secret()]}}
    targets, _ = load_targets(write(tmp_path, {"targets": both}))
    assert targets["a"].secrets == targets["b"].secrets[:1]
    assert len(targets["b"].secrets) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("targets: [", "is not valid YAML"),
        ({}, "names no target"),
        ({"targets": {}}, "names no target"),
        ({"targets": {"crm": CRM}, "queues": "x"}, "unknown field 'queues'; use targets, queue"),
        ({"targets": {"crm": CRM}, "queue": 3}, "queue must be the name of a file"),
        ({"targets": {"crm": "https://crm.example"}}, "crm must have fields such as url and secret"),
        ({"targets": {"crm": CRM | {"event": []}}}, "crm: unknown field 'event'; use url, secret"),
        ({"targets": {"crm": CRM | {"events": ["add"]}}}, "events must be a list of added, changed, deleted"),
        ({"targets": {"crm": CRM | {"scope": "team=a"}}}, "scope 'team=a': expected tenant, user, agent"),
        ({"targets": {"crm": CRM | {"content": "yes please"}}}, "content must be true or false"),
        ({"targets": {"crm": CRM | {"url": "crm.example"}}}, "url must be an address such as https://"),
        ({"targets": {"crm": CRM | {"url": "ftp://crm.example"}}}, "url must be an address"),
        ({"targets": {"crm": CRM | {"url": "https://ann:pw@crm.example"}}}, "must not contain a user or password"),
        ({"targets": {"crm": CRM | {"url": "http://crm.example"}}}, "write https://, or set private: true"),
        ({"targets": {"crm": CRM | {"url": "https://10.0.0.7/x"}}}, "10.0.0.7 is a private address"),
        ({"targets": {"crm": CRM | {"url": "https://localhost/x"}}}, "localhost is a private address"),
        ({"targets": {"crm": {"url": CRM["url"]}}}, "crm needs secret, or secret_env"),
        ({"targets": {"crm": {"url": CRM["url"], "secret_env": "NO_SUCH"}}}, "variable NO_SUCH is not set"),
        ({"targets": {"crm": CRM | {"secret": "hunter2"}}}, "a secret begins with whsec_"),
        ({"targets": {"crm": CRM | {"secret": "whsec_c2hvcnQ="}}}, "24 to 64 bytes in base64"),
        ({"targets": {"crm": CRM | {"secret": "whsec_***"}}}, "24 to 64 bytes in base64"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        load_targets(write(tmp_path, content))
    assert message in str(error.value)
    assert "webhooks.yaml" in str(error.value)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nowhere\.yaml cannot be read: No such file"):
        load_targets(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fd00::1", "ff02::1", "::ffff:127.0.0.1",
        "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::",
    ],
)  # fmt: skip
def test_private_addresses(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.215.14", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses(address: str) -> None:
    assert is_public(address)


def test_a_signature_follows_the_specification() -> None:
    secret = base64.b64decode(SECRET.removeprefix("whsec_"))
    signed = signature(secret, "msg_1", 1_700_000_000, b'{"a":1}')
    expected = hmac.new(secret, b'msg_1.1700000000.{"a":1}', hashlib.sha256).digest()
    assert signed == f"v1,{base64.b64encode(expected).decode()}"


def test_a_new_secret_works_with_the_published_library() -> None:
    assert Webhook(new_secret()) is not None
