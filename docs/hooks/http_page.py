"""Site hook: the page of HTTP routes, from the OpenAPI description of the server."""

from __future__ import annotations

import re
from typing import Any

from zettel.server.app import openapi

MARK = "<!-- routes -->"
SCOPE = {"tenant", "user", "agent"}
"""Query parameters of almost every route, which the page describes once."""


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Put the routes in the place of the mark."""
    return markdown.replace(MARK, routes_text()) if MARK in markdown else markdown


def routes_text() -> str:
    """Return one section for each route, and one for each body of requests and answers."""
    description = openapi()
    schemas: dict[str, Any] = description["components"]["schemas"]
    sections: dict[str, list[str]] = {}
    for path, operations in description["paths"].items():
        for verb, operation in operations.items():
            tag = (operation.get("tags") or ["server"])[0]
            sections.setdefault(tag, []).append(_route(verb, path, operation))
    parts = [part for tag, routes in sections.items() for part in (f"## {tag.capitalize()}\n", *routes)]
    bodies = [_schema(name, schema) for name, schema in sorted(schemas.items())]
    return "\n".join([*parts, "## Bodies\n", *bodies])


def _route(verb: str, path: str, operation: dict[str, Any]) -> str:
    parameters = operation.get("parameters", ())
    lines = [f"### {verb.upper()} {path}", "", operation.get("description", ""), ""]
    rows = [
        (
            parameter["name"],
            parameter["in"],
            parameter["schema"],
            parameter.get("required"),
            parameter.get("description"),
        )
        for parameter in parameters
        if parameter["name"] not in SCOPE
    ]
    if rows:
        lines += ["| Parameter | Place | Type | Description |", "| --- | --- | --- | --- |"]
        lines += [
            f"| `{name}` | {place} | {_type(schema)}{_default(schema, required)} | {_cell(text)} |"
            for name, place, schema, required, text in rows
        ]
        lines.append("")
    if body := operation.get("requestBody"):
        lines += [f"- **Body:** {_content(body)}"]
    for status, answer in operation["responses"].items():
        if status != "default":
            lines += [f"- **Answer {status}:** {_content(answer) or 'no body'}"]
    if any(parameter["name"] in SCOPE for parameter in parameters):
        lines += ["- Takes the parts of a scope."]
    return "\n".join([*lines, ""])


def _content(body: dict[str, Any]) -> str:
    return ", ".join(
        f"`{kind}`{' ' + _type(content['schema']) if content.get('schema') else ''}"
        for kind, content in body.get("content", {}).items()
    )


def _schema(name: str, schema: dict[str, Any]) -> str:
    lines = [f"### {name}", "", _paragraph(schema.get("description", "")), ""]
    if properties := schema.get("properties"):
        required = set(schema.get("required", ()))
        lines += ["| Field | Type | Description |", "| --- | --- | --- |"]
        lines += [
            f"| `{field}` | {_type(value)}{_default(value, field in required)} | {_cell(value.get('description'))} |"
            for field, value in properties.items()
        ]
    else:
        lines.append(_type(schema))
    return "\n".join([*lines, ""])


def _type(schema: dict[str, Any]) -> str:
    """Return the type of a value in Markdown: JSON's names, and links to bodies."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{_anchor(name)})"
    if options := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        return " or ".join(dict.fromkeys(_type(option) for option in options))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        items = [schema["items"]] if "items" in schema else schema.get("prefixItems", ())
        return f"list of {', '.join(_type(item) for item in items)}" if items else "list"
    return schema.get("format") or schema.get("type") or "any JSON"


def _default(schema: dict[str, Any], required: bool | None) -> str:
    if required:
        return ", required"
    default = schema.get("default")
    return "" if default is None or default in ([], {}, "") else f", default `{default}`"


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _paragraph(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str | None) -> str:
    return _paragraph(text or "").replace("|", "\\|")
