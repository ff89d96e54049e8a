"""Compares what the analysis says before and after an edit."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aliaslint.findings import Finding
from aliaslint.source.files import SourceFile, split_lines

# An edit that cures a finding makes the comment that hid it useless: that is no new fault.
_FOLLOWS_FROM_A_CURE = frozenset({"AL901"})


@dataclass(frozen=True, slots=True)
class Lines:
    """Where the lines of an edited text were before: blocks of (old range, new range)."""

    blocks: Sequence[tuple[range, range]]

    def before(self, line: int) -> range:
        """Return the lines, from 1, that the edited text's `line` comes from; may be empty."""
        for old, new in self.blocks:
            if line in new:
                if len(old) == len(new):
                    return range(old.start + line - new.start, old.start + line - new.start + 1)
                return old
        return range(0)


def lines(before: str, after: str) -> Lines:
    """Match the lines of two texts."""
    old, new = split_lines(before), split_lines(after)
    same = _common_start(old, new)
    tail = _common_start(old[same:][::-1], new[same:][::-1])
    middle = difflib.SequenceMatcher(
        None, old[same : len(old) - tail], new[same : len(new) - tail], autojunk=False
    )
    blocks = [(range(1, same + 1), range(1, same + 1))]
    for _, i, j, m, n in middle.get_opcodes():
        start = same + 1
        blocks.append((range(start + i, start + j), range(start + m, start + n)))
    ends = (len(old) + 1, len(new) + 1)
    blocks.append((range(ends[0] - tail, ends[0]), range(ends[1] - tail, ends[1])))
    return Lines(blocks)


def _common_start(a: Sequence[str], b: Sequence[str]) -> int:
    count = 0
    for left, right in zip(a, b, strict=False):
        if left != right:
            break
        count += 1
    return count


@dataclass(frozen=True, slots=True)
class Verdict:
    """`uncured`: repaired findings that are still found; `new`: findings where none was."""

    uncured: tuple[Finding, ...]
    new: tuple[Finding, ...]


def compare(
    before: Sequence[Finding],
    after: Sequence[Finding],
    repaired: Iterable[Finding],
    edited: Mapping[Path, tuple[SourceFile, SourceFile]],
) -> Verdict:
    """Compare two lists of findings; `edited` maps each changed file to its two texts."""
    maps = {path: lines(old.text, new.text) for path, (old, new) in edited.items()}
    repaired = list(repaired)
    places = {(f.path, f.span.line) for f in before}
    kept = Counter((f.path, f.code, f.span.line) for f in before)
    kept.subtract((f.path, f.code, f.span.line) for f in repaired)
    uncured: list[Finding] = []
    new: list[Finding] = []
    for finding in after:
        where = _was(finding, maps)
        match = next((line for line in where if kept[finding.path, finding.code, line] > 0), None)
        if match is not None:
            kept[finding.path, finding.code, match] -= 1
            continue
        still = [f for f in repaired if _same(f, finding) and f.span.line in where]
        if still:
            uncured += still
        elif not any((finding.path, line) in places for line in where) and _counts(finding):
            new.append(finding)
    return Verdict(tuple(dict.fromkeys(uncured)), tuple(new))


def _was(finding: Finding, maps: Mapping[Path, Lines]) -> range:
    line = finding.span.line
    known = maps.get(finding.path)
    return known.before(line) if known else range(line, line + 1)


def _same(one: Finding, other: Finding) -> bool:
    return (one.path, one.code) == (other.path, other.code)


def _counts(finding: Finding) -> bool:
    return finding.severity == "error" and finding.code not in _FOLLOWS_FROM_A_CURE
