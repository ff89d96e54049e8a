"""What was black-clean stays so when an edit makes a line too long."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from marked import edit

MX = "import mlx.core as mx\n\n"

CASES = {
    "a line that still fits": (
        "«self.offset += n»\n",
        "rebind",
        "self.offset = self.offset + n\n",
    ),
    "a call at the end is opened": (
        "«self.number_of_positions += mx.maximum(self.left_padding, right_padding_of_batch)»\n",
        "rebind",
        "self.number_of_positions = self.number_of_positions + mx.maximum(\n"
        "    self.left_padding, right_padding_of_batch\n"
        ")\n",
    ),
    "a value without brackets goes into parentheses": (
        "«self.number_of_positions += self.left_padding_of_rows * right_padding_of_rows»\n",
        "rebind",
        "self.number_of_positions = (\n"
        "    self.number_of_positions + self.left_padding_of_rows * right_padding_of_rows\n"
        ")\n",
    ),
    "a sum of several goes into parentheses": (
        "«self.number_of_positions += self.left_padding_of_rows.sum() + keys.shape[2] + 1»\n",
        "rebind",
        "self.number_of_positions = self.number_of_positions + (\n"
        "    self.left_padding_of_rows.sum() + keys.shape[2] + 1\n"
        ")\n",
    ),
    "a difference that needed parentheses anyway": (
        "«self.number_of_positions -= self.left_padding_of_rows - right_padding_of_rows»\n",
        "rebind",
        "self.number_of_positions = self.number_of_positions - (\n"
        "    self.left_padding_of_rows - right_padding_of_rows\n"
        ")\n",
    ),
    "parentheses that only held a long value": (
        "«self.number_of_positions += (\n"
        "    self.left_padding_of_the_rows * self.right_padding_of_the_rows_of_this_batch\n"
        ")»\n",
        "rebind",
        "self.number_of_positions = self.number_of_positions + (\n"
        "    self.left_padding_of_the_rows * self.right_padding_of_the_rows_of_this_batch\n"
        ")\n",
    ),
    "a conditional goes into parentheses": (
        "    offset = «cache[self.index].offset» if cache[self.index] is not None else None\n",
        "snapshot",
        "    offset = (\n"
        "        mx.array(cache[self.index].offset) if cache[self.index] is not None else None\n"
        "    )\n",
    ),
    "a longer conditional is broken before `if` and `else`": (
        "    offset = «cache[self.layer_index].offset» if cache is not None else self.no_offset\n",
        "snapshot",
        "    offset = (\n"
        "        mx.array(cache[self.layer_index].offset)\n"
        "        if cache is not None\n"
        "        else self.no_offset\n"
        "    )\n",
    ),
    "arguments move to a line of their own": (
        "    queries = self.rotary_embedding(queries, offset=«cache.offset», scale=self.scale)\n",
        "snapshot",
        "    queries = self.rotary_embedding(\n"
        "        queries, offset=mx.array(cache.offset), scale=self.scale\n"
        "    )\n",
    ),
    "elements of a tuple get a line each": (
        "    return (self.keys_of_the_layer, self.values_of_the_layer, «self.offset», self.mask)\n",
        "snapshot",
        "    return (\n"
        "        self.keys_of_the_layer,\n"
        "        self.values_of_the_layer,\n"
        "        mx.array(self.offset),\n"
        "        self.mask,\n"
        "    )\n",
    ),
    "a comment stays behind the statement": (
        "«self.number_of_positions += self.left_padding_of_rows * number_of_rows»  # rows\n",
        "rebind",
        "self.number_of_positions = (\n"
        "    self.number_of_positions + self.left_padding_of_rows * number_of_rows\n"
        ")  # rows\n",
    ),
    "a formatted string stays whole": (
        "«self.number_of_the_positions -= f'{left_padding!r:>{width}} {{rows}}' + other_rows»\n",
        "rebind",
        "self.number_of_the_positions = self.number_of_the_positions - (\n"
        "    f'{left_padding!r:>{width}} {{rows}}' + other_rows\n)\n",
    ),
    "what was too long before stays on its line": (
        "«self.number_of_positions += self.left_padding_of_the_rows * "
        "self.right_padding_of_the_rows_of_this_batch»\n",
        "rebind",
        "self.number_of_positions = self.number_of_positions + self.left_padding_of_the_rows * "
        "self.right_padding_of_the_rows_of_this_batch\n",
    ),
    "several statements stay on their line": (
        "«self.number_of_positions += left_padding_of_the_rows»; return_value = positions\n",
        "rebind",
        "self.number_of_positions = self.number_of_positions + left_padding_of_the_rows; "
        "return_value = positions\n",
    ),
    "lines that are not black's stay": (
        "«self.number_of_positions += (self.left_padding_of_rows *\n"
        "                              right_padding_of_rows)»\n",
        "rebind",
        "self.number_of_positions = self.number_of_positions + (self.left_padding_of_rows *\n"
        "                              right_padding_of_rows)\n",
    ),
}


@pytest.mark.parametrize(("before", "action", "after"), CASES.values(), ids=CASES)
def test_breaking_long_lines(before: str, action: str, after: str) -> None:
    frame = "if a:\n" if before.startswith(" ") else ""

    assert edit(MX + frame + before, action, line_length=88).text == MX + frame + after  # type: ignore[arg-type]


def test_the_line_length_can_be_chosen() -> None:
    marked = "«self.offset += self.left_padding * rows»\n"

    assert edit(marked, "rebind", line_length=50).text == (
        "self.offset = (\n    self.offset + self.left_padding * rows\n)\n"
    )


NAMES = [
    "n",
    "self.offset",
    "cache.offset",
    "left_padding",
    "values.shape[2]",
    "max_length_of_rows",
    "right_padding_of_the_batch",
    "number_of_tokens_in_step",
    "-1",
]
SHAPES = [
    "{0} + {1}",
    "{0} - {1}",
    "{0} * ({1})",
    "mx.maximum({0}, {1})",
    "({0} if {1} is not None else {2})",
    "mx.array({0})",
    "self.padding.astype({0})",
    "[{0} for x in {1}]",
    "func(a={0}, b={1})",
]
TARGETS = ["self.offset", "cache[index].offset", "lengths[self.current_index]", "total"]
CAPTURES = [
    "offset = {0}",
    "offset = {0} if {1} is not None else 0",
    "self.offset_of_the_rows = func({1}, offset={0})",
    "return ({0}, {1})",
    "x[i] = self.rope({1}, offset={0}, scale={2})",
    "a = b = {0}",
]


def _value(rng: random.Random, depth: int) -> str:
    if depth <= 0 or rng.random() < 0.2:
        return rng.choice(NAMES)
    return rng.choice(SHAPES).format(*(_value(rng, depth - 1) for _ in range(3)))


def _program(rng: random.Random) -> str:
    """Return a marked program, with the mark around an update or a capture."""
    levels = rng.randrange(4)
    if rng.random() < 0.5:
        operator = rng.choice(["+", "-", "*", "//", "&", "**"])
        line = f"«{rng.choice(TARGETS)} {operator}= {_value(rng, rng.randrange(4))}»"
    else:
        capture = "«self.layers[self.index].cache.offset»"
        line = rng.choice(CAPTURES).format(capture, _value(rng, 2), _value(rng, 1))
    line += rng.choice(["", "", "  # why"])
    ifs = "".join("    " * (i + 1) + f"if a{i}:\n" for i in range(levels))
    return f"{MX}\ndef f():\n{ifs}{'    ' * (levels + 1)}{line}\n"


def _is_clean(black: object, text: str) -> bool:
    return bool(black.format_str(text, mode=black.Mode()) == text)  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(8))
def test_black_has_nothing_to_add(seed: int) -> None:
    black = pytest.importorskip("black")
    rng = random.Random(seed)
    tried, broken = 0, 0
    while tried < 40:
        marked = _program(rng)
        if not _is_clean(black, re.sub("[«»]", "", marked)):
            continue
        tried += 1
        action = "rebind" if re.search("«[^»]*=", marked) else "snapshot"
        after = edit(marked, action).text  # type: ignore[arg-type]
        assert black.format_str(after, mode=black.Mode()) == after
        broken += after.count("\n") != marked.count("\n")
    assert broken > 0


def _clean_for_ruff(folder: Path, programs: Sequence[str]) -> list[bool]:
    """Return which of some programs `ruff format` would leave alone."""
    folder.mkdir()
    for number, text in enumerate(programs):
        (folder / f"m{number}.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--check", "--no-cache", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    touched = set(re.findall(r"m(\d+)\.py", done.stdout))
    return [str(number) not in touched for number in range(len(programs))]


def test_ruff_has_nothing_to_add(tmp_path: Path) -> None:
    pytest.importorskip("ruff")
    rng = random.Random(0)
    marked = [_program(rng) for _ in range(400)]
    before = _clean_for_ruff(tmp_path / "before", [re.sub("[«»]", "", text) for text in marked])
    chosen = [text for text, clean in zip(marked, before, strict=True) if clean]
    actions = ["rebind" if re.search("«[^»]*=", text) else "snapshot" for text in chosen]
    edited = [edit(m, action).text for m, action in zip(chosen, actions, strict=True)]  # type: ignore[arg-type]

    after = _clean_for_ruff(tmp_path / "after", edited)

    assert len(chosen) > 100
    assert [text for text, clean in zip(edited, after, strict=True) if not clean] == []
