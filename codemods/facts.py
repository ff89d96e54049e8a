"""What the analysis says about one module, for a codemod that runs alone."""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from aliaslint.findings import Repair, joined


def repairs(module: cst.Module, filename: str | None, unsafe: bool) -> list[Repair]:
    """Return the repairs of the module's findings, suppressed ones left out.

    The file's project gives the configuration and the dependencies; a module without a file
    (standard input) is analysed for itself.
    """
    from aliaslint import engine
    from aliaslint.source.files import SourceFile, from_bytes

    path = Path(filename or "stdin.py").absolute()
    source = from_bytes(path, module.bytes)
    if not isinstance(source, SourceFile):
        return []
    run = engine.prepare(engine.Request(stdin=source))
    report = engine.judge(run, engine.examine(run, engine.Request(stdin=source)))
    found = [
        finding.repair
        for finding in report.findings
        if finding.path == path and finding.repair and (unsafe or finding.fixable == "safe")
    ]
    return _in_one_pass([repair for repair in found if repair.path in (None, path)])


def _in_one_pass(repairs: list[Repair]) -> list[Repair]:
    """Return the repairs to carry out at once: one a statement, and no copy of a copy."""
    after = joined(repair for repair in repairs if repair.action == "copy-after")
    others = [repair for repair in repairs if repair.action != "copy-after"]
    if any(repair.action == "copy-in-callee" for repair in others):
        return others  # What is left to copy after that, another run finds.
    return [*others, *after.values()]
