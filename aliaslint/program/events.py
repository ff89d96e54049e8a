"""In-place updates that a program's text shows, sorted by what they may change.

Regular expressions find the places; only units where something is found are looked at node by
node. All of it errs on the side of too much: whatever cannot be told counts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from aliaslint.program.units import Program, Unit

OPERATOR = r"(?:\*\*|//|<<|>>|[-+*/%&|^@])="
AUGMENTED = re.compile(r"(?:[-+*/%&|^@]|<<|>>)=(?!=)")
STORED = re.compile(r"\][\s)]*=(?!=)")
RARE = re.compile(
    r"^[ \t(\[*]*[\w.]+\[[^\n=]*\][^\n=]*,[^\n=]*=(?!=)|^[^\n#]*\bfor\b[^\n]*\][^\n]*\bin\b"
    r"|^[^\n#]*\bas[ ]+[\w.]+\[|^[ \t]*[\w.]+\[[^\n=]*\][ \t]*:[^=\n]+=(?!=)",
    re.MULTILINE,
)
INDIRECT = re.compile(
    r"\b(?:__)?(?:i(?:add|sub|mul|truediv|floordiv|mod|pow|and|or|xor|matmul|lshift|rshift)|setitem)"
    r"\b"
)
SIMPLE = re.compile(
    rf"[ \t]*(?P<base>[A-Za-z_]\w*)(?P<attrs>(?:\.[A-Za-z_]\w*)*)(?P<index>\[.*\])?[ \t]*"
    rf"(?P<op>{OPERATOR}|=(?!=))[ \t]*(?P<value>[^#\n]*)"
)
TEXT_KEY = re.compile(r"\[[fr]?[\"']")
PLAIN_START = re.compile(
    r"[-+]?\d[\w.]*\s*(?:#.*)?$|[fr]?[\"']|len\(|int\(|float\(|str\(|None\b|True\b|False\b"
)
CONTAINER_START = re.compile(
    r"\[|\{|dict\(|list\(|set\(|tuple\(|defaultdict\(|Counter\(|OrderedDict\(|bytearray\(|\(\s*$|\(\)"
)


@dataclass(slots=True, eq=False)
class Update:
    """One in-place update of an attribute. `augmented`: `X.a op= v`; `nested`: of an element."""

    unit: Unit
    attr: str
    receiver: ast.expr | None
    augmented: bool
    nested: bool
    node: ast.AST | None = None


@dataclass(slots=True)
class Updates:
    """All updates of a program: of attributes, and the names updated in each unit.

    A name comes with 1 where `name op= v` updates it, with 2 where `name[i] op= v` does, else 0.
    """

    attributes: list[Update] = field(default_factory=list)
    names: dict[Unit, dict[str, int]] = field(default_factory=dict)
    unclear: set[Unit] = field(default_factory=set)


def updates(program: Program) -> Updates:
    """Return what the text of a program updates in place, counters and containers left out."""
    found = Updates()
    for module in program.modules:
        text = program.texts[module.id]
        lines = module.lines
        whole: dict[Unit, None] = {}
        for line in sorted(candidate_lines(text)):
            unit = program.unit_at(module.id, line)
            if unit in whole or harmless(unit, lines[line - 1]):
                continue
            whole[unit] = None
        for unit in whole:
            look_at(unit, found)
    return found


def candidate_lines(text: str) -> set[int]:
    """Return the lines on which something may be updated."""
    starts = [m.start() for m in AUGMENTED.finditer(text)]
    starts += [m.start() for m in STORED.finditer(text)]
    if "[" in text:
        starts += [m.start() for m in RARE.finditer(text)]
    starts += [m.start() for m in INDIRECT.finditer(text)]
    found: set[int] = set()
    line, counted = 1, 0
    for start in sorted(starts):
        line += text.count("\n", counted, start)
        counted = start
        found.add(line)
    return found


def harmless(unit: Unit, line: str) -> bool:
    """True for a line that counts a local number, or stores in a local list or dict."""
    match = SIMPLE.match(line)
    if match is None or match["attrs"] or not unit.first:
        return False
    name, index, op = match["base"], match["index"], match["op"]
    if index and op == "=" and TEXT_KEY.match(index) and index.count("[") == 1:
        return True
    if op == "=" and not index:
        return False
    text = unit.text
    if index:
        only = CONTAINER_START if op == "=" and index.count("[") == 1 else None
        return only is not None and bound_only(text, name, (only,))
    return bound_only(text, name, (PLAIN_START, CONTAINER_START))


def bound_only(text: str, name: str, kinds: tuple[re.Pattern[str], ...]) -> bool:
    """True if the name is first met as `name = value` and bound to such values alone."""
    first = True
    for match in re.finditer(rf"(?<![\w.]){name}\b[ \t]*", text):
        start = text.rfind("\n", 0, match.start()) + 1
        before = text[start : match.start()]
        end = text.find("\n", match.end())
        rest = text[match.end() : end if end >= 0 else len(text)]
        plain = not before.strip() and rest.startswith("=") and not rest.startswith("==")
        if plain:
            value = rest[1:].lstrip(" \t")
            if not any(kind.match(value) for kind in kinds):
                return False
        elif first or may_bind(before, rest):
            return False
        first = False
    return not first


def may_bind(before: str, rest: str) -> bool:
    """True if a name that stands between these parts of its line may be bound there."""
    if not before.strip():
        return not re.match(rf"{OPERATOR}|[.\[]", rest) or bool(TARGETS_AFTER.match(rest))
    if BINDERS.match(before) or "lambda" in before or rest.startswith(":="):
        return True
    loop = before.rfind("for ")
    if loop >= 0 and " in " not in before[loop:]:
        return True
    return bool(TARGETS_BEFORE.fullmatch(before) and TARGETS_AFTER.match(rest))


BINDERS = re.compile(
    r"[ \t]*(?:def|class|global|nonlocal|import|from|with|except|case|async|del)\b"
)
TARGETS_BEFORE = re.compile(r"[\s\w.,()\[\]*]*")
TARGETS_AFTER = re.compile(
    r"[^\n=]*,[^\n=]*(?<![-+*/%&|^@=!<>])=(?!=)|[\s\w.,()\[\]*]*(?<![=!<>])=(?!=)"
)


def look_at(unit: Unit, found: Updates) -> None:
    """Sort the updates of one unit by what they change."""
    if INDIRECT.search(unit.text):
        found.unclear.add(unit)
    names = found.names.setdefault(unit, {})
    for node, augmented in targets(unit):
        base: ast.expr = node
        depth = 0
        while isinstance(base, ast.Subscript):
            base = base.value
            depth += 1
        nested = depth > (0 if augmented else 1)
        match base:
            case ast.Attribute(value=receiver, attr=attr):
                whole = augmented and depth == 0
                found.attributes.append(Update(unit, attr, receiver, whole, nested, node))
                if attr == "__dict__":
                    found.unclear.add(unit)
            case ast.Name(id=name):
                names[name] = max(names.get(name, 0), augmented + (augmented and depth > 0))
            case _:
                found.unclear.add(unit)
    if not names:
        del found.names[unit]


def targets(unit: Unit) -> Iterator[tuple[ast.expr, bool]]:
    """Yield what a unit updates: targets of augmented assignments, and subscripts stored to."""
    seen: set[ast.AST] = set()
    for top in unit.nodes:
        for node in ast.walk(top):
            match node:
                case ast.AugAssign(target=target):
                    seen.add(target)
                    yield target, True
                case ast.Subscript(ctx=ast.Store()) if node not in seen:
                    if not is_text(node.slice):
                        yield node, False
                case _:
                    pass


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
