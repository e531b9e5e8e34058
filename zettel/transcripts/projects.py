"""Names of the projects that coding agents work in; a name is the agent of the project's scope.

The project of a folder is the Git repository around it, else the folder itself. All worktrees of a repository belong to
it. The name consists of the folder's name and a hash of its path: two projects never share a name, and no file in a
project can claim the name of another.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

PROJECT = "project"
"""Metadata key of the folder that a session works in."""

_MAX_NAME = 40
_DIGEST_BYTES = 6
_MAX_NOTE = 4_096  # bytes of a worktree's .git file


def project_name(folder: str) -> str:
    """Return the name of a folder's project, such as ``tide-api-3f9a0c12b4d7``. The folder need not exist.

    Moving the project changes its name. A path that is not absolute here, such as one of another system, is its own
    project.
    """
    root = project_root(Path(folder)) if os.path.isabs(folder) else folder
    path = os.fsencode(root)
    name = re.sub(r"[^\w.-]+", "-", re.split(r"[/\\]", os.fspath(root).rstrip("/\\"))[-1])[:_MAX_NAME].strip("-.")
    digest = hashlib.blake2b(path, digest_size=_DIGEST_BYTES, person=b"zettel.project")
    return f"{name or 'root'}-{digest.hexdigest()}"


def project_root(folder: Path) -> Path:
    """Return the root of the repository around an absolute path, else the path itself, with links resolved.

    A repository in the home folder itself (for configuration files) is not the project of the folders in it.
    """
    folder = Path(os.path.realpath(folder))
    home = Path(os.path.realpath(Path.home()))
    for root in (folder, *folder.parents):
        note = root / ".git"
        if root != home and os.path.lexists(note):
            return _main_worktree(root, note) if note.is_file() else root
    return folder


def _main_worktree(root: Path, note: Path) -> Path:
    """Return the main worktree of a linked one, if that names ``root`` as its worktree; else ``root``.

    Without this check a ``.git`` file could claim any repository on the machine.
    """
    try:
        named = _read(note).removeprefix("gitdir:").strip()
        git_folder = Path(os.path.realpath(root / named))
        is_known = Path(os.path.realpath(git_folder / _read(git_folder / "gitdir").strip())) == root / ".git"
    except (OSError, ValueError):
        return root
    is_worktree = git_folder.parent.name == "worktrees" and git_folder.parent.parent.name == ".git"
    return git_folder.parent.parent.parent if is_known and is_worktree else root


def _read(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(_MAX_NOTE)
