"""Finding installed packages by the layout of environments, without running an interpreter."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

from aliaslint.errors import UserError
from aliaslint.program.requirements import canonical

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


def site_folders(python: Path) -> list[Path]:
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
    return found


def find_installed(package: str, sites: list[Path]) -> Installed | None:
    """Return the package of this import name in the site folders, editable installs included."""
    for site in sites:
        if is_package(site / package):
            return Installed(site / package, installed_version(site, package))
        for folder in _linked(site, package):
            return Installed(folder, installed_version(site, package) or source_version(folder))
    return None


def is_package(folder: Path) -> bool:
    """Whether a folder holds Python source: a regular package, or a namespace with modules."""
    return (folder / "__init__.py").is_file() or (folder / "models" / "cache.py").is_file()


def metadata_file(site: Path, package: str) -> Path | None:
    """Return the METADATA (or PKG-INFO) file beside a package, by its distribution's name."""
    wanted = canonical(package)
    try:
        entries = sorted(site.iterdir())
    except OSError:
        return None
    for entry in entries:
        stem, dot, kind = entry.name.rpartition(".")
        if not dot or kind not in ("dist-info", "egg-info"):
            continue
        if canonical(re.split(r"-(?=\d)", stem)[0]) == wanted:
            for name in ("METADATA", "PKG-INFO"):
                if (entry / name).is_file():
                    return entry / name
    return None


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


def _linked(site: Path, package: str) -> Iterator[Path]:
    """Yield folders of `package` that editable installs in `site` point at."""
    for path in sorted(site.glob("*.pth")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            line = line.strip()
            # Lines that start with "import" are code, which is not run here.
            is_path = line and not line.startswith(("#", "import ", "import\t"))
            if is_path and is_package(site / line / package):
                yield site / line / package
    for path in sorted(site.glob("__editable__*_finder.py")):
        folder = _mapping(path).get(package)
        if folder and is_package(Path(folder)):
            yield Path(folder)
    for path in sorted(site.glob("*.dist-info/direct_url.json")):
        if canonical(re.split(r"-(?=\d)", path.parent.name)[0]) == canonical(package):
            yield from _direct(path, package)


def _mapping(path: Path) -> dict[str, str]:
    """Return the literal `MAPPING` of a finder that setuptools writes for an editable install."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if any(isinstance(t, ast.Name) and t.id == "MAPPING" for t in targets):
            try:
                value = ast.literal_eval(node.value)  # type: ignore[attr-defined]
            except ValueError:
                return {}
            return value if isinstance(value, dict) else {}
    return {}


def _direct(path: Path, package: str) -> Iterator[Path]:
    import json

    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return
    if content.get("dir_info", {}).get("editable"):
        checkout = Path(unquote(urlparse(content.get("url", "")).path))
        for folder in (checkout / package, checkout / "src" / package):
            if is_package(folder):
                yield folder
