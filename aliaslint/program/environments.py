"""Finding installed packages by the layout of environments, without running an interpreter."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlparse

from aliaslint.errors import UserError
from aliaslint.program.declared import canonical

ENVIRONMENT_NAME = ".venv"
PROJECT_ENVIRONMENT_NAMES = ("venv", "env")  # They say less, so only in a project's folder.
_PROJECT_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", ".git")


class EnvironmentMissing(UserError):
    """An interpreter or environment that was named does not exist; the message is one line."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A package found in an environment. `version` is None where no metadata tells it."""

    root: Path
    version: str | None


@dataclass(eq=False)
class Site:
    """A folder that holds installed packages. What is in it is listed once."""

    folder: Path

    @cached_property
    def entries(self) -> frozenset[str]:
        try:
            return frozenset(os.listdir(self.folder))
        except OSError:
            return frozenset()

    @cached_property
    def links(self) -> tuple[list[Path], dict[str, Path], dict[str, Path]]:
        """What editable installs point at: folders to search, packages, checkouts by name."""
        names = sorted(self.entries)
        paths = [p for n in names if n.endswith(".pth") for p in _linked_paths(self.folder / n)]
        packages: dict[str, Path] = {}
        checkouts: dict[str, Path] = {}
        for name in names:
            if name.startswith("__editable__") and name.endswith("_finder.py"):
                packages.update(_mapping(self.folder / name))
            elif name.endswith(".dist-info"):
                checkout = _editable_checkout(self.folder / name / "direct_url.json")
                if checkout:
                    checkouts[_distribution(name)] = checkout
        return paths, packages, checkouts

    def find(self, package: str) -> Path | None:
        """Return the folder of a package, editable installs included."""
        if package in self.entries and is_package(self.folder / package):
            return self.folder / package
        paths, packages, checkouts = self.links
        places = [path / package for path in paths]
        places += [packages[package]] if package in packages else []
        checkout = checkouts.get(canonical(package))
        places += [checkout / package, checkout / "src" / package] if checkout else []
        return next(filter(is_package, places), None)


def site_folders(python: Path) -> list[Site]:
    """Return the folders that hold the packages of an interpreter or environment folder.

    Raises EnvironmentMissing if there is no such interpreter or folder.
    """
    prefix = _prefix(python)
    found = _below(prefix)
    config = prefix / "pyvenv.cfg"
    if config.is_file():
        settings = _settings(config)
        if settings.get("include-system-site-packages", "").lower() == "true":
            home = Path(settings.get("home", ""))
            found += _below(home.parent) + _below(home.parent / "local")
    elif (prefix / "local").is_dir():  # Debian keeps what pip installs there.
        found += _below(prefix / "local")
    return list(map(Site, found))


def find_installed(package: str, sites: Sequence[Site]) -> Installed | None:
    """Return the package of this import name in the site folders, editable installs included."""
    for site in sites:
        root = site.find(package)
        if root is not None:
            version = installed_version(site.folder, package) or source_version(root)
            return Installed(root, version)
    return None


def is_package(folder: Path) -> bool:
    """Whether a folder holds Python source: a regular package, or a namespace with modules."""
    return (folder / "__init__.py").is_file() or (folder / "models" / "cache.py").is_file()


def metadata_file(site: Path, package: str) -> Path | None:
    """Return the METADATA (or PKG-INFO) file beside a package, by its distribution's name."""
    wanted = canonical(package)
    try:
        names = sorted(os.listdir(site))
    except OSError:
        return None
    for entry in names:
        if entry.endswith((".dist-info", ".egg-info")) and _distribution(entry) == wanted:
            for name in ("METADATA", "PKG-INFO"):
                if (site / entry / name).is_file():
                    return site / entry / name
    return None


def _distribution(name: str) -> str:
    """Return the distribution that a metadata folder is of, normalised."""
    stem = name.rpartition(".")[0]
    return canonical(re.split(r"-(?=\d)", stem)[0])


def installed_version(site: Path, package: str) -> str | None:
    """Return the version in the metadata beside a package, None if there is none."""
    path = metadata_file(site, package)
    return _header(path, "version") if path else None


def source_version(folder: Path) -> str | None:
    """Return the literal `__version__` of a package's source, None if there is none."""
    for name in ("_version.py", "version.py", "__init__.py"):
        try:
            text = (folder / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        match = re.search(r"""^__version__\s*(?::[^=]+)?=\s*["']([^"']+)["']""", text, re.M)
        if match:
            return match[1]
    return None


def environments_beside(folder: Path) -> Iterator[Path]:
    """Yield virtual environments in `folder` and its parents, nearest first."""
    for place in (folder, *folder.parents):
        names = ["", ENVIRONMENT_NAME]
        if any((place / mark).exists() for mark in _PROJECT_MARKS):
            names += PROJECT_ENVIRONMENT_NAMES
        for name in names:
            if (place / name / "pyvenv.cfg").is_file():
                yield place / name


def _prefix(python: Path) -> Path:
    """Return the folder of the environment that an interpreter belongs to."""
    if python.is_dir():
        return python.absolute()
    import shutil  # Costs more at start than all that is done with it.

    path = python if python.is_file() else Path(shutil.which(str(python)) or "")
    if not path.is_file():
        raise EnvironmentMissing(f"{python}: no such interpreter or environment")
    prefix = Path(os.path.abspath(path)).parent.parent
    if (prefix / "pyvenv.cfg").is_file():
        return prefix
    if not _below(prefix):  # A link to an interpreter elsewhere (Homebrew, pyenv).
        return path.resolve().parent.parent
    return prefix


def _below(prefix: Path) -> list[Path]:
    folders: list[Path] = []
    for pattern in ("lib/python3*/site-packages", "lib64/python3*/site-packages"):
        folders += sorted(prefix.glob(pattern), reverse=True)
    folders += sorted(prefix.glob("lib/python3/dist-packages"))
    folders += sorted(prefix.glob("lib/python3.*/dist-packages"), reverse=True)
    if (prefix / "Lib" / "site-packages").is_dir():
        folders.append(prefix / "Lib" / "site-packages")
    return folders


def _settings(config: Path) -> dict[str, str]:
    text = config.read_text(encoding="utf-8", errors="replace")
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _header(path: Path, name: str) -> str | None:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and key.lower() == name:
            return value.strip()
        if not line:
            break
    return None


def _linked_paths(path: Path) -> Iterator[Path]:
    """Yield the folders that a `.pth` file adds to the search path."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        line = line.strip()
        # Lines that start with "import" are code, which is not run here.
        if line and not line.startswith(("#", "import ", "import\t")):
            yield path.parent / line


def _mapping(path: Path) -> dict[str, Path]:
    """Return the literal `MAPPING` of a finder that setuptools writes for an editable install."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="MAPPING")], value=ast.Dict() as value):
                return _literal(value)
            case ast.AnnAssign(target=ast.Name(id="MAPPING"), value=ast.Dict() as value):
                return _literal(value)
    return {}


def _literal(node: ast.Dict) -> dict[str, Path]:
    try:
        found = ast.literal_eval(node)
    except ValueError:
        return {}
    return {str(name): Path(str(folder)) for name, folder in found.items()}


def _editable_checkout(path: Path) -> Path | None:
    """Return the folder that a distribution was installed from in editable mode."""
    if not path.is_file():
        return None
    import json

    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    if not content.get("dir_info", {}).get("editable"):
        return None
    return Path(unquote(urlparse(content.get("url", "")).path))
