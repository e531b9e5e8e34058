"""The wheel: every file of the folders, one top-level name, small weights, a lazy import, documented extras."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).parents[2]
MAX_WEIGHTS_BYTES = 32_000_000  # of both embedders, which ship inside the package
HEAVY = {"torch", "faiss", "litellm", "neo4j", "pydantic", "model2vec", "scipy", "numpy", "dateparser"}


def setuptools_table() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    return dict(table["tool"]["setuptools"])


def test_the_docs_list_every_extra() -> None:
    page = (CHECKOUT / "docs" / "how-to" / "look-after.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert extras.keys() - {"dev", "test"} <= documented


def installed_files() -> dict[str, Path]:
    """Return each file of the package by its installed path, without following links."""
    files = {}
    for package, folder in setuptools_table()["package-dir"].items():
        for where, folders, names in os.walk(CHECKOUT / folder):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in names:
                path = Path(where, name)
                inside = path.relative_to(CHECKOUT / folder).as_posix()
                files[f"{package.replace('.', '/')}/{inside}"] = path
    return files


@pytest.fixture(scope="module")
def wheel_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Return path -> bytes of a wheel, built from a copy by way of the source distribution."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, source)
    for folder in setuptools_table()["package-dir"].values():
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(CHECKOUT / folder, source / folder, symlinks=True, ignore=ignore)
    built = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert len(names) == len(set(names)), "a file is packed twice"
        return {info.filename: info.file_size for info in archive.infolist()}


def test_the_package_list_names_every_folder_with_python_files() -> None:
    modules = [name for name in installed_files() if name.endswith(".py")]
    folders = {name.rpartition("/")[0].replace("/", ".") for name in modules}
    assert setuptools_table()["packages"] == sorted(folders)


@pytest.mark.parametrize("package", [name for name in setuptools_table()["package-dir"] if "." in name])
def test_a_folder_beside_the_engine_is_linked_into_it(package: str) -> None:
    link = CHECKOUT / package.replace(".", "/")
    assert link.is_symlink()
    assert link.resolve() == CHECKOUT / setuptools_table()["package-dir"][package]


def test_the_wheel_contains_every_file(wheel_files: dict[str, int]) -> None:
    expected = {name: path.stat().st_size for name, path in installed_files().items()}
    packed = {name: size for name, size in wheel_files.items() if ".dist-info/" not in name}
    assert packed == expected


def test_wheel_adds_one_top_level_name(wheel_files: dict[str, int]) -> None:
    names = {name.split("/")[0] for name in wheel_files}
    assert {name for name in names if not name.endswith(".dist-info")} == {"zettel"}


def test_shipped_weights_are_small(wheel_files: dict[str, int]) -> None:
    files = {name: size for name, size in wheel_files.items() if name.startswith("zettel/embed/")}
    weights = {name: size for name, size in files.items() if not name.endswith(".py")}
    assert weights, "the default embedder ships inside the package"
    assert sum(weights.values()) < MAX_WEIGHTS_BYTES, weights


def test_import_loads_no_heavy_package() -> None:
    code = "import sys, zettel; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert "zettel" in loaded
    assert HEAVY.isdisjoint(loaded), HEAVY.intersection(loaded)
