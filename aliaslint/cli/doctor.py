"""`aliaslint doctor`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from aliaslint.cli.options import text_or_json
from aliaslint.errors import UserError, why_not_imported

if TYPE_CHECKING:
    from aliaslint.verify.cache_probe import Held
    from aliaslint.verify.diagnosis import Diagnosis
    from aliaslint.verify.rope_probe import Mismatch, Pattern, ProbeResult

_ROWS = 12


@click.command("doctor")
@text_or_json("How to say it.")
def command(output_format: str) -> int:
    """Say whether this environment computes right results.

    Shows versions and device, whether `+=` changes an array for all its holders, whether the
    caches of the installed mlx-lm do so to an offset that somebody holds, and whether RoPE
    rotates every row of a batch. Exit status 1 if results are wrong here.
    """
    try:
        import mlx.core as mx

        mx.eval(mx.array(0))
    except Exception as error:  # whatever a broken installation raises
        raise UserError(
            f"doctor runs MLX, which cannot be imported here ({why_not_imported(error)}); "
            "pip install 'aliaslint[verify]'"
        ) from None
    from aliaslint.verify.diagnosis import examine

    diagnosis = examine()
    if output_format == "json":
        click.echo(json.dumps(document(diagnosis), indent=2))
    else:
        click.echo("\n".join(_lines(diagnosis)))
    return 0 if diagnosis.ok else 1


def document(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the diagnosis as the JSON object that docs/schema/doctor.json describes."""
    return {
        "version": diagnosis.environment["aliaslint"],
        "ok": diagnosis.ok,
        "environment": diagnosis.environment,
        "inplace_mutates": diagnosis.inplace_mutates,
        "caches": [asdict(held) for held in diagnosis.caches],
        "rope": {
            "ok": diagnosis.rope.ok,
            "calls": diagnosis.rope.calls,
            "patterns": [_pattern(pattern) for pattern in diagnosis.rope.patterns],
        },
        "problems": list(diagnosis.problems),
        "warnings": list(diagnosis.warnings),
    }


def _pattern(pattern: Pattern) -> dict[str, Any]:
    return {
        "name": pattern.name,
        "known": pattern.known,
        "explanation": pattern.explanation,
        "cure": pattern.cure,
        "mismatches": [
            {
                **asdict(m.call),
                "difference": None if m.difference != m.difference else m.difference,
                "wrong_rows": list(m.rows),
                "row_contiguous": m.row_contiguous,
            }
            for m in pattern.mismatches
        ],
    }


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    for name, value in diagnosis.environment.items():
        yield f"{name:<10} {value}"
    meaning = "changes the array for all holders" if diagnosis.inplace_mutates else "rebinds"
    yield f"{'+=':<10} {meaning}"
    yield from _cache_lines(diagnosis.caches)
    yield from _rope_lines(diagnosis.rope)
    for warning in diagnosis.warnings:
        yield f"warning: {warning}"
    for problem in diagnosis.problems:
        yield f"wrong: {problem}"
    if diagnosis.ok:
        yield "This environment computes right results, as far as these probes can tell."


def _cache_lines(caches: tuple[Held, ...]) -> Iterator[str]:
    if not caches:
        yield f"{'caches':<10} none to probe"
    label = "caches"
    for name in dict.fromkeys(held.cache for held in caches):
        told = []
        for attribute in dict.fromkeys(h.attribute for h in caches if h.cache == name):
            steps = [
                h.operation
                for h in caches
                if h.cache == name and h.attribute == attribute and h.changed
            ]
            told.append(
                f"a held {attribute} changes ({', '.join(steps)})"
                if steps
                else f"a held {attribute} keeps its value"
            )
        yield f"{label:<10} {name}: {'; '.join(told)}"
        label = ""


def _rope_lines(rope: ProbeResult) -> Iterator[str]:
    wrong = len(rope.mismatches)
    yield f"{'rope':<10} {rope.calls} calls, " + (f"{wrong} wrong" if wrong else "all right")
    if rope.ok:
        return
    header = ("offset", "rank", "B", "L", "input", "wrong rows", "largest", "calls")
    rows = [header, *_table(rope.mismatches)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    for row in rows[: _ROWS + 1]:
        yield "           " + "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True))
    if len(rows) > _ROWS + 1:
        yield f"           … and {len(rows) - _ROWS - 1} more rows (--output-format json has all)"


def _table(mismatches: tuple[Mismatch, ...]) -> Iterator[tuple[str, ...]]:
    """Yield one row for calls that differ only in function, position, variant and type."""
    groups: dict[tuple[str, ...], list[Mismatch]] = {}
    for m in mismatches:
        call = m.call
        rows = ",".join(map(str, m.rows))
        key: tuple[str, ...] = (
            call.form,
            str(call.rank),
            str(call.batch),
            str(call.length),
            call.layout,
            rows,
        )
        groups.setdefault(key, []).append(m)
    for key, members in sorted(groups.items()):
        yield (*key, f"{max(m.difference for m in members):.2g}", str(len(members)))
