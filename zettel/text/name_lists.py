"""Lists of well-known towns, regions, given names and products, which all languages share."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

FOLDER, PRODUCTS = "languages", "products.json"
_PLACES, _ENTITIES = "places.json", "entities.json"


def read_lists(name: str) -> dict[str, Any]:
    """Read a JSON file of the folder of languages."""
    content: dict[str, Any] = json.loads(files("zettel.text").joinpath(FOLDER).joinpath(name).read_text("utf-8"))
    return content


@cache
def towns() -> frozenset[str]:
    """Return well-known towns, in lower case: two of them are two homes."""
    return frozenset(name.lower() for name in read_lists(_PLACES)["towns"])


@cache
def place_words() -> frozenset[str]:
    """Return the towns and regions that are words as well, in lower case: "reading", "nice"."""
    return frozenset(name.lower() for name in read_lists(_PLACES)["words"])


@cache
def regions() -> frozenset[str]:
    """Return countries and parts of them, in lower case: a home in a town may be in one of them."""
    return frozenset(name.lower() for name in read_lists(_PLACES)["regions"])


@cache
def given_names() -> frozenset[str]:
    """Return frequent given names, in lower case."""
    return frozenset(read_lists(_ENTITIES)["given_names"].split("|"))


@cache
def products() -> frozenset[str]:
    """Return well-known products, in lower case."""
    forms = (form.strip() for members in read_lists(PRODUCTS).values() for form in re.split(r"[|=]", members))
    return frozenset(form.lower() for form in forms if form)
