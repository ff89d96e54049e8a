"""Finding what to verify, what a change touches, and where a fault can be put in."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from aliaslint.errors import UserError
from aliaslint.verify.changes import affected, changed_since, touches_caches
from aliaslint.verify.inject import inplace_caches, moved_rotation
from aliaslint.verify.target import Target, TargetError, find_target

BOTH = "Model, ModelArgs"
MODEL = "from .base import x\n\nclass ModelArgs: ...\n\nclass Model: ...\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    models = tmp_path / "checkout" / "pkg" / "models"
    models.mkdir(parents=True)
    (models / "cache.py").write_text("")
    (models / "base.py").write_text("")
    (models / "rope.py").write_text("")
    (models / "one.py").write_text(MODEL)
    (models / "two.py").write_text("from . import rope\nfrom .one import Model, ModelArgs\n")
    (models / "helper.py").write_text("class Model: ...\n")
    return models.parent


@pytest.mark.parametrize("where", ["", "..", "models", "models/one.py"])
def test_package_is_found_from_around_it(tree: Path, where: str) -> None:
    assert find_target(tree / where) == Target("pkg", tree.resolve())


def test_package_two_levels_down(tree: Path) -> None:
    assert find_target(tree.parent.parent).folder == tree.resolve()


def test_place_without_a_package(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no package with models"):
        find_target(tmp_path)


def test_package_without_models_but_with_caches(tmp_path: Path) -> None:
    package = tmp_path / "server" / "kv"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "paged.py").write_text("class C:\n    def update_and_fetch(self): ...\n")
    assert find_target(tmp_path) == Target("server", package.parent.resolve())
    assert find_target(tmp_path).architectures() == []


def test_package_with_models_alone(tmp_path: Path) -> None:
    models = tmp_path / "server" / "models"
    models.mkdir(parents=True)
    (models.parent / "__init__.py").write_text("")
    (models / "one.py").write_text(MODEL)
    found = find_target(tmp_path)
    assert (found.name, found.architectures(), found.cache_package) == ("server", ["one"], "mlx_lm")


def test_package_with_caches_uses_its_own(tree: Path) -> None:
    assert find_target(tree).cache_package == "pkg"


def test_fault_needs_a_cache_module(tmp_path: Path) -> None:
    from aliaslint.verify import VerifyRequest
    from aliaslint.verify.inject import self_test

    (tmp_path / "models").mkdir()
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "models" / "one.py").write_text(MODEL)
    with pytest.raises(UserError, match=r"has no models/cache\.py to put a fault into"):
        self_test(VerifyRequest(tmp_path))


def test_missing_place(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no such file or folder"):
        find_target(tmp_path / "nowhere")


def test_architectures_give_model_and_arguments(tree: Path) -> None:
    assert find_target(tree).architectures() == ["one", "two"]


def test_nearest_of_several_packages_is_named_by_the_user(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "models").mkdir(parents=True)
        (tmp_path / name / "models" / "cache.py").write_text("")
    with pytest.raises(TargetError, match=r"name one of .*/a, .*/b$"):
        find_target(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "cache.py").write_text("")
    assert find_target(tmp_path).folder == tmp_path.resolve()


def test_folder_that_may_not_be_read_holds_no_package(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = os.listdir

    def refuse(folder: Path) -> list[str]:
        if Path(folder).name == "private":
            raise PermissionError(13, "Permission denied", str(folder))
        return listed(folder)

    (tree.parent / "private").mkdir()
    monkeypatch.setattr(os, "listdir", refuse)
    assert find_target(tree.parent.parent).folder == tree.resolve()
    with pytest.raises(TargetError, match="no package"):
        find_target(tree.parent / "private")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("three.py", "from .one import *\n"),
        ("three.py", "def ("),
        ("three.py", "\0"),
        ("three.py", f"try:\n    import a\nexcept ImportError:\n    from .one import {BOTH}\n"),
        ("three.py", "if x:\n    Model: type = y\nelse:\n    z = 1\nModelArgs: type = z\n"),
        ("three/__init__.py", f"from .inner import {BOTH}\n"),
        ("three/__init__.py", "from ..one import *\n"),
    ],
)
def test_no_way_to_write_an_architecture_leaves_it_out(tree: Path, path: str, text: str) -> None:
    file = tree / "models" / path
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    target = find_target(tree)
    assert (target.architectures(), target.module("three")) == (["one", "three", "two"], file)


@pytest.mark.parametrize(
    "text", ["", "def f():\n    class Model: ...\nModelArgs = 1\n", "from .three import *\n"]
)
def test_module_without_model_is_no_architecture(tree: Path, text: str) -> None:
    (tree / "models" / "three.py").write_text(text)
    assert find_target(tree).architectures() == ["one", "two"]


def test_change_inside_a_package_of_models(tree: Path) -> None:
    folder = tree / "models" / "three"
    folder.mkdir()
    (folder / "__init__.py").write_text(f"from .inner import {BOTH}\n")
    (folder / "inner.py").write_text(f"from pkg.layers.norm import f\n{MODEL}")
    target = find_target(tree)
    for changed in ("models/three/inner.py", "layers/norm.py"):
        assert affected(target, [tree / changed]) == ["three"]


def test_caches_beside_the_models_may_be_anyones(tree: Path) -> None:
    target = find_target(tree)
    for name in ("paged.py", "models/one.py"):
        (tree / name).write_text(MODEL + "class C:\n    def update_and_fetch(self): ...\n")
    assert touches_caches(target, [tree / "paged.py"])
    assert not touches_caches(target, [tree / "models" / "one.py"])
    assert not touches_caches(target, [tree / "models" / "two.py"])


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (["models/one.py"], ["one", "two"]),
        (["models/two.py"], ["two"]),
        (["models/rope.py"], ["two"]),
        (["models/base.py"], ["one", "two"]),
        (["models/cache.py"], ["one", "two"]),
        (["models/helper.py"], []),
        (["server.py"], []),
        (["models/one"], []),
        (["other/one.py"], []),
    ],
)
def test_change_touches_what_imports_it(
    tree: Path, changed: list[str], expected: list[str]
) -> None:
    assert affected(find_target(tree), [tree / path for path in changed]) == expected


def test_changes_since_a_revision(tree: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", "-C", str(tree.parent), *identity, *arguments], check=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    (tree / "models" / "two.py").write_text("")
    (tree / "models" / "three\u00e9.py").write_text(MODEL)
    found = changed_since(find_target(tree), "HEAD")
    assert sorted(path.name for path in found) == ["three\u00e9.py", "two.py"]
    with pytest.raises(UserError, match="--changed-since: fatal: bad revision 'nowhere'"):
        changed_since(find_target(tree), "nowhere")
    with pytest.raises(UserError, match="bad revision '--output"):
        changed_since(find_target(tree), f"--output={tree / 'made'}")
    assert not (tree / "made").exists()


def test_revision_without_repository(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tree.parent.parent))
    with pytest.raises(UserError, match="--changed-since: fatal: not a git repository"):
        changed_since(find_target(tree), "HEAD")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("        self.offset = self.offset + n\n", "        self.offset += n\n"),
        ("        self.offset = self.offset - (a - b)\n", "        self.offset -= a - b\n"),
        (
            "        self.offset = (\n            self.offset + n\n        )\n",
            "        self.offset += n\n",
        ),
        ("        self.offset = other.offset + n\n", None),
        ("        self.index = self.index + n\n", None),
        ("        self.offset = self.offset[n]\n", None),
    ],
)
def test_rebinding_is_put_back_in_place(before: str, after: str | None) -> None:
    frame = "class C:\n    def f(self):\n{}        return n\n"
    assert inplace_caches(frame.format(before)) == frame.format(after or before)


def test_rotation_of_the_queries_is_moved_behind_the_update() -> None:
    source = (
        "def f(self, cache):\n"
        "    if cache is not None:\n"
        "        queries = self.rope(queries, offset=cache.offset)\n"
        "        keys = self.rope(keys, offset=cache.offset)\n"
        "        keys, values = cache.update_and_fetch(keys, values)\n"
        "    return queries\n"
    )
    assert moved_rotation(source) == (
        "def f(self, cache):\n"
        "    if cache is not None:\n"
        "        captured_offset = cache.offset\n"
        "        keys = self.rope(keys, offset=cache.offset)\n"
        "        keys, values = cache.update_and_fetch(keys, values)\n"
        "        queries = self.rope(queries, offset=captured_offset)\n"
        "    return queries\n"
    )


def test_model_without_the_usual_lines_takes_no_fault() -> None:
    assert moved_rotation("def f(x):\n    return x\n") is None


def test_model_types_that_are_mapped_to_a_module(tree: Path) -> None:
    (tree / "utils.py").write_text('MODEL_REMAPPING = {"a": "one", "b": "two", "c": "one"}\n')
    target = find_target(tree)
    assert target.aliases() == {"one": ("a", "c"), "two": ("b",)}
    assert [target.model_type(name) for name in ("a", "b", "one", "d")] == [
        "one",
        "two",
        "one",
        "d",
    ]
    (tree / "utils.py").write_text('MODEL_REMAPPING: dict[str, str] = {"a": "one"}\n')
    assert target.aliases() == {"one": ("a",)}


def test_missing_mlx_is_one_line(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import util

    from aliaslint.verify import VerifyError, VerifyRequest, run

    monkeypatch.setattr(util, "find_spec", lambda name: None)
    with pytest.raises(VerifyError, match="which is not installed: pip install"):
        run(VerifyRequest(tree))


def test_unknown_architecture_is_one_line(tree: Path) -> None:
    from aliaslint.verify import VerifyError, VerifyRequest
    from aliaslint.verify.session import chosen_plans

    request = VerifyRequest(tree, architectures=("one", "nope"))
    with pytest.raises(VerifyError, match=r"has no architecture named nope$"):
        chosen_plans(request, find_target(tree))
    close = VerifyRequest(tree, architectures=("tvo",))
    with pytest.raises(VerifyError, match=r"has no architecture named tvo; did you mean two\?"):
        chosen_plans(close, find_target(tree))


def test_configuration_of_an_unknown_architecture_is_one_line(tree: Path) -> None:
    from aliaslint.verify import VerifyError, VerifyRequest
    from aliaslint.verify.session import chosen_plans

    request = VerifyRequest(tree, configs={"nope": {}})
    with pytest.raises(VerifyError, match="has no architecture named nope"):
        chosen_plans(request, find_target(tree))


@pytest.mark.parametrize(
    ("absent", "named"),
    [({"mlx"}, "MLX"), ({"numpy"}, "NumPy"), ({"mlx", "numpy"}, "MLX and NumPy")],
)
def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, absent: set[str], named: str
) -> None:
    from importlib import util

    from aliaslint.verify import VerifyError
    from aliaslint.verify.session import require_mlx

    monkeypatch.setattr(util, "find_spec", lambda name: None if name in absent else object())
    with pytest.raises(VerifyError, match=f"verify needs {named}, which is not installed"):
        require_mlx()
