"""The verdict table for a terminal, with its legend; the first line says on what it ran."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import IO, Any

from aliaslint.verify.model import (
    MEANINGS,
    VERDICTS,
    ArchitectureResult,
    CacheResult,
    Verdict,
    VerifyReport,
)
from aliaslint.verify.sweep import Progress

COLOURS: dict[Verdict, str] = {
    "equivalent": "green",
    "fixed": "bold cyan",
    "broken": "bold red",
    "other-divergence": "yellow",
    "no-power": "magenta",
    "kernel": "yellow",
    "unsupported": "dim",
    "error": "red",
}


def headline(report: VerifyReport) -> str:
    """The first line of every verdict: device, dtype and version."""
    return (
        f"Verified on {device_words(report.device)} with MLX {report.mlx}, {report.dtype}: "
        f"{report.target}"
    )


def device_words(device: str) -> str:
    return {"cpu": "the CPU", "metal": "Metal", "cuda": "CUDA"}.get(device, device)


def render(report: VerifyReport, stream: IO[str] | None = None) -> None:
    """Print the whole report: headline, tables, legend, summary."""
    from rich.console import Console

    stream = stream or sys.stdout
    width = None if stream.isatty() else 140
    console = Console(file=stream, width=width, highlight=False, soft_wrap=False)
    console.print(headline(report), markup=False, soft_wrap=True)
    for line in preflight_lines(report):
        console.print(line, markup=False, soft_wrap=True)
    if report.architectures:
        console.print(_architecture_table(report.architectures))
    broken = [result for result in report.caches if result.verdict in ("broken", "fixed")]
    if broken:
        console.print(_cache_table(broken))
    if report.architectures or broken:
        console.print(_legend(report), markup=False, soft_wrap=True)
    for error in report.errors:
        console.print(error, markup=False, soft_wrap=True)
    console.print(summary_line(report), markup=False, soft_wrap=True)


def preflight_lines(report: VerifyReport) -> list[str]:
    """What the preflight found that a reader of the verdicts must know."""
    rope = report.preflight.get("rope", {})
    lines = []
    if not report.preflight.get("inplace_mutates", True):
        lines.append("In this MLX version `+=` makes a new array: aliasing cannot show.")
    if not rope.get("ok", True):
        lines.append(f"RoPE kernel probe failed: {rope.get('message', '')}")
    return lines


def summary_line(report: VerifyReport) -> str:
    counts = [f"{report.count(verdict)} {verdict}" for verdict in VERDICTS if report.count(verdict)]
    total = len(report.architectures)
    noun = "configuration" if total == 1 else "configurations"
    if not counts and report.caches:
        broken = sum(cache.verdict in ("broken", "fixed") for cache in report.caches)
        return f"no architectures; {len(report.caches)} cache classes, {broken} alias-broken"
    if not counts and report.nothing_changed:
        return "no architecture is touched by the changed files"
    if not counts:
        return "nothing was verified"
    types = f"; {report.model_types} model types have a verdict"
    return f"{total} {noun}: {', '.join(counts)}{types if report.model_types > 1 else ''}"


def _architecture_table(results: Sequence[ArchitectureResult]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    table.add_column("architecture", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for title in ("on disk", "rewritten", "power"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("reason", overflow="fold", ratio=1)
    for result in results:
        table.add_row(
            Text(result.title),
            Text(result.verdict, style=COLOURS[result.verdict]),
            number(worst(result, "difference")),
            number(worst(result, "cured")),
            number(result.power),
            Text(result.reason),
        )
    return table


def worst(result: ArchitectureResult, name: str) -> float | None:
    """The largest value of one difference over the scenarios of an architecture."""
    batched = [s for s in result.scenarios if not s.name.startswith("sequential")]
    values = [getattr(scenario, name) for scenario in batched]
    known = [value for value in values if value is not None]
    return max(known, default=None)


def number(value: float | None) -> str:
    return "-" if value is None else "0" if value == 0 else f"{value:.1e}"


def _cache_table(results: Sequence[CacheResult]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    table.add_column("cache class")
    table.add_column("verdict", no_wrap=True)
    table.add_column("held handles that changed", overflow="fold", ratio=1)
    for result in results:
        verdict = Text(result.verdict, style=COLOURS[result.verdict])
        table.add_row(Text(result.name), verdict, Text(by_handle(result.changed)))
    return table


def by_handle(changed: Sequence[str]) -> str:
    """`offset (prepare, trim)` from `offset over prepare` and the like, each operation once.

    What `state` hands out are the same arrays: it is named only where nothing else is.
    """
    steps: dict[str, dict[str, None]] = {}
    for item in changed:
        handle, _, step = item.partition(" over ")
        operation = step.partition(" (")[0].partition(" of a ")
        name = f"{operation[0]} of a copy" if operation[1] else operation[0]
        steps.setdefault(handle, {})[name] = None
    attributes = [handle for handle in steps if not handle.startswith("state[")]
    return "; ".join(f"{h} ({', '.join(steps[h])})" for h in attributes or steps)


def _legend(report: VerifyReport) -> str:
    shown = {result.verdict for result in report.caches} & {"broken", "fixed"}
    shown |= {result.verdict for result in report.architectures}
    lines = [f"  {verdict}: {MEANINGS[verdict]}" for verdict in VERDICTS if verdict in shown]
    columns = (
        "  on disk, rewritten: largest difference of the logits from decoding one by one;"
        " power: what shifting the offset by one moves, in standard deviations"
    )
    return "\n".join([*lines, columns] if report.architectures else lines)


class RichProgress(Progress):
    """A live bar with the time left on standard error; silent where that is no terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar

        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self.bar = Bar(
            *columns,
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task: Any = None

    def __enter__(self) -> RichProgress:
        self.bar.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        self.bar.stop()

    def rewriting(self) -> None:
        self.task = self.bar.add_task("working out what fix would write", total=None)

    def started(self, total: int, device: str, mlx: str) -> None:
        if self.task is not None:
            self.bar.remove_task(self.task)
        text = f"verifying on {device_words(device)}, MLX {mlx}"
        self.task = self.bar.add_task(text, total=total)

    def finished(self, title: str) -> None:
        self.bar.advance(self.task)

    def rechecking(self, total: int) -> None:
        self.bar.update(self.task, description=f"re-checking {total} with compilation on")
