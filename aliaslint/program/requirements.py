"""Which versions of a package a project declares: metadata, requirements files, lock files.

Files are read as data and never executed. A lock file is scanned block by block, since parsing
a large one costs more than the whole run; the other files are parsed only if they name the
package.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Tier = Literal["required", "pin", "lock", "optional"]

LOCK_FILES = ("uv.lock", "pylock.toml", "poetry.lock", "pdm.lock", "Pipfile.lock")
PROJECT_FILES = ("pyproject.toml", "setup.cfg", "setup.py", "Pipfile")
_DEVELOPMENT = re.compile(r"dev|test|doc|lint|ci|bench|example", re.IGNORECASE)
INCLUDES = re.compile(rb"^\s*(?:-r|-c|--requirement|--constraint)\b", re.MULTILINE)
_TAG = re.compile(r"@v?(\d+(?:\.\d+)+)(?:$|[#&])")


@dataclass(frozen=True, slots=True)
class Declared:
    """One place in which a project says which versions of a package it wants.

    `specifier` is a PEP 440 specifier set, empty if every version is admitted and None if the
    place names a source without a version (a git branch, a folder). `text` is the requirement
    as messages quote it. `tier`: "required" of whoever installs the project, "pin" in a
    requirements file, "lock" in a lock file, "optional" in an extra or a development group.
    """

    name: str
    specifier: str | None
    path: Path
    line: int
    text: str
    tier: Tier
    marker: str = ""

    @property
    def pinned(self) -> str | None:
        """The one version that the specifier admits, None if it is not of the form `==X`."""
        match = re.fullmatch(r"={2,3}\s*([^,*\s]+)", self.specifier or "")
        return match[1] if match else None


def canonical(name: str) -> str:
    """Return the normalised name of a distribution (PEP 503): `mlx_lm` gives `mlx-lm`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_folder(folder: Path, name: str, *, locks_only: bool = False) -> list[Declared]:
    """Return what the files directly in `folder` declare about the distribution `name`.

    A file that cannot be read or parsed declares nothing. `locks_only` leaves the files alone
    that would need a parser of requirements, whose import is a good part of a short run.
    """
    wanted = canonical(name)
    screen = re.compile(_pattern(wanted).encode(), re.IGNORECASE)
    found: list[Declared] = []
    for path in metadata_files(folder):
        if locks_only and not _is_lock(path.name):
            continue
        try:
            data = path.read_bytes()
        except OSError:
            continue
        if screen.search(data) or (_is_requirements(path.name) and INCLUDES.search(data)):
            text = data.decode("utf-8-sig", "replace")
            found += [d for d in _read(path, text, wanted) if d.name == wanted]
    return found


def _pattern(wanted: str) -> str:
    """Return a pattern for the ways to write a normalised name."""
    return "[-_.]+".join(map(re.escape, wanted.split("-")))


def read_metadata(path: Path, name: str) -> list[Declared]:
    """Return what an installed distribution's METADATA file declares about `name`."""
    wanted = canonical(name)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    found: list[Declared] = []
    wants = re.compile(rf"requires-dist:\s*{_pattern(wanted)}(?![\w.-])", re.IGNORECASE)
    for number, line in enumerate(text.splitlines(), start=1):
        if not line:  # The description follows.
            break
        if wants.match(line):
            tier: Tier = "optional" if "extra ==" in line else "required"
            found += _parsed(line.partition(":")[2], path, number, tier)
    return [d for d in found if d.name == wanted]


def admitted(declared: Sequence[Declared], releases: Iterable[str]) -> list[str]:
    """Return the `releases` that the declarations admit, lowest first.

    What is required decides; pins, then locks, then extras only where nothing is required.
    Declarations of one tier with the same environment marker hold together; those with
    different markers stand for different environments, and each admits its own versions.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    for tier in ("required", "pin", "lock", "optional"):
        groups: dict[str, list[str]] = {}
        for item in declared:
            if item.tier == tier and item.specifier is not None:
                groups.setdefault(item.marker, []).append(item.specifier)
        if groups:
            try:
                sets = [SpecifierSet(",".join(filter(None, g))) for g in groups.values()]
            except InvalidSpecifier:
                return []
            return [r for r in in_order(releases) if any(s.contains(r) for s in sets)]
    return []


def named(declared: Iterable[Declared]) -> set[str]:
    """Return the versions that the specifiers name, of `==0.31.*` its first one."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    found = set()
    for item in declared:
        try:
            versions = [s.version.removesuffix(".*") for s in SpecifierSet(item.specifier or "")]
            found |= {version for version in versions if Version(version)}
        except (InvalidSpecifier, InvalidVersion):
            continue
    return found


