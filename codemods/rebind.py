"""Rebinds instead of updating in place: `x op= e` becomes `x = x op e`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import libcst as cst

from aliaslint.codemods.command import EditCommand, Edited, Refused
from aliaslint.codemods.operators import BINARY, binary, precedence
from aliaslint.codemods.purity import Again, is_stable
from aliaslint.findings import Repair

_LINE_END = re.compile(r"[\r\n]")
_Hoisted = list[cst.BaseSmallStatement]


def rebind(editor: EditCommand, node: cst.CSTNode, repair: Repair) -> Edited:
    """`x op= e` becomes `x = x op e`; an owner is evaluated once, before, unless it may be twice.

    A name may, where evaluating `e` cannot rebind it; of attributes and elements the repair has
    to say so, since only the analysis sees properties and what a call does.
    """
    update = _augmented(node)
    hoisted: _Hoisted = []

    def hoist(expression: cst.BaseExpression, name: str) -> cst.BaseExpression:
        variable = editor.fresh(name, repair.span)
        hoisted.append(_assign([cst.Name(variable)], expression))
        return cst.Name(variable)

    def is_local(name: str) -> bool:
        return editor.is_local(name, repair.span)

    again = Again(update.value, repair.repeatable, is_local)
    target = evaluated_once(update.target, again, hoist)
    return cst.FlattenSentinel([*hoisted, _rebound(update, [target], target)])


def store_back(editor: EditCommand, node: cst.CSTNode, repair: Repair) -> Edited:
    """`mine op= e` becomes `self.offset = mine = mine op e`, with the owner of the repair."""
    update = _augmented(node)
    return _rebound(update, [_owner(repair), update.target], update.target)


def copy_first(editor: EditCommand, node: cst.CSTNode, repair: Repair) -> Edited:
    """`self.offset = mx.array(self.offset)` is put before `self.offset[i] = v`.

    The owner of the repair is the array, where several are written to, or else the attribute
    that a local array belongs to.
    """
    owners = [_owner(repair)] if repair.owner else []
    array = _written_array(node, owners)
    if not is_stable(array):
        raise Refused("the array that is written to would be evaluated twice")
    owners = [owner for owner in owners if not _same(owner, array)]
    copied = cst.Call(editor.array(repair.span), [cst.Arg(_plain(array))])
    before = _assign([*owners, _plain(array)], copied)
    assert isinstance(node, cst.BaseSmallStatement)
    return cst.FlattenSentinel([before, node])


def evaluated_once(
    target: cst.BaseExpression,
    again: Again,
    hoist: Callable[[cst.BaseExpression, str], cst.BaseExpression],
) -> cst.BaseExpression:
    """Return a target that can be written twice; `hoist` gives a variable for what cannot.

    The owner is hoisted before the index, which is the order in which Python evaluates them.
    """
    if isinstance(target, cst.Attribute):
        owner = target.value
        if not again.gives_the_same(owner):
            target = target.with_changes(value=hoist(_bare(owner), "owner"))
    elif isinstance(target, cst.Subscript):
        owner = target.value
        index = list(target.slice)
        stable = all(map(again.gives_the_same, index))
        if not again.gives_the_same(owner) or not (stable or again.survives(owner, index)):
            target = target.with_changes(value=hoist(_bare(owner), "owner"))
        if not stable:
            target = target.with_changes(slice=[_hoisted_index(i, hoist) for i in index])
    return target


def _hoisted_index(
    element: cst.SubscriptElement,
    hoist: Callable[[cst.BaseExpression, str], cst.BaseExpression],
) -> cst.SubscriptElement:
    """Give each part of an index that is not a constant a variable, in order."""

    def part(expression: cst.BaseExpression | None, name: str) -> cst.BaseExpression | None:
        if expression is None or isinstance(expression, cst.Integer | cst.Ellipsis):
            return expression
        return hoist(_bare(expression), name)

    piece = element.slice
    if isinstance(piece, cst.Slice):
        changed: cst.BaseSlice = piece.with_changes(
            lower=part(piece.lower, "start"),
            upper=part(piece.upper, "stop"),
            step=part(piece.step, "step"),
        )
    elif isinstance(piece, cst.Index) and piece.star is None:
        changed = piece.with_changes(value=part(piece.value, "index"))
    else:
        raise Refused("its index cannot be evaluated once")
    return element.with_changes(slice=changed)


def _rebound(
    update: cst.AugAssign, targets: list[cst.BaseExpression], old: cst.BaseExpression
) -> cst.Assign:
    """Build the assignment; spaces and continuations around `op=` go around the `=`."""
    operator = cast(cst.AddAssign, update.operator)  # All thirteen have the same fields.
    *outer, last = [cst.AssignTarget(_assignable(target)) for target in targets]
    last = last.with_changes(
        whitespace_before_equal=operator.whitespace_before,
        whitespace_after_equal=operator.whitespace_after,
    )
    value = binary(BINARY[type(operator)], _plain(old), update.value)
    return cst.Assign([*outer, last], value, semicolon=update.semicolon)


def _augmented(node: cst.CSTNode) -> cst.AugAssign:
    if not isinstance(node, cst.AugAssign):
        raise Refused("this is no augmented assignment")
    return node


def _assign(targets: list[cst.BaseExpression], value: cst.BaseExpression) -> cst.Assign:
    return cst.Assign([cst.AssignTarget(_assignable(target)) for target in targets], value)


def _assignable(node: cst.BaseExpression) -> cst.BaseAssignTargetExpression:
    if not isinstance(node, cst.Name | cst.Attribute | cst.Subscript):
        raise Refused("this cannot be assigned to")
    return node


def _owner(repair: Repair) -> cst.BaseExpression:
    """Return the owner's attribute that a repair names. Raises Refused if it is not plain."""
    try:
        owner = cst.parse_expression(repair.owner)
    except cst.ParserSyntaxError:
        raise Refused("the owner of the array is not known") from None
    if not is_stable(owner):
        raise Refused("its owner would be evaluated twice")
    return _assignable(owner)


