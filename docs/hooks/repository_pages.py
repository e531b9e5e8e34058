"""Site hook: pages from outside docs/, and links to files of the repository.

Pages link to each other by their paths in the repository, so that the links work on a code host. This hook adds pages
such as the top README to the site, and rewrites each link to the place of its target: a page of the site, a file at
``repo_url``, or without a ``repo_url`` the name of the file as code.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
ADDED = {
    "README.md": "index.md",
    "docs/README.md": "all-pages.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples.md",
    "clients/typescript/README.md": "typescript.md",
}
"""Pages of the site that are stored outside docs/, or under another name there: path in the repository to page."""

_REPOSITORY_PATHS = {page: path for path, page in ADDED.items()}
_TOKEN = re.compile(
    r"^(?P<fence>`{3,}).*?^(?P=fence) *$"
    r"|(?P<image>!?)\[(?P<text>(?:`[^`]*`|[^\]`])*)\]\((?P<target>[^)\s]+)\)"
    r'|(?P<attribute>src|srcset|href)="(?P<value>[^"]+)"'
    r"|(?P<span>`[^`\n]+`)",
    re.MULTILINE | re.DOTALL,
)
"""Code, which stays as it is, links, and attributes of HTML."""
_ABSOLUTE = re.compile(r"[a-z][a-z+.-]*:|#|//")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages from outside docs/."""
    files.remove(files.get_file_from_path("README.md"))
    for path, page in ADDED.items():
        if (ROOT / path).exists():
            files.append(File.generated(config, page, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite the links of a page, and escaped bars in code."""
    own = page.file.src_uri
    folder = posixpath.dirname(repository_path(own))

    def rewritten(match: re.Match[str]) -> str:
        if match["span"]:  # code hosts need the backslash in tables, Python-Markdown shows it
            return match[0].replace("\\|", "|")
        target = match["target"] or match["value"]
        if target is None or _ABSOLUTE.match(target):
            return match[0]
        path, anchor = _resolved(folder, target)
        source = _page_of(path, files)
        if match["target"]:
            return _link(match, source and posixpath.relpath(source, posixpath.dirname(own) or "."), path, anchor)
        url = source and posixpath.relpath(files.get_file_from_path(source).url, posixpath.dirname(page.url) or ".")
        return f'{match["attribute"]}="{url or _at_host(config, path) or "#"}{anchor}"'

    def _link(match: re.Match[str], place: str | None, path: str, anchor: str) -> str:
        text = match["text"]
        if place := place or _at_host(config, path):
            return f"{match['image']}[{text}]({place}{anchor})"
        return text if "`" in text else f"`{text}`"

    return _TOKEN.sub(rewritten, markdown)


def repository_path(page: str) -> str:
    """Return the path in the repository of a page of the site."""
    return _REPOSITORY_PATHS.get(page, f"docs/{page}")


def _resolved(folder: str, target: str) -> tuple[str, str]:
    path, hash_sign, anchor = target.partition("#")
    return posixpath.normpath(posixpath.join(folder, path)), hash_sign + anchor


def _page_of(path: str, files: Any) -> str | None:
    """Return the file of the site that is stored at a path of the repository."""
    source = ADDED.get(path) or path.removeprefix("docs/")
    is_on_site = path in ADDED or path.startswith("docs/")
    return source if is_on_site and files.get_file_from_path(source) is not None else None


def _at_host(config: Any, path: str) -> str | None:
    """Return the address of a file of the repository, None without a ``repo_url``."""
    if not config.repo_url:
        return None
    return f"{config.repo_url.rstrip('/')}/{'tree' if (ROOT / path).is_dir() else 'blob'}/main/{path}"
