"""Neo4j's jars: supported releases, and their download through Maven into the user's cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from zettel.errors import InvalidInput, LocalServerError
from zettel.graph.neo4j.local.javas import Java, installed

Progress = Callable[[str, int], None]
"""Takes the current step in a few words, and the number of downloaded files."""


class Release(NamedTuple):
    """A release of Neo4j Community: its Java versions, its main class, its download size."""

    version: str
    javas: tuple[int, ...]
    main: str
    megabytes: int

    @property
    def line(self) -> str:
        """The release line: ``5.26`` or ``2026``."""
        first, second, _ = self.version.split(".")
        return f"{first}.{second}" if first == "5" else first


RELEASES = (
    Release("2026.08.1", (21, 25), "org.neo4j.server.Neo4jCommunity", 165),
    Release("5.26.0", (17, 21), "org.neo4j.server.CommunityEntryPoint", 145),
)
"""Newest first."""
BROWSER = "5.24.0"
"""The release of Neo4j Browser that both releases serve."""
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
"""The pinned Maven plugin; a version range would take minutes to resolve."""

_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
_FETCHED = re.compile(r"^\[INFO\] Downloaded from .*\.jar \(")


def choose(version: str | None, javas: Sequence[Java] | None = None) -> tuple[Release, Java]:
    """Return the requested release, else the newest that an installed Java can run, with that Java.

    Raises ``InvalidInput`` for an unknown release, ``LocalServerError`` without a Java for it.
    """
    javas = installed() if javas is None else javas
    releases = RELEASES if version is None else (named(version),)
    for release in releases:
        for java in sorted(javas, key=lambda java: java.major, reverse=True):
            if java.major in release.javas:
                return release, java
    found = ", ".join(sorted({str(java.major) for java in javas})) or "none"
    required = " or ".join(str(major) for major in releases[-1].javas)
    raise LocalServerError(
        f"Neo4j {releases[-1].version} requires Java {required}, and this machine has {found}: "
        "install it, or set JAVA_HOME"
    )


def named(version: str) -> Release:
    """Return the release of a version or a release line. Raises ``InvalidInput``."""
    for release in RELEASES:
        if version in (release.version, release.line):
            return release
    known = " or ".join(release.version for release in RELEASES)
    raise InvalidInput(f"zettel cannot start Neo4j {version}: choose {known}")


def cache_folder() -> Path:
    """Return the user's cache folder."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or "~/AppData/Local").expanduser() / "zettel"
    if sys.platform == "darwin":
        return Path("~/Library/Caches/zettel").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "zettel"


def fetched(release: Release, cache: Path | None = None) -> Path | None:
    """Return the folder with a release's jars if they are downloaded."""
    folder = (cache or cache_folder()) / "neo4j" / release.version / "lib"
    return folder if folder.is_dir() else None


def fetch(release: Release, java: Java, progress: Progress, cache: Path | None = None) -> Path:
    """Return the folder with a release's jars, after a download if necessary. Raises ``LocalServerError``."""
    if (existing := fetched(release, cache)) is not None:
        return existing
    folder = (cache or cache_folder()) / "neo4j" / release.version
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="fetching-", dir=folder) as work:
        (Path(work) / "pom.xml").write_text(_pom(release), encoding="utf-8")
        _run_maven(Path(work), java, release, progress, folder / "maven.log")
        try:
            (Path(work) / "lib").rename(folder / "lib")
        except OSError:  # another process was faster
            if not (folder / "lib").is_dir():
                raise
    return folder / "lib"


def maven() -> str | None:
    """Return Maven's command if it is on the PATH or in MAVEN_HOME."""
    places = [os.environ.get("PATH", "")]
    if home := os.environ.get("MAVEN_HOME"):
        places.append(str(Path(home) / "bin"))
    return shutil.which("mvn", path=os.pathsep.join(places))


def _run_maven(work: Path, java: Java, release: Release, progress: Progress, log: Path) -> None:
    command = maven()
    if command is None:
        raise LocalServerError(
            f"the download of Neo4j {release.version} requires Maven, but there is no mvn on the PATH: "
            "install Maven, or use docker compose up"
        )
    task = f"downloading Neo4j {release.version}, about {release.megabytes} MB, once"
    progress(task, 0)
    arguments = [command, "--batch-mode", "--strict-checksums", "-Dstyle.color=never", COPY, "-DoutputDirectory=lib"]
    files, error = 0, ""
    with (
        log.open("w", encoding="utf-8") as log_file,
        subprocess.Popen(
            arguments, cwd=work, env=os.environ | {"JAVA_HOME": str(java.home)}, text=True, encoding="utf-8",
            errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as process,
    ):  # fmt: skip
        for line in process.stdout or ():
            log_file.write(line)
            if line.startswith("[ERROR]") and not error:
                error = line.removeprefix("[ERROR]").strip()
            if _FETCHED.match(line):
                files += 1
                progress(task, files)
    if process.returncode:
        reason = error or f"exit status {process.returncode}"
        raise LocalServerError(f"Maven could not download Neo4j {release.version}: {reason}; its log is {log}")


def _pom(release: Release) -> str:
    artifacts = [
        ("org.neo4j", "neo4j", release.version),
        ("org.neo4j.app", "neo4j-server", release.version),
        ("org.neo4j.client", "neo4j-browser", BROWSER),
    ]
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>zettel</groupId><artifactId>neo4j</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{''.join(_DEPENDENCY.format(*artifact) for artifact in artifacts)}</dependencies></project>\n"
    )
