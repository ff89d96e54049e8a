"""Which versions of a package a project declares: metadata, requirements files, lock files.

Files are read as data and never executed. A lock file is scanned block by block, since parsing
a large one costs more than the whole run; the other files are parsed only if they name the
package.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os.path import isfile
from pathlib import Path
from typing import Any

from aliaslint.program.declared import Declared, Tier, canonical, parsed, spelled
from aliaslint.program.requirement_files import included, read_files, read_list, text_of

LOCK_FILES = ("uv.lock", "pylock.toml", "poetry.lock", "pdm.lock", "Pipfile.lock")
PROJECT_FILES = ("pyproject.toml", "setup.cfg", "setup.py", "Pipfile")
# In metadata that hold nothing of this no other file is named.
_LISTS_FILES = re.compile(r"\bdynamic\b.*\bfile\b|=\s*file\s*:|requirements_txt", re.DOTALL)

# What restricts an entry of poetry or pipenv to an environment.
_ENVIRONMENT = ("markers", "python", "platform", "sys_platform", "python_version")


@dataclass(frozen=True, slots=True)
class _File:
    """A file, and the normalised name of the package that is looked for."""

    path: Path
    text: str
    wanted: str

    @property
    def screen(self) -> re.Pattern[str]:
        return re.compile(spelled(self.wanted), re.IGNORECASE)


def read_folder(folder: Path, name: str, *, locks_only: bool = False) -> list[Declared]:
    """Return what the files of `folder`, and those that they name, declare about `name`.

    A file that cannot be read or parsed declares nothing. `locks_only` leaves the files alone
    that would need a parser of requirements, whose import is a good part of a short run.
    """
    wanted = canonical(name)
    found: list[Declared] = []
    texts: dict[Path, str] = {}
    lists: dict[Path, Tier] = {}
    for path in metadata_files(folder):
        if locks_only and not _is_lock(path.name):
            continue
        file = _File(path, text_of(path), wanted)
        if path.name not in PROJECT_FILES and not _is_lock(path.name):
            texts[path] = file.text
            continue
        lists.update(_listed_files(path, file.text))
        if file.screen.search(file.text):
            found += [declared for declared in _read(file) if declared.name == wanted]
    for other, tier in lists.items():
        found += read_list(other, texts.pop(other, "") or text_of(other), wanted, tier)
    found += read_files(texts, wanted, lists)
    declares = [d for d in found if d.tier not in ("lock", "constraint")]
    return list(dict.fromkeys(d for d in found if d.tier != "constraint" or not declares))


def declaring_files(folder: Path) -> Iterator[Path]:
    """Yield the metadata files of a folder, and the files that these name or include."""
    pending = list(metadata_files(folder))
    for path in pending:  # It grows on the way.
        yield path
        others = [other for other, _ in _others(path)]
        pending += [other for other in others if other not in pending and isfile(other)]


def _others(path: Path) -> Iterable[tuple[Path, object]]:
    """Return the files that a file names, each one with what it is to it."""
    if path.name in PROJECT_FILES:
        return _listed_files(path, text_of(path))
    return () if _is_lock(path.name) else included(path, text_of(path))


def _line_of(text: str, entry: str, keys: Sequence[str]) -> int:
    """Return the line on which an entry of the list at `keys` stands, as far as text can tell."""
    start = _position(text, keys)
    bare, escaped = re.escape(entry), re.escape(entry.replace('"', '\\"'))
    forms = [rf"(?<=[=:\n])[ \t]*{bare}[ \t]*$", rf"[\"']{bare}[\"']", rf"\"{escaped}\""]
    found = (re.compile(form, re.MULTILINE).search(text, start) for form in forms)
    return _line_at(text, next((m.end() for m in found if m), start))


def _position(text: str, keys: Sequence[str]) -> int:
    """Return where a TOML or INI text sets the key at a path of tables, as far as text can tell."""
    position = 0
    names = [rf"[\"']?{re.escape(key)}[\"']?" for key in keys]
    for size in range(len(keys), 0, -1):
        dotted = r"[ \t]*\.[ \t]*".join(names[:size])
        header = rf"^[ \t]*\[+[ \t]*{dotted}[ \t]*\]"
        if match := re.search(header, text, re.MULTILINE):
            position, names = match.end(), names[size:]
            break
    for name in names:
        key = rf"^[ \t]*(?:[\w\"'-]+[ \t]*\.[ \t]*)*{name}[ \t]*[.=:]|[{{,]\s*{name}[ \t]*="
        form = re.compile(key, re.MULTILINE | re.IGNORECASE)
        if match := form.search(text, position):
            # Of a dotted key the next part is on the same line.
            position = match.start() if match[0].endswith(".") else match.end()
    return position


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def read_metadata(path: Path, name: str) -> list[Declared]:
    """Return what an installed distribution's METADATA file declares about `name`."""
    wanted = canonical(name)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    found: list[Declared] = []
    wants = re.compile(rf"requires-dist:\s*{spelled(wanted)}(?![\w.-])", re.IGNORECASE)
    for number, line in enumerate(text.splitlines(), start=1):
        if not line:  # The description follows.
            break
        if wants.match(line):
            tier: Tier = "optional" if "extra ==" in line else "required"
            found += parsed(line.partition(":")[2], path, number, tier)
    return [d for d in found if d.name == wanted]


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


