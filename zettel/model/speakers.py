"""The roles of speakers, and the roles that generic speaker names imply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import model_validator
from typing_extensions import Self

from zettel.model.base import Frozen

Role = Literal["user", "assistant", "system", "tool", "document"]
"""The role of a speaker in a conversation with an assistant, as in chat APIs."""

ROLES: tuple[Role, ...] = get_args(Role)

IMPLIED_ROLES: Mapping[str, Role] = {
    "user": "user", "human": "user",
    "assistant": "assistant", "ai": "assistant", "bot": "assistant", "model": "assistant", "agent": "assistant",
    "system": "system", "developer": "system",
    "tool": "tool", "function": "tool", "tool_result": "tool", "function_call_output": "tool", "ipython": "tool",
    "web": "tool", "browser": "tool",
    "document": "document",
}  # fmt: skip
"""The role that each generic speaker name implies, by the case-folded name."""


def implied_role(speaker: str | None) -> Role | None:
    """Return the role that a generic speaker name such as "user" or "AI" implies; None for other names."""
    return IMPLIED_ROLES.get(speaker.casefold()) if speaker else None


class Spoken(Frozen):
    """The base class of values with a speaker and a role: a missing one follows from the other if possible.

    Subclasses declare the two fields themselves, so that their field order is free.
    """

    if TYPE_CHECKING:
        speaker: str | None = None
        role: Role | None = None

    @model_validator(mode="after")
    def _imply(self) -> Self:
        if self.role is None:
            if (role := implied_role(self.speaker)) is not None:
                object.__setattr__(self, "role", role)
        elif self.speaker is None:
            object.__setattr__(self, "speaker", self.role)
        return self


def with_speaker(fields: Any) -> Any:
    """Return the fields with ``role`` renamed to ``speaker`` if it is a name, as in files of zettel 0.1.

    A value that is not a mapping is returned as it is: its validation fails later.
    """
    if not isinstance(fields, Mapping):
        return fields
    named = fields.get("role")
    if named is None or fields.get("speaker") is not None:
        return dict(fields)
    role = named if named in ROLES else implied_role(named) if isinstance(named, str) else None
    return {**fields, "speaker": named, "role": role}