def in_order(versions: Iterable[str]) -> list[str]:
    """Return versions sorted, lowest first."""
    from packaging.version import Version

    return sorted(versions, key=Version)


def metadata_files(folder: Path) -> Iterator[Path]:
    """Yield the files directly in a folder that may declare a dependency, lock files included."""
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return
    for name in names:
        if _is_lock(name) or name in PROJECT_FILES or _is_requirements(name):
            yield folder / name
    if "requirements" in names and (folder / "requirements").is_dir():
        yield from sorted((folder / "requirements").glob("*.txt"))


def _is_lock(name: str) -> bool:
    return name in LOCK_FILES or re.fullmatch(r"pylock\.[^.]+\.toml", name) is not None


def _is_requirements(name: str) -> bool:
    stem = name.lower()
    return stem.endswith((".txt", ".in")) and ("requirements" in stem or "constraints" in stem)


def _read(path: Path, text: str, wanted: str) -> list[Declared]:
    if path.name == "pyproject.toml":
        return list(_pyproject(path, text))
    if path.name == "setup.cfg":
        return list(_setup_cfg(path, text))
    if path.name == "setup.py":
        return list(_setup_py(path, text))
    if path.name == "Pipfile":
        return list(_pipfile(path, text))
    if path.name == "Pipfile.lock":
        return list(_pipfile_lock(path, text))
    if path.suffix in (".lock", ".toml"):
        return list(_lock(path, text, wanted))
    return list(_requirements(path, text))


def _lock(path: Path, text: str, wanted: str) -> Iterator[Declared]:
    """Scan the `[[package]]` blocks of uv, poetry and pdm, `[[packages]]` of PEP 751."""
    pattern = re.compile(
        r'^\[\[packages?\]\]\s*\n(?:(?!\[).*\n)*?name\s*=\s*"([^"]+)"'
        r'(?:\n(?!\[).*)*?\nversion\s*=\s*"([^"]+)"',
        re.MULTILINE,
    )
    for match in pattern.finditer(text.replace("\r\n", "\n")):
        if canonical(match[1]) == wanted:
            line = text.count("\n", 0, match.start(1)) + 1
            yield _pin(wanted, match[2], path, line, "lock")


def _pin(name: str, version: str, path: Path, line: int, tier: Tier) -> Declared:
    # One marker for each version: several versions of a lock are alternatives.
    return Declared(name, f"=={version}", path, line, f"{name}=={version}", tier, version)


def _pipfile_lock(path: Path, text: str) -> Iterator[Declared]:
    try:
        content = json.loads(text)
    except ValueError:
        return
    for section in ("default", "develop"):
        packages = content.get(section) if isinstance(content, dict) else None
        for name, entry in (packages if isinstance(packages, dict) else {}).items():
            version = entry.get("version", "") if isinstance(entry, dict) else ""
            if version.startswith("=="):
                line = _line_of(text, f'"{name}"')
                yield _pin(canonical(name), version[2:], path, line, "lock")


def _requirements(path: Path, text: str, seen: frozenset[Path] = frozenset()) -> Iterator[Declared]:
    """Read a requirements file and those that it includes. Constraints count as pins only."""
    joined = re.sub(r"\\\r?\n", lambda m: " " * len(m[0]) + "\v", text)
    number = 1
    for raw in joined.splitlines(keepends=False) if "\v" not in joined else _logical(joined):
        start, number = number, number + 1 + raw.count("\v")
        line = re.sub(r"(^|\s)#.*", "", raw.replace("\v", "")).strip()
        include = re.match(r"(?:-r|--requirement|-c|--constraint)[ =]\s*(\S+)", line)
        if include:
            yield from _included(path, path.parent / include[1], seen)
        elif line and not line.startswith("-"):
            line = re.split(r"\s--?\w", line)[0]
            for item in _parsed(line, path, start, "required"):
                if tier := _requirements_tier(path, item):
                    marker = item.marker or (item.pinned or "")
                    yield Declared(item.name, item.specifier, path, start, item.text, tier, marker)