def _read(file: _File) -> Iterator[Declared]:
    match file.path.name:
        case "pyproject.toml":
            yield from _pyproject(file)
        case "setup.cfg":
            yield from _setup_cfg(file)
        case "setup.py":
            yield from _setup_py(file)
        case "Pipfile":
            yield from _tables(file, ("packages",), "required")
            yield from _tables(file, ("dev-packages",), "optional")
        case "Pipfile.lock":
            yield from _pipfile_lock(file)
        case _:
            yield from _lock(file)


def _lock(file: _File) -> Iterator[Declared]:
    """Scan the `[[package]]` blocks of uv, poetry and pdm, `[[packages]]` of PEP 751."""
    pattern = re.compile(
        r'^\[\[packages?\]\]\s*\n(?:(?!\[).*\n)*?name\s*=\s*"([^"]+)"'
        r'(?:\n(?!\[).*)*?\nversion\s*=\s*"([^"]+)"',
        re.MULTILINE,
    )
    for match in pattern.finditer(file.text):
        if canonical(match[1]) == file.wanted:
            yield _locked(file, match[2], _line_at(file.text, match.start(1)))


def _locked(file: _File, version: str, line: int) -> Declared:
    # One marker for each version: several versions of a lock are alternatives.
    text = f"{file.wanted}=={version}"
    return Declared(file.wanted, f"=={version}", file.path, line, text, "lock", version)


def _pipfile_lock(file: _File) -> Iterator[Declared]:
    try:
        content = json.loads(file.text)
    except ValueError:
        return
    for section in ("default", "develop"):
        packages = _at(content, section)
        for name, entry in packages.items() if isinstance(packages, dict) else ():
            version = str(_at(entry, "version") or "")
            if canonical(name) == file.wanted and version.startswith("=="):
                start = max(file.text.find(f'"{section}"'), 0)
                line = _line_at(file.text, max(file.text.find(f'"{name}"', start), 0))
                yield _locked(file, version[2:], line)


@lru_cache(maxsize=4)  # One text is asked for several packages.
def _toml(text: str) -> Mapping[str, Any]:
    from aliaslint.source.config import ConfigError, load_toml

    try:
        return load_toml(Path(), text.encode())
    except ConfigError:
        return {}


def _at(table: object, *keys: str) -> Any:
    """Return the value at a path of tables, an empty table where there is none."""
    for key in keys:
        table = table.get(key, {}) if isinstance(table, dict) else {}
    return table


def _below(content: object, *keys: str) -> list[tuple[str, ...]]:
    """Return the paths of what stands in the table at a path."""
    table = _at(content, *keys)
    return [(*keys, name) for name in table] if isinstance(table, dict) else []


def _pyproject(file: _File) -> Iterator[Declared]:
    content = _toml(file.text)
    optional = [
        *_below(content, "project", "optional-dependencies"),
        *_below(content, "dependency-groups"),
        *_below(content, "tool", "pdm", "dev-dependencies"),
        *((*keys, "dependencies") for keys in _below(content, "tool", "hatch", "envs")),
        ("tool", "uv", "dev-dependencies"),
    ]
    required = ("project", "dependencies")
    yield from _listed(file, _at(content, *required), required, "required")
    for keys in optional:
        yield from _listed(file, _at(content, *keys), keys, "optional")
    poetry = ("tool", "poetry")
    yield from _tables(file, (*poetry, "dependencies"), "required")
    for keys in [poetry, *_below(content, *poetry, "group")]:
        table = "dev-dependencies" if keys == poetry else "dependencies"
        yield from _tables(file, (*keys, table), "optional")


def _listed(file: _File, entries: object, keys: Sequence[str], tier: Tier) -> Iterator[Declared]:
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, str) and file.screen.search(entry):
            yield from parsed(entry, file.path, _line_of(file.text, entry, keys), tier)


