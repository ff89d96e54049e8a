"""Copies a live array where it is captured: `cache.offset` becomes `mx.array(cache.offset)`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from aliaslint.codemods.command import EditCommand, Edited, Refused
from aliaslint.codemods.operators import as_argument, as_left_operand, parenthesised
from aliaslint.codemods.purity import is_stable
from aliaslint.findings import Named, Repair

_MANY = (cst.Tuple, cst.List, cst.Set, cst.Dict, cst.BaseComp, cst.Lambda)
_CLASS = re.compile(r"_*[A-Z]\w*[a-z]")
_ELEMENT = "each"
_BINDS_TIGHTLY = (cst.BinaryOperation, cst.UnaryOperation, cst.Await)


def snapshot(editor: EditCommand, node: cst.CSTNode, repair: Repair) -> Edited:
    """Copy the value of an expression, in the form that the uses of it accept."""
    if not isinstance(node, cst.BaseExpression) or isinstance(node, _MANY):
        raise Refused("this is not a single array")
    if _is_unpacked(editor):
        raise Refused("it is unpacked, so it is not a single array")
    if isinstance(node, cst.Call) and _makes_an_object(node):
        raise Refused("this makes an object, of which the array is only a part")
    if _is_copy(node, editor, repair) or _is_copied(node, editor, repair):
        raise Refused("it is copied already")
    match repair.form:
        case "keep-int":
            return _keeping_int(node, editor, repair)
        case "keep-any":
            return _call(editor.copy(repair.span), node)
        case _:
            return _call(editor.array(repair.span), node)


def _is_unpacked(editor: EditCommand) -> bool:
    """Whether the value goes to several names at once."""
    match editor.around()[-1]:
        case cst.Assign(targets=targets):
            return any(isinstance(target.target, cst.Tuple | cst.List) for target in targets)
        case cst.StarredElement() | cst.Arg(star="*" | "**"):
            return True
    return False


def _makes_an_object(call: cst.Call) -> bool:
    """Whether a class is called, as far as its name tells."""
    name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    return isinstance(name, cst.Name) and bool(_CLASS.match(name.value))


def _keeping_int(
    node: cst.BaseExpression, editor: EditCommand, repair: Repair
) -> cst.BaseExpression:
    """`copy.copy` gives an int back as it is and copies an array; so does `+ 0`."""
    function = editor.copy_at_hand(repair.span)
    if function is not None:
        return _call(function, node)
    plus = cst.Add()
    total = cst.BinaryOperation(as_left_operand(node, plus), plus, cst.Integer("0"))
    return parenthesised(total) if _binds_tightly(editor) else total


def _call(function: cst.BaseExpression, node: cst.BaseExpression) -> cst.Call:
    """Return the call; parentheses around the expression move around the call."""
    argument = as_argument(node.with_changes(lpar=[], rpar=[]))
    return cst.Call(function, [cst.Arg(argument)], lpar=node.lpar, rpar=node.rpar)


def _is_copy(node: cst.BaseExpression, editor: EditCommand, repair: Repair) -> bool:
    """Whether the expression makes a new array itself: `mx.array(...)`, `x + 0`."""
    if isinstance(node, cst.BinaryOperation | cst.UnaryOperation):
        return True
    return isinstance(node, cst.Call) and _copies(node, editor, repair)


def _is_copied(node: cst.BaseExpression, editor: EditCommand, repair: Repair) -> bool:
    """Whether the expression stands in something that makes a new array of it on the spot."""
    match editor.around()[-2:]:
        case [*_, cst.UnaryOperation()]:
            return True
        case [*_, cst.BinaryOperation(left=left, right=right)]:
            # What stands to the right is evaluated in between, and may update the array.
            return left is not editor.original or is_stable(right)
        case [cst.Call(args=[_]) as call, cst.Arg()]:
            return _copies(call, editor, repair)
    return False


def _copies(call: cst.Call, editor: EditCommand, repair: Repair) -> bool:
    code = cst.Module([]).code_for_node(call.func)
    return code in editor.copying(repair.span)


def _binds_tightly(editor: EditCommand) -> bool:
    """Whether a sum at this place needs parentheses."""
    parent = editor.around()[-1]
    return isinstance(parent, (*_BINDS_TIGHTLY, cst.Attribute, cst.Call, cst.Subscript))


def parts(_: str, repair: Repair) -> Sequence[Repair]:
    """Return a repair for each place of `repair`."""
    return [replace(repair, span=span, also=()) for span in repair.spans]


def copy_after(editor: EditCommand, node: cst.CSTNode, repair: Repair) -> Edited:
    """Put `o = mx.array(o)` behind a statement that takes a container apart, or into its suite."""
    copies = [_copied(editor, name, repair) for name in repair.names]
    match node:
        case cst.Assign():
            return _followed(node, copies, alone=len(_line(editor)) == 1)
        case cst.For() | cst.With():
            return node.with_changes(body=_begun(node.body, copies))
    raise Refused("this statement takes nothing apart")


def _copied(editor: EditCommand, name: Named, repair: Repair) -> cst.Assign:
    """Return the statement that copies what a target holds, a list of it one by one.

    An int is kept by `copy.copy`: of `o = o + 0` a linter makes `o += 0`, which copies nothing.
    """
    function = editor.array(repair.span) if name.form == "array" else editor.copy(repair.span)
    target = cst.parse_expression(name.text)
    if not isinstance(target, cst.Name | cst.Attribute):
        raise Refused("what takes the array cannot be assigned to once more")
    value: cst.BaseExpression = _call(function, target.deep_clone())
    if name.many:
        each = cst.Name(_ELEMENT)
        loop = cst.CompFor(each.deep_clone(), target.deep_clone())
        value = cst.ListComp(_call(function, each), loop)
    return cst.Assign([cst.AssignTarget(target)], value)


def _line(editor: EditCommand) -> Sequence[cst.BaseSmallStatement]:
    """Return the statements of the line of its own that the edited one stands on, if it does."""
    parent = editor.around()[-1]
    return parent.body if isinstance(parent, cst.SimpleStatementLine) else ()


def _followed(
    node: cst.Assign, copies: Sequence[cst.Assign], alone: bool
) -> cst.FlattenSentinel[cst.BaseSmallStatement]:
    """Return the statement with its copies behind it; a `;` comes after them, but on a new line."""
    *others, last = copies
    if not alone:
        last = last.with_changes(semicolon=node.semicolon)
        node = node.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
    return cst.FlattenSentinel([node, *others, last])


def _begun(suite: cst.BaseSuite, copies: Sequence[cst.Assign]) -> cst.BaseSuite:
    """Return a suite that begins with the copies."""
    if isinstance(suite, cst.SimpleStatementSuite):
        return suite.with_changes(body=[*copies, *suite.body])
    assert isinstance(suite, cst.IndentedBlock)
    return suite.with_changes(body=[*(cst.SimpleStatementLine([c]) for c in copies), *suite.body])


class SnapshotCommand(EditCommand):
    """The codemod; see the module."""

    DESCRIPTION = (
        "Copy live mx.array handles where they are captured (`offset = cache.offset` to "
        "`offset = mx.array(cache.offset)`), so that a later in-place update does not reach "
        "them; adds `import mlx.core as mx` if needed. Without --span the aliaslint analysis of "
        "the module says which."
    )
    HANDLERS = {  # noqa: RUF012
        "snapshot": snapshot,
        "copy-in-callee": snapshot,
        "copy-after": copy_after,
    }
    PARTS = {"copy-in-callee": parts}  # noqa: RUF012
