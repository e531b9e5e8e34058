"""Arguments of the memory tools as pydantic models, and their JSON schemas."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_HITS = 20
"""Largest number of memories that one search may return."""
FEW_HITS = 5
"""Default number of memories that a search returns."""

Id = Annotated[str, Field(description="Id of a memory, copied exactly from an answer. It begins with n_.")]
Tags = Annotated[list[str] | None, Field(max_length=20)]
Conditions = Annotated[
    str | None,
    Field(
        description='Only memories whose metadata or fields meet this, as JSON: {"team": "red", "price": {"gte": 3}}. '
        "Operators: eq, ne, gt, gte, lt, lte, in, nin, contains, icontains, exists; and, or, not."
    ),
]


class Arguments(BaseModel):
    """Arguments of a tool. Unknown ones are refused, and none of them names a scope."""

    model_config = ConfigDict(extra="forbid")


class Add(Arguments):
    text: str = Field(
        description="One fact or event in a full sentence that can be understood alone: names in place of pronouns, "
        "dates in place of 'yesterday'."
    )
    who: str | None = Field(None, description="Who said or did it, by name.")
    when: str | None = Field(
        None, description="When it happened, if known, in ISO 8601, such as 2024-05-01 or 2024-05-01T09:00Z."
    )
    title: str | None = Field(None, description="Name of the thing it describes, by which other memories mention it.")
    tags: Tags = Field(None, description="A few single words to find it by.")
    pinned: bool = Field(False, description="True only for what must be known in every conversation.")
    expires_at: str | None = Field(
        None, description="Only for what must be forgotten: the time from which it is, in ISO 8601."
    )


class Search(Arguments):
    query: str = Field(description="A full question about one thing, with the names in it.")
    limit: int = Field(FEW_HITS, ge=1, le=MOST_HITS, description="How many memories at most.")
    who: str | None = Field(None, description="Only what this person said, by the name under 'who' in answers.")
    since: str | None = Field(None, description="Only what happened then or later, in ISO 8601.")
    until: str | None = Field(None, description="Only what happened before, in ISO 8601.")
    as_of: str | None = Field(None, description="Answer as it was true then, in ISO 8601, and not as it is now.")
    tags: Tags = Field(None, description="Only memories with one of these tags.")
    filter: Conditions = None
    archived: bool = Field(False, description="True looks through the archive too, which contains old memories.")


class Query(Arguments):
    words: list[str] | None = Field(
        None,
        max_length=20,
        description="Words that the text contains, in any form, with synonyms and irregular forms: one of them must be "
        "there. Of an entry of several words all must be there.",
    )
    who: str | None = Field(None, description="Only messages of this person, by the name under 'who' in answers.")
    since: str | None = Field(None, description="Only what happened then or later, in ISO 8601.")
    until: str | None = Field(None, description="Only what happened before, in ISO 8601.")
    session: str | None = Field(None, description="Only memories of the conversation with this name.")
    tags: Tags = Field(None, description="Only memories with one of these tags.")
    filter: Conditions = None
    group_by: list[Literal["who", "session", "tag", "year", "month", "week", "day", "weekday"]] | None = Field(
        None, max_length=3, description="Count for each combination of these, the largest counts first."
    )
    newest_first: bool = Field(True, description="False lists the oldest memories first.")
    limit: int = Field(FEW_HITS, ge=0, le=MOST_HITS, description="How many memories or groups at most; 0: only count.")


class Get(Arguments):
    id: Id


class Entity(Arguments):
    name: str = Field(description="A name: of a person, an organisation, a place or a thing, or a phrase as 'my wife'.")


class Update(Arguments):
    id: Id
    text: str | None = Field(None, description="The corrected text, in full. It takes the place of the old one.")
    title: str | None = Field(None, description="Name of the thing it describes.")
    tags: Tags = Field(None, description="All the tags it is to have.")
    importance: float | None = Field(None, ge=0, le=1, description="How much it matters, from 0 to 1.")
    pinned: bool | None = Field(None, description="Whether it must be known in every conversation.")


class Delete(Arguments):
    id: Id


class Archive(Arguments):
    id: Id


class Restore(Arguments):
    id: Id


class Link(Arguments):
    source: str = Field(description="Id of the memory that the link starts from; with supersedes the newer one.")
    target: str = Field(description="Id of the other memory; with supersedes the outdated one.")
    type: Literal["relates", "supersedes", "contradicts"] = Field(
        "relates",
        description="relates: they belong together. supersedes: source replaces target, which is no longer true. "
        "contradicts: they cannot both be true, and it is not known which is.",
    )
    reason: str = Field(max_length=500, description="Why, in one sentence.")


class Unlink(Arguments):
    source: str = Field(description="Id of the memory that the link starts from; with supersedes the newer one.")
    target: str = Field(description="Id of the other memory.")
    type: Literal["relates", "supersedes", "updates", "contradicts"] = Field(
        "relates", description="The type of the link."
    )


class History(Arguments):
    id: Id


class Report(Arguments):
    search_id: str = Field(description="The search_id of the answer of search_memories. It begins with s_.")
    used: list[str] = Field(
        max_length=MOST_HITS, description="Ids of the memories of this search that you used; none: an empty list."
    )
    outcome: Literal["success", "failure"] | None = Field(
        None, description="Whether the task that you searched for succeeded, if you know it."
    )


def schema_of(model: type[Arguments]) -> dict[str, Any]:
    """Return a flat JSON schema of a tool's arguments, without titles.

    An optional argument has one type and is not required; null is accepted although the schema does not list it.
    """
    made = model.model_json_schema()
    properties = {name: _simplified(of) for name, of in made["properties"].items()}
    required = {"required": made["required"]} if made.get("required") else {}
    return {"type": "object", "properties": properties, **required, "additionalProperties": False}


def _simplified(schema: dict[str, Any]) -> dict[str, Any]:
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    rest = {key: value for key, value in schema.items() if key not in ("title", "anyOf")}
    if "default" in rest and rest["default"] is None:
        del rest["default"]
    return {**(choices[0] if choices else {}), **rest}
