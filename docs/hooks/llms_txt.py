"""Site hook: ``llms.txt``, a list of all pages for language models, and ``llms-full.txt``, their text."""

from __future__ import annotations

import importlib
import inspect
import posixpath
import re
from pathlib import Path
from typing import Any

_OBJECT = re.compile(r"^::: ([\w.]+)\n(?:    .*\n|\n(?=    ))*", re.MULTILINE)
_LINKED = re.compile(r"!?\[((?:`[^`]*`|[^\]`])*)\]\([^)\s]+\)")
_SOURCES = re.compile(r"<!-- numbers: [^>]*-->\s?")
_texts: dict[str, str] = {}
_nav: list[Any] = []


def on_nav(nav: Any, config: Any, files: Any) -> Any:
    """Remember the order of the pages."""
    _texts.clear()
    _nav[:] = nav.items
    return nav


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Remember the text of a page, without the marks of the sources of its numbers."""
    _texts[page.file.src_uri] = _OBJECT.sub(lambda match: documentation(match[1]), _SOURCES.sub("", markdown) + "\n")
    return markdown


def on_post_build(config: Any) -> None:
    """Write both files."""
    head = f"# {config.site_name}\n\n> {config.site_description}\n"
    listed, full = [head], [head]
    for section in _nav:
        pages = _pages(section)
        listed.append(f"## {section.title}\n")
        listed += [
            f"- [{title_of(page)}]({_url(config, page)}): {opening(_texts[page.file.src_uri])}" for page in pages
        ]
        listed.append("")
        full += [_texts[page.file.src_uri].strip() + "\n" for page in pages]
    target = Path(config.site_dir)
    (target / "llms.txt").write_text("\n".join(listed), encoding="utf-8")
    (target / "llms-full.txt").write_text("\n".join(full), encoding="utf-8")


def opening(markdown: str) -> str:
    """Return the first sentence below the title of a page, without links."""
    body = re.sub(r"^# .*$", "", markdown, count=1, flags=re.MULTILINE).strip()
    return re.split(r"(?<=[.!?])\s", _LINKED.sub(r"\1", body.partition("\n\n")[0]))[0].replace("\n", " ")


def title_of(page: Any) -> str:
    """Return the heading of a page, else its title in the navigation."""
    heading = re.search(r"^# (.+)$", _texts[page.file.src_uri], re.MULTILINE)
    return heading[1] if heading else str(page.title)


def documentation(path: str) -> str:
    """Return the signature and the docstring of an object, and of its public methods, as text."""
    module, _, name = path.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    described = [f"## {name}\n\n{inspect.getdoc(value) or ''}\n"]
    for member, method in vars(value).items():
        if inspect.isfunction(method) and not member.startswith("_"):
            described.append(f"### {member}{inspect.signature(method)}\n\n{inspect.getdoc(method) or ''}\n")
    return "\n".join(described)


def _pages(section: Any) -> list[Any]:
    if section.is_page:
        return [section]
    return [page for child in section.children or () for page in _pages(child)]


def _url(config: Any, page: Any) -> str:
    return posixpath.join(config.site_url or "", page.url)
