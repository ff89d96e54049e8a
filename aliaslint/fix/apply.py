"""Carries out repairs on the text of one file, in memory."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from aliaslint.findings import FileError, Repair
from aliaslint.fix import comments, feeds
from aliaslint.source.files import SourceFile

# In this order, so that the spans of a later step still hold: comments stand behind code.
_IN_COMMENTS = frozenset({"remove-suppression"})


@dataclass(frozen=True, slots=True)
class Edit:
    """A file with repairs carried out, and why others were not."""

    source: SourceFile
    refused: dict[Repair, str]


def edit(source: SourceFile, repairs: Sequence[Repair], line_length: int) -> Edit | FileError:
    """Return `source` edited, or the error for a file that cannot be.

    Raises nothing; the text of a refused repair stays as it is.
    """
    text = source.text
    if text.encode(source.encoding) != source.data:
        message = f"cannot be rewritten: its bytes are not what {source.encoding} gives back"
        return FileError(source.path, None, None, message)
    refused: dict[Repair, str] = {}
    hidden = [r.span for r in repairs if r.action in _IN_COMMENTS]
    code = [r for r in repairs if r.action not in _IN_COMMENTS]
    if hidden and code:
        refused.update(dict.fromkeys(code, "another round has to come first"))
        code = []
    if hidden:
        text = comments.remove(text, hidden)
    if code:
        try:
            rewritten = _rewrite(source, code, line_length)
        except RecursionError:  # libcst's passes go deeper than those of the analysis
            message = "cannot be rewritten: it is nested too deeply"
            return FileError(source.path, None, None, message)
        if isinstance(rewritten, FileError):
            return rewritten
        text, refused = rewritten
    return Edit(replace(source, text=text, data=text.encode(source.encoding)), refused)


def _rewrite(
    source: SourceFile, repairs: Sequence[Repair], line_length: int
) -> tuple[str, dict[Repair, str]] | FileError:
    """Run the codemods over the text. libcst is imported here, when there is something to do."""
    import libcst as cst
    from libcst.codemod import CodemodContext

    from aliaslint.codemods.every import EveryCommand

    old_mac = "\r" in source.text and "\n" not in source.text  # libcst mixes its line ends up.
    whole = source.text.replace("\r", "\n") if old_mac else source.text
    text, taken = feeds.taken_out(whole)
    moved = {taken.moved(repair): repair for repair in repairs}
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        message = f"cannot be rewritten: libcst does not parse it: {error.message}"
        return FileError(source.path, error.editor_line, error.editor_column, message)
    command = EveryCommand(CodemodContext(), [*moved], line_length=line_length)
    edited = transplanted(text, module.code, command.rewrite(module).code)
    if edited is not None:
        edited = taken.put_back(text, edited)
    if edited is None:
        message = "cannot be rewritten: libcst does not give back the text that it parsed"
        return FileError(source.path, None, None, message)
    refused = {moved.get(repair, repair): reason for repair, reason in command.refused.items()}
    return edited.replace("\n", "\r") if old_mac else edited, refused


def transplanted(text: str, before: str, after: str) -> str | None:
    """Return `text` with the lines in which `after` differs from `before`.

    `before` is what libcst makes of `text`: the same, but for spaces that it drops in rare places
    (`except E :`). None if such a place lies in the lines that changed.
    """
    if text == before:
        return after
    old, own = before.splitlines(keepends=True), text.splitlines(keepends=True)
    new = after.splitlines(keepends=True)
    if len(old) != len(own):
        return None
    lines: list[str] = []
    for tag, i, j, m, n in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal" and old[i:j] != own[i:j]:
            return None
        lines += own[i:j] if tag == "equal" else new[m:n]
    return "".join(lines)
