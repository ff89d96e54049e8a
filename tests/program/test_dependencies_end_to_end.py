"""The same line is a bug or none, as the caches are that the code will run with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aliaslint import engine
from aliaslint.rules import Selection

MODEL = """\
from mlx_lm.models.base import create_attention_mask


class Attention:
    def __call__(self, x, cache):
        offset = cache.offset
        keys, values = cache.update_and_fetch(x, x)
        return self.rope(x, offset=offset) @ keys
"""
OWN_CACHE = """\
from mlx_lm.models.cache import BatchKVCache


class Counting(BatchKVCache):
    def __init__(self, padding):
        super().__init__(padding)
        self.count = 0

    def update_and_fetch(self, keys, values):
        self.count += 1
        return super().update_and_fetch(keys, values)


def step(padding, x):
    cache = Counting(padding)
    offset = cache.offset
    cache.update_and_fetch(x, x)
    return offset + 1
"""
CACHES = {
    "0.31.3": "        self.offset += keys.shape[2]\n",
    "0.32.2": "        self.offset = self.offset + keys.shape[2]\n",
}
Situation = Callable[[Path, str, pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def no_active_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)


def install(environment: Path, version: str) -> None:
    """Install a stand-in for mlx-lm, with a batched cache as that release has it."""
    site = environment / "lib" / "python3.12" / "site-packages"
    (site / "mlx_lm" / "models").mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (site / "mlx_lm" / "__init__.py").write_text("")
    (site / "mlx_lm" / "models" / "cache.py").write_text(
        "import mlx.core as mx\n\n\nclass BatchKVCache:\n    def __init__(self, left_padding):\n"
        "        self.offset = mx.array([-p for p in left_padding])\n\n"
        f"    def update_and_fetch(self, keys, values):\n{CACHES[version]}"
        "        return keys, values\n"
    )
    information = site / f"mlx_lm-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Name: mlx-lm\nVersion: {version}\n\n")


def beside(folder: Path, version: str, patch: pytest.MonkeyPatch) -> None:
    install(folder / ".venv", version)


def above(folder: Path, version: str, patch: pytest.MonkeyPatch) -> None:
    install(folder.parent / ".venv", version)


def active(folder: Path, version: str, patch: pytest.MonkeyPatch) -> None:
    install(folder.parent / "active", version)
    patch.setenv("VIRTUAL_ENV", str(folder.parent / "active"))


def in_the_target(folder: Path, version: str, patch: pytest.MonkeyPatch) -> None:
    install(folder.parent / "temporary", version)
    site = folder.parent / "temporary" / "lib" / "python3.12" / "site-packages"
    (site / "mlx_lm").rename(folder / "mlx_lm")


def locked(folder: Path, version: str, patch: pytest.MonkeyPatch) -> None:
    (folder / "uv.lock").write_text(f'[[package]]\nname = "mlx-lm"\nversion = "{version}"\n')


def declared(folder: Path, version: str, patch: pytest.MonkeyPatch) -> None:
    text = f'[project]\nname = "p"\ndependencies = ["mlx-lm>={version}"]\n'
    (folder / "pyproject.toml").write_text(text)


def configured(folder: Path, version: str, patch: pytest.MonkeyPatch) -> None:
    (folder / "pyproject.toml").write_text(f'[tool.aliaslint]\nmlx-lm = "{version}"\n')


def from_a_hook(folder: Path, version: str, patch: pytest.MonkeyPatch) -> None:
    hook = folder.parent / "hook"
    (hook / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
    (hook / "pyvenv.cfg").write_text("home = /usr/bin\n")
    patch.setenv("VIRTUAL_ENV", str(hook))
    locked(folder, version, patch)


SITUATIONS: list[Situation] = [
    beside,
    above,
    active,
    in_the_target,
    locked,
    declared,
    configured,
    from_a_hook,
]


def codes(folder: Path, *, python: Path | None = None) -> list[str]:
    selection = Selection(select=("AL101", "AL102"))
    request = engine.Request((folder / "user.py",), None, python, selection, cache=False)
    return [finding.code for finding in engine.check(request).findings]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / ".git").mkdir()
    return folder


@pytest.mark.parametrize("program", [MODEL, OWN_CACHE], ids=["model", "subclass"])
@pytest.mark.parametrize(("version", "found"), [("0.31.3", ["AL101"]), ("0.32.2", [])])
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda s: s.__name__)
def test_capture_is_judged_against_the_caches_it_runs_with(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    situation: Situation,
    version: str,
    found: list[str],
    program: str,
) -> None:
    (project / "user.py").write_text(program)
    situation(project, version, monkeypatch)
    assert codes(project) == found


@pytest.mark.parametrize(("version", "found"), [("0.31.3", ["AL101"]), ("0.32.2", [])])
def test_named_interpreter_decides(project: Path, version: str, found: list[str]) -> None:
    (project / "user.py").write_text(MODEL)
    install(project / ".venv", "0.32.2" if version == "0.31.3" else "0.31.3")
    install(project.parent / "named", version)
    assert codes(project, python=project.parent / "named") == found


def test_with_nothing_known_a_capture_is_al102(project: Path) -> None:
    (project / "user.py").write_text(MODEL)
    assert codes(project) == ["AL102"]


def package(folder: Path, version: str) -> None:
    """Make a package with a model and a cache of its own, in place or not as in that release."""
    install(folder / ".venv", version)
    site = folder / ".venv" / "lib" / "python3.12" / "site-packages"
    (site / "mlx_lm").rename(folder / "fork")
    (folder / "fork" / "models" / "attention.py").write_text(MODEL.partition("\n\n\n")[2])


@pytest.mark.parametrize("order", [("0.31.3", "0.32.2"), ("0.32.2", "0.31.3")])
def test_of_two_copies_of_a_package_each_has_its_own_caches(
    project: Path, order: tuple[str, str]
) -> None:
    for name, version in zip("ab", order, strict=True):
        package(project / name, version)
    request = engine.Request((project,), None, None, Selection(select=("AL101",)), cache=False)
    found = [f.path.relative_to(project).parts[0] for f in engine.check(request).findings]
    assert found == ["ab"[order.index("0.31.3")]]
