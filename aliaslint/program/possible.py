"""Whether an attribute that is updated in place may hold an array."""

from __future__ import annotations

import ast
import re

from aliaslint.program.callees import value_after
from aliaslint.program.events import Update
from aliaslint.program.kinds import Kinds
from aliaslint.program.types import Map, Seq, Tup, Type
from aliaslint.program.units import Class, Program

PLAIN_NOTE = re.compile(
    r"(?:Optional\[|Union\[)?(?:int|float|bool|str|bytes|None)(?:[ \t|,]+(?:int|float|bool|str|None))*\]?[ \t]*(?:=.*)?$"
)
PLAIN_PARAMETER = re.compile(r"(?:Optional\[)?(?:int|float|bool|str|None)\b\]?[ \t]*(?:[,)=:|]|$)")
CHAINED = re.compile(r"[ \t]*[\w.]+[ \t]*=(?!=)[ \t]*")
TARGETS = re.compile(r"[\w.,\s*]*")
PLAIN_CALLS = frozenset("len int float bool str round range max min abs sum".split())


class Possible:
    """Answers from the text where it can, from the inferred kinds where it must."""

    def __init__(self, program: Program, kinds: Kinds) -> None:
        self.program = program
        self.kinds = kinds
        self._plain: dict[str, bool] = {}
        self._evident: dict[tuple[str, bool], bool] = {}
        self._nested = False
        self._names: dict[tuple[int, str], bool] = {}
        self._module = ""
        self._answers: dict[tuple[str, str, bool, bool], bool] = {}

    def update(self, update: Update) -> bool:
        """True if the update may change an array in place."""
        if self.plain(update.attr):
            return False
        owners = self.owners(update)
        if not owners:
            return True
        item = not update.augmented
        return any(self.in_class(c, update.attr, item, update.nested) for c in owners)

    def known(self, update: Update) -> bool:
        """True if the inferred kinds say that the attribute holds an array."""
        owners = self.owners(update)
        return any("array" in self.kinds.attribute(c.key, update.attr) for c in owners)

    def owners(self, update: Update) -> list[Class]:
        """Return the classes whose instances may be the receiver."""
        made = self.program.class_of.get(update.unit)
        node = update.unit.nodes[0] if update.unit.first else None
        match update.receiver:
            case ast.Name(id=name) if made is not None and node is not None:
                assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
                args = [*node.args.posonlyargs, *node.args.args]
                if args and args[0].arg == name and not node.decorator_list:
                    return self.program.family(made)
            case _:
                pass
        return self.having(update.attr)

    def having(self, attr: str) -> list[Class]:
        """Return the classes whose text stores or declares the attribute."""
        pattern = re.compile(rf"\b{attr}\b[^=\n]*=|^[ \t]+{attr}[ \t]*:", re.MULTILINE)
        found: dict[Class, None] = {}
        for classes in self.program.classes.values():
            for made in classes:
                if attr not in self.program.texts[made.module.id]:
                    continue
                if any(pattern.search(unit.text) for unit in made.units()):
                    for item in self.program.family(made):
                        found[item] = None
        return list(found)

    def in_class(self, made: Class, attr: str, item: bool, nested: bool) -> bool:
        key = (made.key, attr, item, nested)
        if key not in self._answers:
            self._answers[key] = holds_array(self.kinds.attribute(made.key, attr), item, nested)
        return self._answers[key]

    def container(self, attr: str) -> bool:
        """True if the attribute may be a list, tuple or dict of arrays."""
        types = [self.kinds.attribute(c.key, attr) for c in self.having(attr)]
        atoms = [atom for type_ in types for atom in type_]
        if any(isinstance(atom, (Seq, Map, Tup)) for atom in atoms):
            return True
        return "array" not in atoms

    # --- evidence

    def evident(self, attr: str, nested: bool = False) -> bool:
        """True if something in the program's text may give the attribute an array.

        `nested`: or a container of arrays.
        """
        key = (attr, nested)
        if key not in self._evident:
            self._evident[key] = False  # what an attribute is made of itself shows nothing
            before, self._nested = self._nested, nested
            self._evident[key] = self._find_evidence(attr)
            self._nested = before
        return self._evident[key]

    def _find_evidence(self, attr: str) -> bool:
        pattern = re.compile(
            rf"(?:(?P<dot>\.)|^[ \t]+){attr}\b[ \t]*(?P<note>:[^=\n]+)?(?P<op>=(?!=))?[ \t]*",
            re.MULTILINE,
        )
        tuples = re.compile(rf"^[\w.,\s*]*\.{attr}\b[\w.,\s*]*=(?!=)[ \t]*([^\n]*)", re.MULTILINE)
        some = False
        for module in self.program.modules:
            text = self.program.texts[module.id]
            if attr not in text:
                continue
            if re.search(rf"setattr\([^\n]*|isinstance\([^()]*\.{attr}\b", text) and (
                f'"{attr}"' in text or f".{attr}" in text and "isinstance(" in text
            ):
                if re.search(
                    rf"setattr\([^\n]*[\"']{attr}[\"']|isinstance\([^()]*\.{attr}\b", text
                ):
                    return True
            for match in pattern.finditer(text):
                some = some or bool(match["op"] or (match["note"] and not match["dot"]))
                if match["op"]:
                    if self.shows(value_after(text, match.end()), text):
                        return True
                elif match["note"] and not match["dot"] and "array" in match["note"]:
                    return True
            for match in tuples.finditer(text):
                if "," in match.group() and not match[1].rstrip().endswith(".shape"):
                    before = match.group()[: match.start(1) - match.start()]
                    if "," in before.partition("=")[0]:
                        return True
        return not some

    def shows(self, value: str, text: str) -> bool:
        while match := CHAINED.match(value):
            value = value[match.end() :]
        try:
            node = ast.parse(value.strip().rstrip(","), mode="eval").body
        except SyntaxError:
            return "mx." in value
        self._module = text
        return self.shows_array(node)

    def shows_array(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant() | ast.JoinedStr() | ast.Lambda():
                return False
            case ast.Attribute(attr="shape" | "size" | "ndim" | "nbytes" | "dtype"):
                return False
            case ast.Attribute(attr=attr):
                return self.evident(attr, self._nested)
            case ast.List() | ast.ListComp() | ast.Dict() | ast.DictComp() | ast.Set():
                return self._nested
            case ast.Name(id=name):
                return not self.plain_name(name, self._module)
            case ast.Subscript(value=value):
                return self.shows_array(value)
            case ast.Call(func=ast.Name(id=name), args=args) if name in PLAIN_CALLS:
                return name in {"max", "min", "sum"} and any(self.shows_array(a) for a in args)
            case ast.Call(func=ast.Attribute(attr="get", value=value), args=args):
                return self.shows_array(value) or any(self.shows_array(a) for a in args)
            case ast.Call():
                return True
            case _:
                parts = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
                return any(self.shows_array(n) for n in parts)

    def made_new(self, attr: str) -> bool:
        """True if every `self.attr = value` in a constructor stores something new."""
        pattern = re.compile(rf"\bself\.{attr}[ \t]*=(?!=)[ \t]*")
        for units in (
            self.program.methods.get("__init__", ()),
            self.program.methods.get("__new__", ()),
        ):
            for unit in units:
                for match in pattern.finditer(unit.text):
                    value = value_after(unit.text, match.end())
                    if not re.match(r"mx\.(?!custom)|[-+]?\d|None\b", value):
                        return False
        return True

    # --- by text

    def plain(self, attr: str) -> bool:
        """True if the program's text gives the attribute numbers and text alone."""
        if attr not in self._plain:
            self._plain[attr] = True  # an attribute made from itself is as plain as the rest
            self._plain[attr] = self._all_plain(attr)
        return self._plain[attr]

    def _all_plain(self, attr: str) -> bool:
        pattern = re.compile(
            rf"(?:\.|^[ \t]+){attr}\b(?P<index>\[[^\n]*\])?[ \t]*(?P<note>:[^=\n]+)?"
            rf"(?P<op>(?:\*\*|//|<<|>>|[-+*/%&|^@])?=(?!=)|,[^\n]*[^=!<>\n]=(?!=))?[ \t]*(?P<value>[^\n]*)",
            re.MULTILINE,
        )
        some = False
        for module in self.program.modules:
            text = self.program.texts[module.id]
            if attr not in text:
                continue
            for match in pattern.finditer(text):
                op, note = match["op"], match["note"]
                dotted = text[match.start()] == "."
                if not dotted and note and not op:
                    some = True
                    if not PLAIN_NOTE.match(note[1:].strip()):
                        return False
                elif op:
                    if op.startswith(","):
                        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
                        if TARGETS.fullmatch(before) and TARGETS.fullmatch(op[:-1]):
                            return False
                        continue
                    if match["index"]:
                        return False
                    some = True
                    if not dotted and not note and self.in_call(text, match.start()):
                        continue
                    value = value_after(text, match.start("value"))
                    if not self.plain_value(value, op, text):
                        return False
        return some

    def in_call(self, text: str, start: int) -> bool:
        """True for a keyword argument on its own line."""
        line_end = text.find("\n", start + 1)
        return text[start:line_end].rstrip().endswith(",")

    def plain_value(self, text: str, op: str, module: str) -> bool:
        while match := CHAINED.match(text):
            text = text[match.end() :]
        try:
            node = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            return False
        self._module = module
        return self.plain_node(node, op != "=")

    def plain_name(self, name: str, text: str) -> bool:
        """True if the module annotates the name as a number or text, or binds it to such."""
        key = (id(text), name)
        if key not in self._names:
            self._names[key] = True
            some = False
            for match in re.finditer(rf"(?<![\w.]){name}[ \t]*(:(?!=)|=(?!=))[ \t]*([^\n]*)", text):
                before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
                if match[1] == ":":
                    if not PLAIN_PARAMETER.match(match[2]):
                        if re.match(r"[A-Z]|mx\.|list|dict|tuple", match[2]):
                            self._names[key] = False
                            return False
                        continue
                    some = True
                elif not before.strip() or CHAINED.match(before.lstrip()):
                    some = True
                    if match[2].rstrip().endswith(",") and "(" not in match[2]:
                        continue
                    if not self.plain_value(match[2].partition("  #")[0], "=", text):
                        self._names[key] = False
                        return False
            self._names[key] = some
        return self._names[key]

    def plain_node(self, node: ast.expr, loose: bool) -> bool:
        match node:
            case ast.Constant() | ast.JoinedStr():
                return True
            case ast.Compare(ops=ops):
                return all(isinstance(op, (ast.In, ast.NotIn, ast.Is, ast.IsNot)) for op in ops)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="time" | "math"))):
                return True
            case ast.BinOp(left=left, right=right):
                return self.plain_node(left, loose) and self.plain_node(right, loose)
            case ast.UnaryOp(operand=operand):
                return self.plain_node(operand, loose)
            case ast.BoolOp(values=values):
                return all(self.plain_node(v, loose) for v in values)
            case ast.IfExp(body=body, orelse=orelse):
                return self.plain_node(body, loose) and self.plain_node(orelse, loose)
            case ast.Call(func=ast.Name(id="len" | "int" | "float" | "bool" | "str")):
                return True
            case ast.Call(func=ast.Name(id=name), args=args):
                return name in PLAIN_CALLS and all(self.plain_node(a, loose) for a in args)
            case ast.Subscript(value=ast.Attribute(attr="shape")):
                return True
            case ast.Attribute(attr="size" | "nbytes" | "ndim"):
                return True
            case ast.Attribute(attr=attr):
                return self.plain(attr)
            case ast.Name(id=name):
                # Where a number is in sight it stays one, as the inference of kinds has it.
                return loose or self.plain_name(name, self._module)
            case _:
                return False


def holds_array(type_: Type, item: bool, nested: bool) -> bool:
    """True if an update of something of this type may change an array."""
    if not type_:
        return True
    for atom in type_:
        match atom:
            case "array":
                return True
            case "unknown":
                return True
            case Seq(element=element) | Map(element=element):
                if nested and holds_array(element, item, False):
                    return True
            case Tup(elements=elements):
                if nested and any(holds_array(e, item, False) for e in elements):
                    return True
            case "none" | "scalar" | "str" | "other":
                pass
            case _:
                return True
    return False
