"""Folders are walked as git sees them; files that are named are always taken."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from aliaslint.source.discovery import DEFAULT_EXCLUDES, Excludes, discover


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def found(root: Path, *paths: Path, excludes: Excludes | None = None) -> list[str]:
    discovery = discover(paths or [root], excludes or Excludes(root))
    return [path.relative_to(root).as_posix() for path in discovery.files]


def messages(root: Path, paths: Iterable[Path]) -> list[str]:
    return [error.message for error in discover(list(paths), Excludes(root)).errors]


def test_takes_python_files_in_order(tmp_path: Path) -> None:
    make(tmp_path, "b.py", "a.py", "deep/er/c.py", "notes.txt", "stub.pyi")
    assert found(tmp_path) == ["a.py", "b.py", "deep/er/c.py"]


def test_takes_named_files_whatever_their_suffix(tmp_path: Path) -> None:
    make(tmp_path, "script", "build/a.py")
    paths = [tmp_path / "script", tmp_path / "build" / "a.py"]
    assert found(tmp_path, *paths) == ["build/a.py", "script"]


@pytest.mark.parametrize("folder", [".git", ".venv", "__pycache__", "build", "node_modules"])
def test_leaves_out_default_excludes(tmp_path: Path, folder: str) -> None:
    make(tmp_path, "a.py", f"{folder}/b.py")
    assert found(tmp_path) == ["a.py"]


def test_leaves_out_virtual_environments_of_any_name(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "my-env/pyvenv.cfg", "my-env/lib/b.py")
    assert found(tmp_path) == ["a.py"]


def test_an_excluded_folder_that_is_named_is_walked(tmp_path: Path) -> None:
    make(tmp_path, "build/a.py")
    assert found(tmp_path, tmp_path / "build") == ["build/a.py"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("gen.py", ["a/x.py", "b/a/x.py"]),
        ("a", ["b/gen.py", "gen.py"]),
        ("/a", ["b/a/x.py", "b/gen.py", "gen.py"]),
        ("b/*.py", ["a/x.py", "b/a/x.py", "gen.py"]),
        ("**/x.py", ["b/gen.py", "gen.py"]),
    ],
)
def test_excludes_are_patterns_below_their_root(
    tmp_path: Path, pattern: str, expected: list[str]
) -> None:
    make(tmp_path, "gen.py", "a/x.py", "b/gen.py", "b/a/x.py")
    assert found(tmp_path, excludes=Excludes(tmp_path, (pattern,))) == expected


@pytest.mark.parametrize(("forced", "expected"), [(False, ["build/a.py"]), (True, [])])
def test_forced_excludes_apply_to_named_files(
    tmp_path: Path, forced: bool, expected: list[str]
) -> None:
    make(tmp_path, "build/a.py")
    excludes = Excludes(tmp_path, DEFAULT_EXCLUDES, forced)
    assert found(tmp_path, tmp_path / "build" / "a.py", excludes=excludes) == expected


def test_gitignore_of_the_folder_and_below(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "gen.py", "sub/gen.py", "sub/keep.py", "sub/own.py")
    write(tmp_path / ".gitignore", "gen.py\n")
    write(tmp_path / "sub" / ".gitignore", "!gen.py\nown.py\n")
    assert found(tmp_path) == ["a.py", "sub/gen.py", "sub/keep.py"]


def test_gitignore_above_counts_up_to_the_work_tree(tmp_path: Path) -> None:
    make(tmp_path, "repo/pkg/a.py", "repo/pkg/gen.py", "repo/.git/HEAD")
    write(tmp_path / ".gitignore", "a.py\n")
    write(tmp_path / "repo" / ".gitignore", "gen.py\n")
    assert found(tmp_path, tmp_path / "repo" / "pkg") == ["repo/pkg/a.py"]


def test_lines_of_a_gitignore_that_are_no_pattern_are_passed_over(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "b.py", ".git/HEAD")
    write(tmp_path / ".gitignore", "[z-a]\n\\\n!\nb.py\n")
    assert found(tmp_path) == ["a.py"]


def test_an_ignored_folder_that_is_named_is_walked(tmp_path: Path) -> None:
    make(tmp_path, "env/pkg/a.py", ".git/HEAD")
    write(tmp_path / ".gitignore", "env/\n")
    assert found(tmp_path, tmp_path / "env" / "pkg") == ["env/pkg/a.py"]


def test_no_file_is_taken_twice(tmp_path: Path) -> None:
    make(tmp_path, "pkg/a.py")
    paths = [tmp_path, tmp_path / "pkg", tmp_path / "pkg" / "a.py", tmp_path / "pkg" / ".." / "pkg"]
    assert found(tmp_path, *paths) == ["pkg/a.py"]


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "pkg/a.py")
    os.symlink(tmp_path, tmp_path / "pkg" / "loop", target_is_directory=True)
    assert found(tmp_path) == ["pkg/a.py"]


def test_a_link_beside_its_target_is_the_same_file(tmp_path: Path) -> None:
    make(tmp_path, "z.py")
    os.symlink(tmp_path / "z.py", tmp_path / "a.py")
    assert found(tmp_path) == ["z.py"]


def test_a_link_to_a_file_elsewhere_is_taken(tmp_path: Path) -> None:
    make(tmp_path, "outside.py", "pkg/b.py")
    os.symlink(tmp_path / "outside.py", tmp_path / "pkg" / "a.py")
    assert found(tmp_path, tmp_path / "pkg") == ["pkg/a.py", "pkg/b.py"]


def test_what_is_no_regular_file_is_left_out(tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    os.symlink(tmp_path / "nowhere", tmp_path / "dangling.py")
    os.symlink(tmp_path / "circle.py", tmp_path / "circle.py")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.py").mkdir()
    assert found(tmp_path) == ["a.py"]


def test_a_missing_path_is_an_error_and_the_others_are_found(tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    discovery = discover([tmp_path / "missing", tmp_path / "a.py"], Excludes(tmp_path))
    assert [path.name for path in discovery.files] == ["a.py"]
    assert [(e.path.name, e.message) for e in discovery.errors] == [
        ("missing", "no such file or folder")
    ]


def test_a_folder_without_python_files_is_an_error(tmp_path: Path) -> None:
    make(tmp_path, "notes.txt")
    assert messages(tmp_path, [tmp_path]) == ["no Python files in this folder"]


def test_a_folder_whose_files_are_all_excluded_says_so(tmp_path: Path) -> None:
    make(tmp_path, "build/a.py")
    expected = ["all Python files in this folder are excluded or ignored"]
    assert messages(tmp_path, [tmp_path]) == expected


def test_a_folder_given_twice_is_no_error(tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    assert messages(tmp_path, [tmp_path, tmp_path]) == []
