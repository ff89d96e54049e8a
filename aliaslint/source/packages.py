"""Where installed packages lie, found by looking at folders: nothing is imported or run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

from aliaslint.errors import UserError


class PackageNotFound(UserError):
    """A package that is not installed where it was looked for; the message is one line."""


def locate_package(name: str, python: Path | None = None) -> Path:
    """Return the folder (or the single file) of the installed package `name`.

    `python` is an interpreter, a virtual environment or a site-packages folder. Without it:
    `VIRTUAL_ENV`, then `.venv` in the working directory, then the environment that aliaslint
    itself runs in. Raises PackageNotFound.
    """
    module = name.replace("-", "_")
    if not all(part.isidentifier() for part in module.split(".")):
        raise PackageNotFound(f"{name!r} is not the name of a package")
    places = site_folders(python) if python else list(_own_places())
    if python and not places:
        raise PackageNotFound(f"{python}: no Python environment here")
    for place in places:
        found = find_in(place, module)
        if found:
            return found
    where = str(python) if python else "this environment"
    raise PackageNotFound(f"package {name!r} is not installed in {where}")


def site_folders(python: Path) -> list[Path]:
    """Return the folders with packages of an interpreter or environment, best first.

    The interpreter is not started: its folders are derived from where it lies.
    """
    python = Path(os.path.abspath(python.expanduser()))
    if python.name in ("site-packages", "dist-packages"):
        return [python] if python.is_dir() else []
    if python.is_dir():
        return _below(python)
    if not python.is_file():
        return []
    places = _below(python.parent.parent) or _below(python.parent)
    return places or _below(python.resolve().parent.parent)


def find_in(place: Path, module: str) -> Path | None:
    """Return where `module` lies in one folder with packages, editable installs included."""
    relative = Path(*module.split("."))
    for folder in (place, *_linked(place, module)):
        if (folder / relative / "__init__.py").is_file():
            return folder / relative
        if (folder / relative).with_suffix(".py").is_file():
            return (folder / relative).with_suffix(".py")
    if next((place / relative).glob("**/*.py"), None):  # A namespace package.
        return place / relative
    return None


def _own_places() -> Iterator[Path]:
    virtual = os.environ.get("VIRTUAL_ENV")
    if virtual:
        yield from _below(Path(virtual))
    yield from _below(Path.cwd() / ".venv")
    yield from (Path(entry) for entry in sys.path if entry and Path(entry).is_dir())


def _below(prefix: Path) -> list[Path]:
    """The folders with packages of an environment's prefix (POSIX and Windows layouts)."""
    patterns = (
        "lib/python3*/site-packages",
        "lib64/python3*/site-packages",
        "Lib/site-packages",
        "lib/python3/dist-packages",
        "local/lib/python3*/dist-packages",
    )
    return [place for pattern in patterns for place in sorted(prefix.glob(pattern), key=_version)]


def _version(place: Path) -> tuple[int, ...]:
    """Newest interpreter first."""
    digits = place.parent.name.removeprefix("python").split(".")
    return tuple(-int(digit) for digit in digits if digit.isdigit())


def _linked(place: Path, module: str) -> Iterator[Path]:
    """Folders that `.pth` files and editable installs add to a folder with packages."""
    for path in sorted(place.glob("*.pth")):
        for line in _lines(path):
            if line and not line.startswith(("#", "import ", "import\t")):
                yield place / line
    top = module.split(".")[0].lower()
    for record in sorted(place.glob("*.dist-info/direct_url.json")):
        if record.parent.name.split("-")[0].lower() == top:
            yield from _editable(record)


def _editable(record: Path) -> Iterator[Path]:
    """The source folders of an editable install (PEP 610)."""
    try:
        about = json.loads("\n".join(_lines(record)))
        url = urlparse(about["url"])
        editable = about["dir_info"].get("editable", False)
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    if editable and url.scheme == "file":
        root = Path(unquote(url.path))
        yield from (root, root / "src")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
