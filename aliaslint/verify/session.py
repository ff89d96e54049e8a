"""One verification from request to report, and what else is asked of a target."""

from __future__ import annotations

import importlib.util
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from aliaslint import __version__
from aliaslint.findings import Finding
from aliaslint.report.json import finding_object
from aliaslint.verify import configs
from aliaslint.verify.aside import Aside
from aliaslint.verify.configs import Plan
from aliaslint.verify.gather import judge
from aliaslint.verify.model import ArchitectureResult, VerifyReport, VerifyRequest
from aliaslint.verify.sweep import RECHECKED, Early, Progress, Sweep, VerifyError
from aliaslint.verify.target import Target, find_target

ENDINGS = (signal.SIGTERM, signal.SIGHUP)


def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="aliaslint-verify-")
    except OSError as error:
        raise VerifyError(f"no place for temporary files: {error.strerror}") from None


@contextmanager
def working_folder() -> Iterator[Path]:
    """A temporary folder that is removed however the work ends.

    A request to terminate ends it too, and so does a terminal that goes away; what ignores a
    signal, under nohup, goes on ignoring it.
    """

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    ours = threading.current_thread() is threading.main_thread()
    heeded = [n for n in ENDINGS if ours and signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, leave) for number in heeded}
    try:
        with _temporary_folder() as name:
            yield Path(name)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(request: VerifyRequest, progress: Progress | None = None) -> VerifyReport:
    """Verify the target; raises VerifyError or TargetError where nothing can be run at all."""
    progress = progress or Progress()
    require_mlx()
    target = find_target(request.target)
    with working_folder() as folder:
        beside = max(1, request.jobs - 1)  # One core is left to the analysis.
        bare = Sweep(replace(request, rewritten={}, jobs=beside), target, folder)
        bare.preflight()  # What cannot run at all says so before the long work begins.
        if request.nothing_changed:
            return _report(request, bare, (), nothing_changed=True)
        planned = chosen_plans(request, target)
        which, of = request.shard
        plans = planned[which - 1 :: of]
        early: Early = {}
        if request.rewritten is None:
            progress.rewriting()
            asked = Aside(partial(with_rewrite, request, target))
            early = bare.early(plans, lambda: asked.done)
            request = asked.result()
        else:
            request = with_rewrite(request, target)
        sweep = Sweep(request, target, folder)
        sweep.facts, sweep.serial = bare.facts, bare.serial
        measured = sweep.measure(plans, progress, early)
        measured = sweep.with_noise(measured)
        judged, relative = judge(measured, request.dtype)
        judged = sweep.with_plain_rope(judged, relative)
        judged = sweep.recheck(measured, judged, relative, progress)
        probes = failed_probes(sweep.facts)
        judged = [completed(result, target, request.findings, probes) for result in judged]
        caches = tuple(sweep.contracts())
    edited = tuple(sorted(str(path) for path in request.rewritten or {}))
    return _report(
        request,
        sweep,
        judged,
        caches=caches,
        errors=tuple(sweep.errors),
        edited_files=edited,
        tolerance={"relative": relative},
        planned=len(planned),
    )


def _report(
    request: VerifyRequest, sweep: Sweep, judged: Sequence[ArchitectureResult], **more: Any
) -> VerifyReport:
    """The report with what the preflight found; `more` are further fields of it."""
    facts = sweep.facts
    return VerifyReport(
        version=__version__,
        target=str(sweep.target.folder),
        device=str(facts["device"]),
        dtype=request.dtype,
        mlx=str(facts["mlx"]),
        preflight={k: v for k, v in facts.items() if k not in ("status", "device", "mlx")},
        architectures=tuple(judged),
        shard=request.shard,
        **more,
    )


def emitted_test(request: VerifyRequest) -> str:
    """The text of a regression test for the caches of the target.

    Raises VerifyError where it has no cache with an array offset, and as `run` does.
    """
    from aliaslint.verify.emit import regression_test

    require_mlx()
    target = find_target(request.target)
    with working_folder() as folder:
        sweep = Sweep(replace(request, rewritten={}), target, folder)
        sweep.preflight()
        classes = sweep.classes(["disk"]).get("disk", [])
    text = regression_test(target.name, classes)
    if not text:
        raise VerifyError(f"{target.folder} has no cache class with an array as offset")
    return text


def failed_probes(facts: Mapping[str, Any]) -> list[str]:
    """What of the preflight failed, in a few words each; the verdicts that it may touch say so."""
    failed = [] if facts["inplace_mutates"] else ["in MLX here += makes a new array"]
    if not facts["rope"]["ok"]:
        failed.append(f"the RoPE probe fails here: {', '.join(facts['rope']['patterns'])}")
    return failed


def completed(
    result: ArchitectureResult, target: Target, findings: Sequence[Finding], probes: Sequence[str]
) -> ArchitectureResult:
    """`result` with the names that share its module, and what explains it."""
    if result.verdict in RECHECKED:
        result = replace(result, reason=" | ".join([result.reason, *probes]))
    files = set(target.files(result.architecture))
    explained = result.verdict in ("fixed", "broken")
    near = [f for f in findings if explained and files & _places(f)]
    return replace(
        result,
        aliases=target.aliases().get(result.architecture, ()),
        findings=tuple(finding_object(finding) for finding in near),
    )


def _places(finding: Finding) -> set[Path]:
    return {finding.path.resolve(), *(step.path.resolve() for step in finding.trace)}


def require_mlx() -> None:
    """Raise VerifyError where MLX or NumPy is not installed."""
    names = {"mlx": "MLX", "numpy": "NumPy"}
    missing = [name for module, name in names.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise VerifyError(
            f"verify needs {' and '.join(missing)}, which is not installed: "
            "pip install 'aliaslint[verify]'"
        )


def with_rewrite(request: VerifyRequest, target: Target) -> VerifyRequest:
    """The request with the rewritten files, from the fixer where it names none."""
    if request.rewritten is not None:
        resolved = {path.resolve(): data for path, data in request.rewritten.items()}
        edits = tuple(replace(edit, path=edit.path.resolve()) for edit in request.edits)
        return replace(request, rewritten=resolved, edits=edits)
    from aliaslint.verify.rewrite import rewrite_in_memory

    made = rewrite_in_memory(target.folder)
    return replace(request, rewritten=made.contents, edits=made.edits, findings=made.findings)


def require_known(target: Target, names: Sequence[str]) -> None:
    """Raise VerifyError where the target has no architecture of one of these names."""
    from difflib import get_close_matches

    known = target.architectures()
    unknown = [name for name in dict.fromkeys(names) if name not in known]
    if not unknown:
        return
    aliases = (alias for names in target.aliases().values() for alias in names)
    close = get_close_matches(unknown[0], [*known, *aliases], n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise VerifyError(f"{target.folder} has no architecture named {', '.join(unknown)}{hint}")


def chosen_plans(request: VerifyRequest, target: Target) -> list[Plan]:
    """The configurations of all shards: of the whole target, or of the architectures named."""
    known = target.architectures()
    require_known(target, (*request.architectures, *request.configs))
    chosen = [name for name in known if not request.architectures or name in request.architectures]
    return [plan for name in chosen for plan in configs.plans(name, request.configs.get(name))]
