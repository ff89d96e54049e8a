"""Which source or table stands for mlx_lm, in each of the situations that a run can meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliaslint.errors import UserError
from aliaslint.program import effect_tables
from aliaslint.program.dependencies import (
    Dependency,
    admitted_versions,
    imported_packages,
    locate,
)


@pytest.fixture(autouse=True)
def no_active_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one model file of a user's."""
    folder = tmp_path / "project"
    write(folder / "models.py", "from mlx_lm.models.cache import KVCache\n")
    (folder / ".git").mkdir()
    return folder


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def install(environment: Path, version: str = "0.31.3", name: str = "mlx_lm") -> Path:
    """Make an environment folder with a package in it, as pip leaves it."""
    write(environment / "pyvenv.cfg", "home = /usr/bin\nversion = 3.12.1\n")
    site = environment / "lib" / "python3.12" / "site-packages"
    write(site / name / "__init__.py")
    write(site / name / "models" / "cache.py")
    distribution = f"{name}-{version}.dist-info"
    text = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\nRequires-Dist: mlx>=0.30\n"
    write(site / distribution / "METADATA", text + "\nThe description.\nVersion: 9\n")
    return site / name


def empty_environment(environment: Path) -> Path:
    write(environment / "pyvenv.cfg", "home = /usr/bin\n")
    (environment / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
    return environment


def declare(folder: Path, *requirements: str) -> None:
    entries = ", ".join(f'"{r}"' for r in requirements)
    write(folder / "pyproject.toml", f'[project]\nname = "p"\ndependencies = [{entries}]\n')


def lock(folder: Path, version: str) -> None:
    packages = f'[[package]]\nname = "mlx-lm"\nversion = "{version}"\n'
    write(
        folder / "uv.lock",
        f'version = 1\n\n[[package]]\nname = "mlx"\nversion = "0.30.6"\n\n{packages}',
    )


def found(*targets: Path, python: Path | None = None, **configured: str) -> Dependency:
    (dependency,) = locate(targets, python=python, configured=configured)
    return dependency


# What stands first


def test_package_inside_the_target_shadows_everything(project: Path, tmp_path: Path) -> None:
    write(project / "mlx_lm" / "__init__.py")
    write(project / "mlx_lm" / "_version.py", '__version__ = "0.31.2"\n')
    install(project / ".venv", "0.32.2")
    environment = tmp_path / "other"
    install(environment, "0.32.1")
    dependency = found(project, python=environment, mlx_lm="0.32.0")
    assert (dependency.kind, dependency.version) == ("shadowed", "0.31.2")
    assert dependency.root == project / "mlx_lm"


@pytest.mark.parametrize(
    "target", ["mlx_lm", "mlx_lm/models", "mlx_lm/models/llama.py", "tests", "tests/test_a.py", "."]
)
def test_package_around_or_beside_the_target_shadows(project: Path, target: str) -> None:
    write(project / "mlx_lm" / "__init__.py")
    write(project / "mlx_lm" / "models" / "llama.py")
    write(project / "tests" / "test_a.py")
    assert found(project / target).root == project / "mlx_lm"


@pytest.mark.parametrize("place", ["src/mlx_lm", "fork/mlx_lm", "packages/fork/src/mlx_lm"])
def test_package_below_the_target_shadows(project: Path, place: str) -> None:
    write(project / place / "__init__.py")
    target = project if not place.startswith("packages") else project / "packages"
    assert found(target).root == project / place


def test_installed_package_is_judged_against_its_neighbour(tmp_path: Path) -> None:
    root = install(tmp_path / "env", "0.31.3")
    server = install(tmp_path / "env", "1.0", "server")
    dependency = found(server)
    assert (dependency.root, dependency.version) == (root, "0.31.3")


@pytest.mark.parametrize("place", ["build/mlx_lm", ".venv/mlx_lm", "node_modules/mlx_lm"])
def test_copies_in_build_and_hidden_folders_do_not_shadow(project: Path, place: str) -> None:
    write(project / place / "__init__.py")
    assert found(project).kind == "none"


def test_python_beats_configuration_and_environments(project: Path, tmp_path: Path) -> None:
    root = install(tmp_path / "named", "0.31.2")
    install(project / ".venv", "0.32.2")
    dependency = found(project, python=tmp_path / "named", mlx_lm="0.32.0")
    assert (dependency.kind, dependency.root, dependency.version) == ("source", root, "0.31.2")
    assert "--python" in dependency.origin


def test_python_may_be_an_interpreter(project: Path, tmp_path: Path) -> None:
    root = install(tmp_path / "named")
    interpreter = write(tmp_path / "named" / "bin" / "python")
    assert found(project, python=interpreter).root == root


def test_python_that_does_not_exist_is_wrong_use(project: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such interpreter or environment"):
        found(project, python=tmp_path / "missing" / "bin" / "python")


def test_named_python_without_the_package_leaves_other_environments_alone(
    project: Path, tmp_path: Path
) -> None:
    install(project / ".venv", "0.32.2")
    declare(project, "mlx-lm==0.31.3")
    dependency = found(project, python=empty_environment(tmp_path / "named"))
    assert (dependency.kind, dependency.version) == ("table", "0.31.3")


def test_configured_version_uses_the_table(project: Path) -> None:
    install(project / ".venv", "0.32.2")
    dependency = found(project, mlx_lm="0.31.3")
    assert (dependency.kind, dependency.version) == ("table", "0.31.3")
    assert "configuration" in dependency.origin


def test_configured_folder_is_its_source(project: Path, tmp_path: Path) -> None:
    root = install(tmp_path / "elsewhere", "0.31.2")
    dependency = found(project, mlx_lm=str(root))
    assert (dependency.kind, dependency.root, dependency.version) == ("source", root, "0.31.2")


def test_active_environment_beats_one_beside_the_target(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = install(tmp_path / "active", "0.31.3")
    install(project / ".venv", "0.32.2")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    assert (found(project).root, "VIRTUAL_ENV" in found(project).origin) == (root, True)


def test_environment_of_a_hook_without_the_package_is_passed_over(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = install(project / ".venv", "0.31.3")
    monkeypatch.setenv("VIRTUAL_ENV", str(empty_environment(tmp_path / "hook")))
    assert found(project).root == root


def test_environment_of_a_hook_leaves_the_lock_file(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock(project, "0.31.3")
    monkeypatch.setenv("VIRTUAL_ENV", str(empty_environment(tmp_path / "hook")))
    dependency = found(project / "models.py")
    assert (dependency.kind, dependency.version) == ("table", "0.31.3")


def test_nearest_environment_beside_the_target_is_used(project: Path) -> None:
    install(project / ".venv", "0.32.2")
    root = install(project / "server" / ".venv", "0.31.3")
    write(project / "server" / "app" / "main.py")
    assert found(project / "server" / "app" / "main.py").root == root


def test_environment_beats_lock_file(project: Path) -> None:
    install(project / ".venv", "0.32.2")
    lock(project, "0.31.3")
    assert found(project).version == "0.32.2"


def test_conda_environment_is_used_last(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = install(tmp_path / "conda", "0.31.3")
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    assert found(project).root == root


# Editable installs


def test_editable_install_by_path_file(project: Path, tmp_path: Path) -> None:
    write(tmp_path / "fork" / "mlx_lm" / "__init__.py")
    site = empty_environment(project / ".venv") / "lib" / "python3.12" / "site-packages"
    write(site / "fork.pth", f"import os; os.abort()\n{tmp_path / 'fork'}\n")
    assert found(project).root == tmp_path / "fork" / "mlx_lm"


def test_editable_install_by_finder(project: Path, tmp_path: Path) -> None:
    root = write(tmp_path / "fork" / "mlx_lm" / "__init__.py", '__version__ = "0.31.9"\n').parent
    site = empty_environment(project / ".venv") / "lib" / "python3.12" / "site-packages"
    text = f"raise SystemExit\nMAPPING: dict[str, str] = {{'mlx_lm': {str(root)!r}}}\n"
    write(site / "__editable___mlx_lm_0_31_9_finder.py", text)
    assert (found(project).root, found(project).version) == (root, "0.31.9")


def test_editable_install_by_direct_url(project: Path, tmp_path: Path) -> None:
    root = write(tmp_path / "fork" / "src" / "mlx_lm" / "__init__.py").parent
    site = empty_environment(project / ".venv") / "lib" / "python3.12" / "site-packages"
    text = f'{{"url": "file://{tmp_path / "fork"}", "dir_info": {{"editable": true}}}}'
    write(site / "mlx_lm-0.31.3.dist-info" / "direct_url.json", text)
    assert found(project).root == root


# Tables


def test_lock_file_beats_declared_floor(project: Path) -> None:
    declare(project, "mlx-lm>=0.28")
    lock(project, "0.31.3")
    dependency = found(project)
    assert (dependency.kind, dependency.version) == ("table", "0.31.3")
    assert "uv.lock:8" in dependency.origin


def test_lock_file_of_a_workspace_root_counts(project: Path) -> None:
    member = project / "packages" / "server"
    write(member / "server.py")
    declare(member, "mlx-lm>=0.28")
    lock(project, "0.31.3")
    assert found(member).version == "0.31.3"


@pytest.mark.parametrize(
    ("requirement", "version"),
    [
        ("mlx-lm>=0.31.3", "0.31.3"),
        ("mlx_lm >= 0.32", "0.32.0"),
        ("mlx-lm<0.32,>=0.30.5", "0.30.5"),
        ("mlx-lm==0.31.1", "0.31.1"),
        ("mlx-lm~=0.31.2", "0.31.2"),
        ("mlx-lm[train]>0.31.2; sys_platform == 'darwin'", "0.31.3"),
        ("mlx-lm @ git+https://example.org/mlx-lm@v0.31.2", "0.31.2"),
    ],
)
def test_lowest_admitted_version_stands_for_a_declared_floor(
    project: Path, requirement: str, version: str
) -> None:
    declare(project, requirement)
    assert (found(project).kind, found(project).version) == ("table", version)


@pytest.mark.parametrize("requirement", ["mlx-lm", "mlx-lm>=0.20", "mlx-lm!=0.31.0"])
def test_floor_below_batched_caches_gives_the_lowest_with_them(
    project: Path, requirement: str
) -> None:
    declare(project, requirement)
    assert found(project).version == "0.28.0"
    assert "lowest version with batched caches" in found(project).origin


def test_origin_quotes_requirement_file_and_line(project: Path) -> None:
    declare(project, "click", "mlx-lm>=0.31")
    assert "`mlx-lm>=0.31`" in found(project).origin
    assert "pyproject.toml:3" in found(project).origin


@pytest.mark.parametrize("requirement", ["mlx-lm>=7", "mlx-lm @ git+https://example.org/mlx-lm"])
def test_requirement_that_admits_no_known_release_gives_none(
    project: Path, requirement: str
) -> None:
    declare(project, requirement)
    assert found(project).kind == "none"


def test_locked_version_beyond_the_table_is_said_to_be_assumed(project: Path) -> None:
    lock(project, "0.99.0")
    assert found(project).version == "0.99.0"
    assert f"effects of {effect_tables.releases('mlx_lm')[-1]} are assumed" in found(project).origin


def test_nothing_known_gives_a_hint_how_to_name_it(project: Path) -> None:
    dependency = found(project)
    assert (dependency.kind, dependency.root, dependency.version) == ("none", None, None)
    assert dependency.hint is not None
    assert "--python" in dependency.hint
    assert 'mlx-lm = "VERSION"' in dependency.hint


def test_what_was_found_needs_no_hint(project: Path) -> None:
    lock(project, "0.31.3")
    assert found(project).hint is None


def test_nothing_of_the_target_is_executed(project: Path, tmp_path: Path) -> None:
    root = install(project / ".venv")
    mark = tmp_path / "executed"
    code = f"open({str(mark)!r}, 'w')\n"
    for path in (root / "__init__.py", root / "models" / "cache.py", project / "setup.py"):
        write(path, code + "# mlx-lm\n")
    found(project)
    assert not mark.exists()


# Every version that a project admits


def test_admitted_versions_have_one_release_for_each_set_of_effects(project: Path) -> None:
    declare(project, "mlx-lm>=0.31.2,<0.32.1")
    assert admitted_versions([project], "mlx_lm") == ["0.31.2", "0.31.3", "0.32.0"]


def test_admitted_versions_follow_what_is_declared_not_what_is_locked(project: Path) -> None:
    declare(project, "mlx-lm>=0.31.3,<0.32.1")
    lock(project, "0.32.0")
    assert admitted_versions([project], "mlx_lm") == ["0.31.3", "0.32.0"]


def test_admitted_versions_of_a_lock_alone_are_the_locked_one(project: Path) -> None:
    lock(project, "0.31.3")
    assert admitted_versions([project], "mlx_lm") == ["0.31.3"]


def test_admitted_versions_without_a_declaration_are_none(project: Path) -> None:
    assert admitted_versions([project], "mlx_lm") == []


# Other packages


def test_imported_package_that_builds_on_mlx_is_located(project: Path) -> None:
    root = install(project / ".venv", "1.2", "caches")
    dependencies = locate([project], python=None, configured={}, imported={"caches", "os"})
    assert [(d.name, d.kind, d.root, d.version) for d in dependencies][1:] == [
        ("caches", "source", root, "1.2")
    ]


def test_imported_package_without_mlx_is_left_out(project: Path) -> None:
    root = install(project / ".venv", "1.2", "plain")
    write(root.parent / "plain-1.2.dist-info" / "METADATA", "Name: plain\nVersion: 1.2\n\n")
    dependencies = locate([project], python=None, configured={}, imported={"plain"})
    assert [d.name for d in dependencies] == ["mlx_lm"]


def test_imports_are_found_by_their_bytes() -> None:
    source = b"import a.b\nfrom c import d\n  import e, f\nx = 'import g'\nfrom .h import i\n"
    assert imported_packages([source]) == {"a", "c", "e"}


def test_package_of_the_target_that_is_also_installed_is_left_out(project: Path) -> None:
    install(project / ".venv", "1.2", "caches")
    write(project / "caches" / "__init__.py")
    dependencies = locate([project], python=None, configured={}, imported={"caches"})
    assert [d.name for d in dependencies] == ["mlx_lm"]


def test_package_with_mlx_in_an_extra_alone_is_left_out(project: Path) -> None:
    root = install(project / ".venv", "1.2", "plain")
    text = 'Name: plain\nVersion: 1.2\nRequires-Dist: mlx; extra == "mlx"\n\n'
    write(root.parent / "plain-1.2.dist-info" / "METADATA", text)
    dependencies = locate([project], python=None, configured={}, imported={"plain"})
    assert [d.name for d in dependencies] == ["mlx_lm"]


def test_project_around_the_target_s_own_declares_nothing_for_it(project: Path) -> None:
    declare(project, "mlx-lm>=0.31.3")
    declare(project / "examples" / "server", "click")
    write(project / "examples" / "server" / "main.py")
    assert found(project / "examples" / "server").kind == "none"


def test_folder_with_a_configuration_alone_is_no_project(project: Path) -> None:
    declare(project, "mlx-lm>=0.31.3")
    write(project / "package" / "pyproject.toml", "[tool.ruff]\nline-length = 100\n")
    write(project / "package" / "main.py")
    assert found(project / "package").version == "0.31.3"
