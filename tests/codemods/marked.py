"""Programs in which « and » mark what a repair is about, and how to carry the repairs out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst
from libcst.codemod import CodemodContext

from aliaslint.codemods.every import EveryCommand
from aliaslint.findings import Action, Named, Repair, Span
from aliaslint.source.files import position

_MARK = re.compile("«([^«»]*)»")


@dataclass(frozen=True, slots=True)
class Outcome:
    text: str
    refused: list[str]


def spans(marked: str) -> tuple[str, list[Span]]:
    """Return the program without its marks, and where each marked piece stands."""
    text, found = "", []
    for index, piece in enumerate(_MARK.split(marked)):
        if index % 2:
            end = position(text + piece, len(text + piece))
            found.append(Span(*position(text, len(text)), *end))
        text += piece
    return text, found


def edit(
    marked: str,
    action: Action,
    *,
    form: str = "array",
    owner: str = "",
    line_length: int = 88,
    repeatable: bool = True,
    names: Sequence[Named] = (),
) -> Outcome:
    """Carry out one kind of repair at all marks."""
    text, places = spans(marked)
    repairs = [
        Repair(
            action,
            span,
            "safe",
            form=form,  # type: ignore[arg-type]
            owner=owner,
            repeatable=repeatable,
            names=tuple(names),
        )
        for span in places
    ]
    command = EveryCommand(CodemodContext(), repairs, line_length=line_length)
    module = cst.parse_module(text)
    return Outcome(command.rewrite(module).code, list(command.refused.values()))