def _logical(joined: str) -> list[str]:
    """Split at line ends but not at the vertical tabs that stand for continued lines."""
    return re.split(r"\r\n|\r|\n", joined)


def _included(path: Path, other: Path, seen: frozenset[Path]) -> Iterator[Declared]:
    if other.parent == path.parent and _is_requirements(other.name):
        return  # It is read for itself.
    if other in seen or not other.is_file():
        return
    text = other.read_text(encoding="utf-8", errors="replace")
    yield from _requirements(other, text, seen | {other})


def _requirements_tier(path: Path, item: Declared) -> Tier | None:
    if item.pinned:
        return "pin"
    if "constraint" in path.name.lower():
        return None
    return "optional" if _DEVELOPMENT.search(path.stem.replace("requirements", "")) else "required"


def _parsed(text: str, path: Path, line: int, tier: Tier) -> list[Declared]:
    """Return the requirement in `text` (PEP 508, or a bare URL with an egg name), if it is one."""
    from packaging.requirements import InvalidRequirement, Requirement

    text = text.strip()
    egg = re.search(r"[#&]egg=([\w.-]+)", text)
    try:
        wanted = Requirement(f"{egg[1]} @ {text}" if egg and "@ " not in text else text)
    except InvalidRequirement:
        return []
    specifier: str | None = str(wanted.specifier)
    if wanted.url:
        tag = _TAG.search(wanted.url)
        specifier = f"=={tag[1]}" if tag else None
    quoted = text.partition(";")[0].strip()
    marker = str(wanted.marker or "")
    return [Declared(canonical(wanted.name), specifier, path, line, quoted, tier, marker)]


def _line_of(text: str, part: str) -> int:
    """Return the first line that holds `part`, 1 if there is none."""
    index = text.find(part)
    return text.count("\n", 0, index) + 1 if index >= 0 else 1


def _toml(path: Path, text: str) -> Mapping[str, Any]:
    from aliaslint.source.config import ConfigError, load_toml

    try:
        return load_toml(path, text.encode())
    except ConfigError:
        return {}


def _at(table: object, *keys: str) -> Any:
    """Return the value at a path of tables, an empty table where there is none."""
    for key in keys:
        table = table.get(key, {}) if isinstance(table, dict) else {}
    return table


def _listed(path: Path, text: str, entries: object, tier: Tier) -> Iterator[Declared]:
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, str):
            yield from _parsed(entry, path, _line_of(text, entry), tier)


def _pyproject(path: Path, text: str) -> Iterator[Declared]:
    content = _toml(path, text)
    yield from _listed(path, text, _at(content, "project", "dependencies"), "required")
    groups = [
        _at(content, "project", "optional-dependencies"),
        _at(content, "dependency-groups"),
        _at(content, "tool", "pdm", "dev-dependencies"),
    ]
    environments = _at(content, "tool", "hatch", "envs")
    if isinstance(environments, dict):
        groups += [{"dependencies": _at(env, "dependencies")} for env in environments.values()]
    for group in groups:
        for entries in group.values() if isinstance(group, dict) else ():
            yield from _listed(path, text, entries, "optional")
    dev = _at(content, "tool", "uv", "dev-dependencies")
    yield from _listed(path, text, dev, "optional")
    yield from _poetry(path, text, _at(content, "tool", "poetry"))


def _poetry(path: Path, text: str, poetry: object) -> Iterator[Declared]:
    yield from _tables(path, text, _at(poetry, "dependencies"), "required")
    yield from _tables(path, text, _at(poetry, "dev-dependencies"), "optional")
    groups = _at(poetry, "group")
    for group in groups.values() if isinstance(groups, dict) else ():
        yield from _tables(path, text, _at(group, "dependencies"), "optional")


def _pipfile(path: Path, text: str) -> Iterator[Declared]:
    content = _toml(path, text)
    yield from _tables(path, text, _at(content, "packages"), "required")
    yield from _tables(path, text, _at(content, "dev-packages"), "optional")


