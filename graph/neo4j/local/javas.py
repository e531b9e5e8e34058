"""Discovery of installed Java versions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FOLDERS = {
    "darwin": (
        "/Library/Java/JavaVirtualMachines/*/Contents/Home",
        "~/Library/Java/JavaVirtualMachines/*/Contents/Home",
        "/opt/homebrew/opt/openjdk*",
        "/usr/local/opt/openjdk*",
    ),
    "win32": (
        "C:/Program Files/Java/*",
        "C:/Program Files/Eclipse Adoptium/*",
        "C:/Program Files/Microsoft/jdk*",
        "C:/Program Files/Zulu/*",
    ),
    "linux": ("/usr/lib/jvm/*", "/usr/java/*", "/opt/java/*"),
}
"""Install locations of Java, by ``sys.platform``."""
EVERYWHERE = ("~/.sdkman/candidates/java/*", "~/.jdks/*")
"""Install locations of SDKMAN and editors on every platform."""

_RELEASE = re.compile(r'^JAVA_VERSION="([^"]+)"', re.MULTILINE)
_PRINTED = re.compile(r'version "([^"]+)"')


class Java(NamedTuple):
    """An installed Java: its home folder and its major version."""

    home: Path
    major: int

    @property
    def command(self) -> Path:
        return _command(self.home)


def installed() -> list[Java]:
    """Return every Java in JAVA_HOME, on the PATH and in the usual folders, in this order, without duplicates."""
    found: dict[Path, Java] = {}
    for home in _homes():
        if home not in found and (major := _major(home)) is not None:
            found[home] = Java(home, major)
    return list(found.values())


def _homes() -> Iterator[Path]:
    if named := os.environ.get("JAVA_HOME"):
        yield Path(named).resolve()
    if on_path := shutil.which("java"):
        yield Path(on_path).resolve().parent.parent
    for pattern in (*FOLDERS.get(sys.platform, ()), *EVERYWHERE):
        full = Path(pattern).expanduser()
        yield from sorted({home.resolve() for home in Path(full.anchor).glob(full.relative_to(full.anchor).as_posix())})


def _command(home: Path) -> Path:
    return home / "bin" / ("java.exe" if sys.platform == "win32" else "java")


def _major(home: Path) -> int | None:
    """Return the major version of the Java in a folder, or None without a working Java."""
    if not _command(home).is_file():
        return None
    release = home / "release"
    match = _RELEASE.search(release.read_text(encoding="utf-8", errors="replace")) if release.is_file() else None
    if match is None:
        ran = subprocess.run(
            [_command(home), "-version"], capture_output=True, text=True, errors="replace", check=False
        )
        match = _PRINTED.search(ran.stderr)
    return None if match is None else major_of(match[1])


def major_of(version: str) -> int | None:
    """Return 17 for ``17.0.15``, 8 for ``1.8.0_402``, 25 for ``25-ea``."""
    numbers = re.findall(r"\d+", version)
    if not numbers:
        return None
    return int(numbers[1] if numbers[0] == "1" and len(numbers) > 1 else numbers[0])