def _written_array(node: cst.CSTNode, owners: Sequence[cst.BaseExpression]) -> cst.BaseExpression:
    """Return `a` of `a[i] = v`, `a[i]: T = v` and `a[i] op= v`; of several, the owner."""
    match node:
        case cst.Assign(targets=targets):
            arrays = [a for target in targets for a in _indexed(target.target)]
        case cst.AnnAssign(target=target) | cst.AugAssign(target=target):
            arrays = [*_indexed(target)]
        case _:
            arrays = []
    named = [a for a in arrays if any(_same(a, owner) for owner in owners)]
    if not named and len(arrays) != 1:
        raise Refused("only a plain `a[i] = v` can be given a copy")
    return (named or arrays)[0]


def _indexed(target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield what the targets of an assignment index."""
    match target:
        case cst.Subscript(value=array):
            yield array
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element in elements:
                yield from _indexed(element.value)


def _same(one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Whether two expressions are the same, however they are written."""
    trees = [ast.parse(f"({cst.Module([]).code_for_node(e)})", mode="eval") for e in (one, other)]
    return ast.dump(trees[0]) == ast.dump(trees[1])


def _bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return an expression without the parentheses that an assignment does not need."""
    bare = node.with_changes(lpar=[], rpar=[])
    on_one_line = not _LINE_END.search(cst.Module([]).code_for_node(bare))
    needed = isinstance(bare, cst.NamedExpr)
    return bare if on_one_line and precedence(bare) > 0 and not needed else node


def _plain(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return a second copy of an expression, on one line and without its comments."""
    code = cst.Module([]).code_for_node(node)
    if not _LINE_END.search(code):
        return node.deep_clone()
    tree = ast.parse(f"({code})", mode="eval")
    return cst.parse_expression(ast.unparse(tree))


class RebindCommand(EditCommand):
    """The codemod; see the module."""

    DESCRIPTION = (
        "Rewrite in-place updates of mx.array attributes to rebindings (`self.offset += n` to "
        "`self.offset = self.offset + n`), so that whoever captured the array keeps its value. "
        "Without --span the aliaslint analysis of the module says which."
    )
    HANDLERS = {"rebind": rebind, "store-back": store_back, "copy-first": copy_first}  # noqa: RUF012
