"""Calls RoPE at native rank: drops a reshape that folds batch or heads and its inverse after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import libcst as cst

from aliaslint.codemods.command import EditCommand, Edited, Refused
from aliaslint.codemods.operators import parenthesised, precedence
from aliaslint.findings import Repair

_MODULES = ("mx", "mlx", "core")


def parts(code: str, repair: Repair) -> Sequence[Repair]:
    """Return a repair for each of the two reshapes around the RoPE call of `repair`.

    Raises Refused if there is no such pair, or if a comment would be lost with a line.
    """
    from aliaslint.rules.ropes.pairs import pairs_in
    from aliaslint.source.files import SourceFile, from_bytes

    source = from_bytes(Path("module.py"), code.encode("utf-8", "surrogatepass"))
    pairs = pairs_in(source) if isinstance(source, SourceFile) else {}
    start = (repair.span.line, repair.span.column)
    pair = next((p for span, p in pairs.items() if (span.line, span.column) == start), None)
    if pair is None:
        raise Refused("the reshapes around the call are not visible, inverse and used only there")
    if pair.loses_comment(code):
        raise Refused("a comment stands at one of the reshapes: drop the pair by hand")
    return [replace(repair, span=span) for span in (pair.fold, pair.unfold)]


def native_rank(editor: EditCommand, node: cst.CSTNode, repair: Repair) -> Edited:
    """`x.reshape(…)` and `mx.reshape(x, …)` become `x`; a line that is `x = x` then goes."""
    from aliaslint.rules.ropes.pairs import RESHAPES

    if not isinstance(node, cst.Call):
        raise Refused("this is no reshape")
    function = node.func
    if isinstance(function, cst.Attribute) and function.attr.value in RESHAPES:
        receiver = function.value
        if not (isinstance(receiver, cst.Name) and receiver.value in _MODULES):
            return receiver
    if not node.args:
        raise Refused("this is no reshape")
    array = node.args[0].value
    return array if precedence(array) >= precedence(cst.Name("x")) else parenthesised(array)


class NativeRankCommand(EditCommand):
    """The codemod; see the module."""

    DESCRIPTION = (
        "Call RoPE at native rank: drop the reshape that folds batch or heads into dimension 0 "
        "and the inverse one after the call. Without --span the aliaslint analysis of the module "
        "says which; with it, the span is that of the RoPE call, or its start."
    )
    HANDLERS = {"native-rank": native_rank}  # noqa: RUF012
    PARTS = {"native-rank": parts}  # noqa: RUF012
