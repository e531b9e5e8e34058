"""The project of a folder: the repository around it, stable names, and no claims on other projects."""

from __future__ import annotations

from pathlib import Path

import pytest

from zettel.transcripts.projects import project_name, project_root


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "tide-api"
    (root / ".git" / "worktrees" / "hotfix").mkdir(parents=True)
    (root / "src" / "deep").mkdir(parents=True)
    return root


def test_the_folders_of_a_repository_share_its_name(repository: Path) -> None:
    assert project_root(repository / "src" / "deep") == repository
    name = project_name(str(repository))
    assert name == project_name(str(repository / "src")) == project_name(f"{repository}/")
    assert name.startswith("tide-api-")


def test_a_folder_without_a_repository_is_a_project(tmp_path: Path) -> None:
    assert project_root(tmp_path / "missing") == tmp_path / "missing"
    assert project_name(str(tmp_path / "a")) != project_name(str(tmp_path / "b"))


def test_equal_folder_names_are_different_projects(tmp_path: Path) -> None:
    names = {project_name(f"{tmp_path}/{above}/app") for above in ("one", "two")}
    assert len(names) == 2
    assert all(name.startswith("app-") for name in names)


def test_a_link_to_a_project_is_the_project(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repository)
    assert project_name(str(tmp_path / "link")) == project_name(str(repository))


def test_a_worktree_belongs_to_its_repository(repository: Path, tmp_path: Path) -> None:
    worktree = tmp_path / "hotfix"
    worktree.mkdir()
    admin = repository / ".git" / "worktrees" / "hotfix"
    (worktree / ".git").write_text(f"gitdir: {admin}\n")
    (admin / "gitdir").write_text(f"{worktree / '.git'}\n")
    assert project_name(str(worktree)) == project_name(str(repository))


@pytest.mark.parametrize("claim", ["gitdir: {}/.git/worktrees/hotfix", "gitdir: {}/.git", "", "\0", "gitdir: /nowhere"])
def test_a_folder_cannot_claim_another_repository(repository: Path, tmp_path: Path, claim: str) -> None:
    other = tmp_path / "download"
    other.mkdir()
    (other / ".git").write_text(claim.format(repository))
    (repository / ".git" / "worktrees" / "hotfix" / "gitdir").write_text(f"{tmp_path / 'hotfix' / '.git'}\n")
    assert project_root(other) == other


def test_a_repository_in_the_home_folder_is_not_the_project_of_its_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert project_root(tmp_path / "notes") == tmp_path / "notes"


@pytest.mark.parametrize("folder", ["C:\\src\\app", "src/app", "app", ""])
def test_a_path_of_another_system_names_a_project(folder: str) -> None:
    assert project_name(folder) == project_name(folder)
    assert project_name(folder).rpartition("-")[0] in ("app", "root")
