"""The targets of webhooks: who is informed of which changes, read from a YAML file."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args
from urllib.parse import urlsplit

from zettel.core.changes import Event
from zettel.core.scope_patterns import is_in, pattern_of
from zettel.errors import InvalidInput
from zettel.model import Scope

EVENTS: tuple[Event, ...] = get_args(Event)
SECRET = "whsec_"
"""The prefix of secrets in the Standard Webhooks specification."""
MIN_SECRET, MAX_SECRET = 24, 64
"""Bytes of a secret in that specification."""
FIELDS = ("url", "secret", "secret_env", "events", "scope", "content", "private")
QUEUE = ".queue"
"""Suffix of the queue beside the file of targets."""


class Target(NamedTuple):
    """A receiver of webhooks. ``pattern`` None is every scope; ``secrets`` sign each message, one signature each."""

    name: str
    url: str
    secrets: tuple[bytes, ...]
    events: tuple[Event, ...] = EVENTS
    pattern: Scope | None = None
    content: bool = False
    private: bool = False

    def accepts(self, scope: Scope, event: Event) -> bool:
        """Return whether the target is informed of an event in a scope."""
        return event in self.events and (self.pattern is None or is_in(scope, [self.pattern]))


class Targets(NamedTuple):
    """The targets in a file, and the file of their queue."""

    targets: Mapping[str, Target]
    queue: Path

    def named(self, name: str) -> Target:
        """Return the target with this name. Raises ``InvalidInput``."""
        if name not in self.targets:
            raise InvalidInput(f"unknown target {name!r}: the file of webhooks names {', '.join(self.targets)}")
        return self.targets[name]


def load_targets(path: str | Path) -> Targets:
    """Read a file of webhooks. Raises ``InvalidInput``, which names the file and the field.

    Example of a file::

        targets:
          crm:
            url: https://crm.example/hooks/zettel
            secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
            events: [added, deleted]
            scope: tenant=acme,user=*
    """
    import yaml

    path = Path(path)
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"webhooks {path} cannot be read: {error.strerror or error}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidInput(f"webhooks {path} is not valid YAML: {error}") from None
    if not isinstance(loaded, dict) or not isinstance(loaded.get("targets"), dict) or not loaded["targets"]:
        raise InvalidInput(f"webhooks {path} names no target: write `targets:` with the name and url of each")
    if unknown := loaded.keys() - {"targets", "queue"}:
        raise InvalidInput(f"webhooks {path}: unknown field {min(map(str, unknown))!r}; use targets, queue")
    queue = loaded.get("queue")
    if queue is not None and not isinstance(queue, str):
        raise InvalidInput(f"webhooks {path}: queue must be the name of a file")
    named = loaded["targets"].items()
    targets = {str(name): _target(f"webhooks {path}: {name}", str(name), fields) for name, fields in named}
    return Targets(targets, path.with_name(path.name + QUEUE) if queue is None else path.parent / queue)


def _target(where: str, name: str, fields: Any) -> Target:
    if not isinstance(fields, dict):
        raise InvalidInput(f"{where} must have fields such as url and secret")
    if unknown := fields.keys() - set(FIELDS):
        raise InvalidInput(f"{where}: unknown field {min(map(str, unknown))!r}; use {', '.join(FIELDS)}")
    switches = {switch: fields.get(switch, False) for switch in ("content", "private")}
    for switch, value in switches.items():
        if not isinstance(value, bool):
            raise InvalidInput(f"{where}: {switch} must be true or false, not {value!r}")
    events = fields.get("events", list(EVENTS))
    if not isinstance(events, list) or not events or any(event not in EVENTS for event in events):
        raise InvalidInput(f"{where}: events must be a list of {', '.join(EVENTS)}, not {events!r}")
    scope = fields.get("scope")
    if scope is not None and not isinstance(scope, str):
        raise InvalidInput(f"{where}: scope must be a text such as tenant=acme,user=*")
    pattern = None if scope is None else pattern_of(f"{where}: scope", scope)
    url = _url(where, fields.get("url"), switches["private"])
    return Target(name, url, _secrets(where, fields), tuple(events), pattern, **switches)


def _url(where: str, url: Any, private: bool) -> str:
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise InvalidInput(f"{where}: url must be an address such as https://crm.example/hook, not {url!r}")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(f"{where}: url must not contain a user or password: receivers check the signature")
    if private:
        return str(url)
    if parts.scheme == "http":
        raise InvalidInput(f"{where}: messages would be sent unencrypted: write https://, or set private: true")
    if host == "localhost" or (_is_address(host) and not is_public(host)):
        raise InvalidInput(f"{where}: {host} is a private address: set private: true to allow it")
    return str(url)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Return whether an IP address belongs to the public internet, also the IPv4 address inside an IPv6 one."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo or (None, None))[1]
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not ip.is_multicast


def _secrets(where: str, fields: Mapping[str, Any]) -> tuple[bytes, ...]:
    secret, variable = fields.get("secret"), fields.get("secret_env")
    if (secret is None) == (variable is None):
        raise InvalidInput(f"{where} needs secret, or secret_env with the name of an environment variable")
    if variable is not None:
        secret = os.environ.get(str(variable))
        if secret is None:
            raise InvalidInput(f"{where}: the environment variable {variable} is not set")
    given = secret if isinstance(secret, list) and secret else [secret]
    return tuple(_secret(where, text) for text in given)


def _secret(where: str, text: Any) -> bytes:
    hint = "create one with `zettel webhooks secret`"
    if not isinstance(text, str) or not text.startswith(SECRET):
        raise InvalidInput(f"{where}: a secret begins with {SECRET}: {hint}")
    encoded = text.strip().removeprefix(SECRET).rstrip("=")
    try:
        secret = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if not MIN_SECRET <= len(secret) <= MAX_SECRET:
        raise InvalidInput(f"{where}: a secret is {SECRET} and {MIN_SECRET} to {MAX_SECRET} bytes in base64: {hint}")
    return secret


def new_secret() -> str:
    """Return a random secret for one target."""
    return SECRET + base64.b64encode(os.urandom(32)).decode()