def _tables(file: _File, keys: tuple[str, ...], tier: Tier) -> Iterator[Declared]:
    """Read `name = "^1.2"` and `name = {version = "...", optional = true}` of poetry and pipenv."""
    table = _at(_toml(file.text), *keys)
    for name, value in table.items() if isinstance(table, dict) else ():
        if canonical(name) != file.wanted:
            continue
        line = _line_at(file.text, _position(file.text, (*keys, name)))
        for entry in value if isinstance(value, list) else [value]:
            version = entry if isinstance(entry, str) else _at(entry, "version") or None
            optional = bool(_at(entry, "optional"))
            tag = re.fullmatch(r"v?(\d+(?:\.\d+)+)", str(_at(entry, "tag") or ""))
            specifier = _specifier(version) if version else (f"=={tag[1]}" if tag else None)
            shown = f"{name} = {json.dumps(version or entry)}"
            marker = " ".join(str(_at(entry, k)) for k in _ENVIRONMENT if _at(entry, k))
            place: Tier = "optional" if optional else tier
            yield Declared(file.wanted, specifier, file.path, line, shown, place, marker)


def _specifier(version: str) -> str:
    """Return the specifiers for a version constraint of poetry or pipenv.

    `^1.2` keeps the first part that is not zero, `~1.2` the first two, a bare version is exact;
    `|` or `||` separates alternatives, a comma or a space what holds together.
    """
    alternatives = re.split(r"\s*\|\|?\s*", version.strip())
    return "||".join(map(_specifiers_together, alternatives))


def _specifiers_together(version: str) -> str:
    parts = re.split(r"[,\s]+", re.sub(r"([\^~=<>!])\s+", r"\1", version))
    return ",".join(filter(None, map(_specifier_part, parts)))


def _specifier_part(part: str) -> str:
    if part in ("*", ""):
        return ""
    match = re.fullmatch(r"(\^|~)v?(\d+(?:\.\d+)*)(.*)", part)
    if match is None:
        part = re.sub(r"^=(?!=)|^(?=\d)", "==", re.sub(r"\.[xX]$", ".*", part))
        return part.replace("<>", "!=")
    numbers = [int(n) for n in match[2].split(".")]
    keep = min(1, len(numbers) - 1)
    if match[1] == "^":
        keep = next((i for i, n in enumerate(numbers) if n), len(numbers) - 1)
    upper = [*numbers[:keep], numbers[keep] + 1]
    return f">={match[2]}{match[3]},<{'.'.join(map(str, upper))}"


def _setup_cfg(file: _File) -> Iterator[Declared]:
    for keys, value in _ini(file.text).items():
        tier: Tier = "required" if keys[0] == "options" else "optional"
        if not value.startswith("file:"):
            rows = [row.strip() for row in value.splitlines()]
            yield from _listed(file, rows, keys, tier)


def _ini(text: str) -> dict[tuple[str, ...], str]:
    """Return what a setup.cfg says about dependencies, by section and key."""
    import configparser

    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}
    extras = "options.extras_require"
    required = ("options", "install_requires")
    found: dict[tuple[str, ...], str] = {required: parser.get(*required, fallback="")}
    for name in parser.options(extras) if parser.has_section(extras) else ():
        found[extras, name] = parser.get(extras, name)
    return found


def _listed_files(path: Path, text: str) -> Iterator[tuple[Path, Tier]]:
    """Yield the files that metadata name as lists of dependencies: setuptools, hatch's plugin."""
    if path.name not in ("setup.cfg", "pyproject.toml") or not _LISTS_FILES.search(text):
        return
    if path.name == "setup.cfg":
        for keys, value in _ini(text).items():
            if value.startswith("file:"):
                names = re.split(r"[,\n]", value.removeprefix("file:"))
                yield from _beside(path, names, "required" if keys[0] == "options" else "optional")
    if path.name == "pyproject.toml":
        content = _toml(text)
        dynamic = ("tool", "setuptools", "dynamic")
        plugin = ("tool", "hatch", "metadata", "hooks", "requirements_txt")
        yield from _beside(path, _at(content, *dynamic, "dependencies", "file"), "required")
        yield from _beside(path, _at(content, *plugin, "files"), "required")
        for keys in _below(content, *dynamic, "optional-dependencies"):
            yield from _beside(path, _at(content, *keys, "file"), "optional")
        for keys in _below(content, *plugin, "optional-dependencies"):
            yield from _beside(path, _at(content, *keys), "optional")


def _beside(path: Path, names: object, tier: Tier) -> Iterator[tuple[Path, Tier]]:
    for name in [names] if isinstance(names, str) else names if isinstance(names, list) else []:
        if isinstance(name, str) and name.strip():
            yield Path(os.path.normpath(path.parent / name.strip())), tier


def _setup_py(file: _File) -> Iterator[Declared]:
    """Read the literal arguments of `setup(...)`; names that are bound to literals count."""
    try:
        tree = ast.parse(file.text)
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
                        yield from parsed(value, file.path, line, tier)


def _strings(node: ast.expr, names: Mapping[str, ast.expr]) -> Iterator[tuple[str, int]]:
    """Yield the strings in an expression made of literals, with their lines."""
    match node:
        case ast.Constant(value=str(value)):
            yield from ((row, line) for line, row in enumerate(value.split("\n"), node.lineno))
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
