"""Request bodies: the arguments of the ``AsyncMemory`` methods as JSON objects, under the same names.

A missing field has the method's default; an unknown one is an error. The memory itself checks values beyond their type,
such as times and kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import Parameter
from typing import Any

from pydantic import BaseModel, ConfigDict, create_model

from zettel.model import EDITABLE, Event, Note, OnConflict
from zettel.server.parameters import IN_BODY, RESTRICTED, type_in

NAMES: Mapping[str, str] = {"link": "NewLink"}
"""Names of bodies in the OpenAPI description that would otherwise be those of values."""


class Body(BaseModel):
    """A JSON object without unknown fields."""

    model_config = ConfigDict(extra="forbid")

    def given(self) -> dict[str, Any]:
        """Return the fields of the request as arguments; null means the default."""
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: value for name, value in fields.items() if value is not None}


def body_of(name: str, parameters: Iterable[Parameter]) -> type[Body]:
    """Return the body with the parameters of a method."""
    fields: dict[str, Any] = {}
    for parameter in parameters:
        kind = RESTRICTED.get(parameter.name) or type_in(IN_BODY, parameter)
        fields[parameter.name] = kind if parameter.default is Parameter.empty else (kind | None, parameter.default)
    called = NAMES.get(name) or name.title().replace("_", "")
    return create_model(called, __base__=Body, __doc__=f"See ``{name}``.", **fields)


class Add(Event):
    """See ``add``."""

    tags: tuple[str, ...] = ()
    importance: float | None = None
    pinned: bool = False
    ttl: float | None = None
    on_conflict: OnConflict = "error"
    wait: bool = False


_editable: Mapping[str, Any] = {name: (Note.model_fields[name].annotation, None) for name in EDITABLE}
Update = create_model(
    "Update", __base__=Body, __doc__="The fields to set: see ``update``. Null is a value here.", **_editable
)


class ReleasePrincipal(Body):
    """See ``release``."""

    principal: str


class QuarantinePrincipal(ReleasePrincipal):
    """See ``quarantine``."""

    reason: str = ""


class Evolve(Body):
    """See ``evolve``; without ``wait`` it is ``evolve_later``."""

    wait: bool = True
    timeout: float | None = None
