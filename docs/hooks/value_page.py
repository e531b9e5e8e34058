"""Site hook: a table of the fields below each documented value."""

from __future__ import annotations

import dataclasses
import importlib
import re
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, ForwardRef, Literal, Union, get_args, get_origin

_OBJECT = re.compile(r"^::: (?P<path>zettel\.[\w.]+)\n    options: \{.*\bmembers: false\b.*\}$", re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Add a table below each object that is documented without its members."""
    return _OBJECT.sub(lambda match: f"{match[0]}\n\n{table(match['path'])}", markdown)


def table(path: str) -> str:
    """Return the fields of a value: a Pydantic model, an enumeration or a dataclass."""
    module, _, name = path.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    if issubclass(value, Enum):
        return "One of " + ", ".join(f"`{member.value}`" for member in value) + "."
    rows = [f"| `{field}` | {_type(kind)} | {_default(default)} |" for field, kind, default in fields(value)]
    return "\n".join(["| Field | Type | Default |", "| --- | --- | --- |", *rows])


def fields(value: Any) -> list[tuple[str, Any, Any]]:
    """Return the name, the type and the default of each field."""
    if hasattr(value, "model_fields"):
        return [
            (name, field.annotation, ... if field.is_required() else field.get_default(call_default_factory=True))
            for name, field in value.model_fields.items()
        ]
    if dataclasses.is_dataclass(value):
        return [(field.name, field.type, _dataclass_default(field)) for field in dataclasses.fields(value)]
    return [(name, kind, value._field_defaults.get(name, ...)) for name, kind in value.__annotations__.items()]


def _dataclass_default(field: Any) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return ... if field.default is dataclasses.MISSING else field.default


def _type(kind: Any) -> str:
    return f"`{type_text(kind)}`"


def type_text(kind: Any) -> str:
    """Return a type as code shows it, without modules and validators."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return type_text(arguments[0])
    if origin in (Union, UnionType):
        return " | ".join(type_text(argument) for argument in arguments)
    if origin is Literal:
        return " | ".join(repr(argument) for argument in arguments)
    if origin is not None:
        return f"{origin.__name__}[{', '.join(type_text(argument) for argument in arguments)}]"
    if kind in (..., NoneType):
        return "..." if kind is ... else "None"
    if isinstance(kind, ForwardRef):
        return kind.__forward_arg__
    return kind if isinstance(kind, str) else str(kind.__name__)


def _default(value: Any) -> str:
    if value is ...:
        return "required"
    value = value.value if isinstance(value, Enum) else value
    return f"`{value!r}`"