def _tables(path: Path, text: str, table: object, tier: Tier) -> Iterator[Declared]:
    """Read `name = "^1.2"` and `name = {version = "...", optional = true}` of poetry and pipenv."""
    for name, value in table.items() if isinstance(table, dict) else ():
        line = next(
            (n for n, row in enumerate(text.splitlines(), 1) if re.match(rf'"?{name}"?\s*=', row)),
            1,
        )
        for entry in value if isinstance(value, list) else [value]:
            version = entry if isinstance(entry, str) else _at(entry, "version") or None
            optional = bool(_at(entry, "optional"))
            tag = re.fullmatch(r"v?(\d+(?:\.\d+)+)", str(_at(entry, "tag") or ""))
            specifier = _specifier(version) if version else (f"=={tag[1]}" if tag else None)
            shown = f"{name} = {json.dumps(version or entry)}"
            marker = str(_at(entry, "markers") or "")
            place: Tier = "optional" if optional else tier
            yield Declared(canonical(name), specifier, path, line, shown, place, marker)


def _specifier(version: str) -> str:
    """Return the PEP 440 form of a version constraint of poetry or pipenv.

    `^1.2` keeps the first part that is not zero, `~1.2` the first two, a bare version is exact.
    """
    parts = [part.strip() for part in version.split(",")]
    return ",".join(filter(None, map(_specifier_part, parts)))


def _specifier_part(part: str) -> str:
    if part in ("*", ""):
        return ""
    match = re.fullmatch(r"(\^|~)\s*([\d.]+)", part)
    if match is None:
        return f"=={part}" if part[0].isdigit() else part
    numbers = [int(n) for n in match[2].split(".") if n]
    keep = min(1, len(numbers) - 1)
    if match[1] == "^":
        keep = next((i for i, n in enumerate(numbers) if n), len(numbers) - 1)
    upper = [*numbers[:keep], numbers[keep] + 1]
    return f">={match[2]},<{'.'.join(map(str, upper))}"


def _setup_cfg(path: Path, text: str) -> Iterator[Declared]:
    import configparser

    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    required = parser.get("options", "install_requires", fallback="").splitlines()
    yield from _listed(path, text, [r.strip() for r in required if r.strip()], "required")
    extras = "options.extras_require"
    for _, value in parser.items(extras) if parser.has_section(extras) else []:
        rows = [r.strip() for r in value.splitlines() if r.strip()]
        yield from _listed(path, text, rows, "optional")


def _setup_py(path: Path, text: str) -> Iterator[Declared]:
    """Read the literal arguments of `setup(...)`; names that are bound to literals count."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    names: dict[str, ast.expr] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            names[statement.targets[0].id] = statement.value
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "setup":
            for keyword in node.keywords:
                tier: Tier = "required" if keyword.arg == "install_requires" else "optional"
                if keyword.arg in ("install_requires", "extras_require"):
                    for value, line in _strings(keyword.value, names):
                        yield from _parsed(value, path, line, tier)


def _strings(node: ast.expr, names: Mapping[str, ast.expr]) -> Iterator[tuple[str, int]]:
    """Yield the strings in an expression made of literals, with their lines."""
    match node:
        case ast.Constant(value=str(value)):
            yield value, node.lineno
        case ast.JoinedStr():
            text = _joined(node, names)
            if text is not None:
                yield text, node.lineno
        case ast.Name(id=name) if name in names:
            rest = {key: value for key, value in names.items() if key != name}
            yield from _strings(names[name], rest)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                yield from _strings(part, names)
        case ast.Dict(values=parts):
            for part in parts:
                yield from _strings(part, names)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _strings(left, names)
            yield from _strings(right, names)
        case ast.Starred(value=inner):
            yield from _strings(inner, names)


def _joined(node: ast.JoinedStr, names: Mapping[str, ast.expr]) -> str | None:
    """Return the text of an f-string over names that are bound to literals, None otherwise."""
    text = ""
    for part in node.values:
        match part:
            case ast.Constant(value=str(value)):
                text += value
            case ast.FormattedValue(value=ast.Name(id=name)) if name in names:
                bound = names[name]
                if not isinstance(bound, ast.Constant):
                    return None
                text += str(bound.value)
            case _:
                return None
    return text
