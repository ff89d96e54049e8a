"""One verification from request to report: preflight, sweep over the trees, judgement, re-check."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aliaslint import __version__
from aliaslint.errors import UserError
from aliaslint.findings import Finding
from aliaslint.report.json import finding_object
from aliaslint.verify import attribution, configs
from aliaslint.verify.compare import SEQUENTIAL, Measurement, TreeRun, largest, measure, noise
from aliaslint.verify.configs import Plan
from aliaslint.verify.model import (
    ArchitectureResult,
    CacheResult,
    Verdict,
    VerifyReport,
    VerifyRequest,
)
from aliaslint.verify.pool import NOT_RUN, Answer, Pool, child_environment
from aliaslint.verify.target import Target, find_target

TWINS = {"disk": ("disk", "disk-again"), "value": ("value", "value-again")}
Setups = Mapping[str, Mapping[str, Any]]
RECHECKED = frozenset({"fixed", "broken", "other-divergence", "kernel"})


class VerifyError(UserError):
    """Verification cannot start; the message is one line for the user."""


class Progress:
    """Told what happens; the base class says nothing."""

    def rewriting(self) -> None:
        """The fixer is asked what it would write."""

    def started(self, total: int, device: str, mlx: str) -> None:
        """The sweep begins over `total` configurations."""

    def finished(self, title: str) -> None:
        """One configuration has been measured."""

    def rechecking(self, total: int) -> None:
        """`total` configurations are run again, with compilation on."""


@dataclass
class Measured:
    """One configuration after the sweep, before judgement."""

    result: ArchitectureResult
    measurements: list[Measurement] = field(default_factory=list)


@dataclass
class _Collected:
    """What has come in for one plan so far, by tree."""

    plan: Plan
    answers: dict[str, Answer] = field(default_factory=dict)
    results: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)

    @property
    def hopeless(self) -> bool:
        """Whether a tree has no logits to give, so that the others need not run."""
        return any(told is None or told["status"] != "ok" for told in self.results.values())


def run(request: VerifyRequest, progress: Progress | None = None) -> VerifyReport:
    """Verify the target; raises VerifyError or TargetError where nothing can be run at all."""
    progress = progress or Progress()
    require_mlx()
    target = find_target(request.target)
    with tempfile.TemporaryDirectory(prefix="aliaslint-verify-") as name:
        bare = Sweep(replace(request, rewritten={}), target, Path(name))
        bare.preflight()  # What cannot run at all says so before the long work begins.
        plans = chosen_plans(request, target)
        if request.rewritten is None:
            progress.rewriting()
        request = with_rewrite(request, target)
        sweep = Sweep(request, target, Path(name))
        sweep.facts = bare.facts
        measured = sweep.measure(plans, progress)
        measured = sweep.with_noise(measured)
        judged, relative = judge(measured, request.dtype)
        judged = sweep.with_plain_rope(judged, relative)
        judged = sweep.recheck(measured, judged, relative, progress)
        judged = [completed(result, target, request.findings) for result in judged]
        caches = sweep.contracts()
    return VerifyReport(
        version=__version__,
        target=str(target.folder),
        device=str(sweep.facts["device"]),
        dtype=request.dtype,
        mlx=str(sweep.facts["mlx"]),
        preflight={k: v for k, v in sweep.facts.items() if k not in ("status", "device", "mlx")},
        architectures=tuple(judged),
        caches=tuple(caches),
        errors=tuple(sweep.errors),
        edited_files=tuple(sorted(str(path) for path in request.rewritten or {})),
        tolerance={"relative": relative},
    )


def emitted_test(request: VerifyRequest) -> str:
    """The text of a regression test for the caches of the target.

    Raises VerifyError where it has no cache with an array offset, and as `run` does.
    """
    from aliaslint.verify.emit import regression_test

    require_mlx()
    target = find_target(request.target)
    with tempfile.TemporaryDirectory(prefix="aliaslint-verify-") as name:
        sweep = Sweep(replace(request, rewritten={}), target, Path(name))
        sweep.preflight()
        classes = sweep.classes(["disk"]).get("disk", [])
    text = regression_test(target.name, classes)
    if not text:
        raise VerifyError(f"{target.folder} has no cache class with an array as offset")
    return text


def completed(
    result: ArchitectureResult, target: Target, findings: Sequence[Finding]
) -> ArchitectureResult:
    """`result` with the names that share its module, and the findings that explain it."""
    module = target.folder / "models" / f"{result.architecture}.py"
    explained = result.verdict in ("fixed", "broken")
    near = [f for f in findings if explained and module in _places(f)]
    return replace(
        result,
        aliases=target.aliases().get(result.architecture, ()),
        findings=tuple(finding_object(finding) for finding in near),
    )


def _places(finding: Finding) -> set[Path]:
    return {finding.path.resolve(), *(step.path.resolve() for step in finding.trace)}


def require_mlx() -> None:
    """Raise VerifyError where MLX is not installed."""
    if importlib.util.find_spec("mlx") is None or importlib.util.find_spec("numpy") is None:
        raise VerifyError(
            "verify needs MLX, which is not installed: pip install 'aliaslint[verify]'"
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


def chosen_plans(request: VerifyRequest, target: Target) -> list[Plan]:
    """The configurations to run: all of the target or those named, of this shard."""
    known = target.architectures()
    unknown = [name for name in request.architectures if name not in known]
    if unknown:
        raise VerifyError(f"{target.folder} has no architecture named {', '.join(unknown)}")
    chosen = [name for name in known if not request.architectures or name in request.architectures]
    which, of = request.shard
    plans = [plan for name in chosen for plan in configs.plans(name, request.configs.get(name))]
    return plans[which - 1 :: of]


class Sweep:
    """The processes and files of one run."""

    def __init__(self, request: VerifyRequest, target: Target, folder: Path) -> None:
        self.request = request
        self.target = target
        self.folder = folder
        self.setups = make_setups(request, target)
        self.facts: Mapping[str, Any] = {}
        self.errors: list[str] = []
        self.serial = 0

    @property
    def rope_ok(self) -> bool:
        return bool(self.facts["rope"]["ok"])

    @property
    def inline(self) -> bool:
        """Whether each task needs a process of its own: a GPU does not survive a fork."""
        return bool(sys.platform != "linux" or self.facts.get("device", "gpu") != "cpu")

    def preflight(self) -> None:
        """Find out device and versions; raises VerifyError where the device is not there."""
        answer, result = next(
            self._results([self._task("disk", "preflight")], self.setups, True, False)
        )
        if result is None or result["status"] != "ok":
            reason = result["reason"] if result else answer.problem
            raise VerifyError(f"MLX does not work here: {reason}")
        self.facts = result

    def measure(self, plans: Sequence[Plan], progress: Progress) -> list[Measured]:
        """Run every plan in every tree, without compilation."""
        progress.started(len(plans), str(self.facts["device"]), str(self.facts["mlx"]))
        found = {}
        for index, state in self._collected(plans, self.setups, compile_on=False):
            found[index] = measured_plan(state)
            progress.finished(found[index].result.title)
        return [found[index] for index in sorted(found)]

    def with_noise(self, measured: Sequence[Measured]) -> list[Measured]:
        """Run what looks like aliasing twice more, to tell it from runs that never repeat."""
        dtype = self.request.dtype
        again = [i for i, m in enumerate(measured) if attribution.suspected(m.measurements, dtype)]
        plans = [self._plan_of(measured[i].result) for i in again]
        setups = {twin: self.setups[tree] for tree, twins in TWINS.items() for twin in twins}
        final = list(measured)
        for index, state in self._collected(plans, setups, compile_on=False):
            final[again[index]] = add_noise(measured[again[index]], state)
        return final

    def with_plain_rope(
        self, judged: Sequence[ArchitectureResult], relative: float
    ) -> list[ArchitectureResult]:
        """Where the RoPE probe failed: blame the kernel for what plain arithmetic cures."""
        again = [i for i, result in enumerate(judged) if result.verdict == "other-divergence"]
        if self.rope_ok or not again:
            return list(judged)
        plans = [self._plan_of(judged[i]) for i in again]
        setups = {tree: {**setup, "rope": "rope"} for tree, setup in self.setups.items()}
        final = list(judged)
        for index, state in self._collected(plans, setups, compile_on=False):
            plain = judge_one(measured_plan(state), relative)
            first = again[index]
            message = str(self.facts["rope"]["message"])
            final[first] = attribution.blamed_on_kernel(judged[first], plain, message)
        return final

    def recheck(
        self,
        measured: Sequence[Measured],
        judged: Sequence[ArchitectureResult],
        relative: float,
        progress: Progress,
    ) -> list[ArchitectureResult]:
        """Run again, with compilation on, what is not equivalent; that verdict counts."""
        again = [i for i, result in enumerate(judged) if result.verdict in RECHECKED]
        if again:
            progress.rechecking(len(again))
        plans = [self._plan_of(judged[i]) for i in again]
        final = list(judged)
        for index, state in self._collected(plans, self.setups, compile_on=True):
            first = again[index]
            compiled = same_noise(measured[first], measured_plan(state))
            final[first] = combined(judged[first], judge_one(compiled, relative))
        return final

    def contracts(self) -> list[CacheResult]:
        """The cache contract, on disk and rewritten."""
        from aliaslint.verify.contracts import contract_results

        found = self.classes(tree for tree in ("disk", "rewritten") if tree in self.setups)
        if not found:
            return []
        return contract_results(found["disk"], found.get("rewritten", found["disk"]))

    def classes(self, trees: Iterable[str]) -> dict[str, list[Mapping[str, Any]]]:
        """What the contract found for each cache class, by tree; nothing if it could not run."""
        tasks = [self._task(tree, "contract") for tree in trees]
        found: dict[str, list[Mapping[str, Any]]] = {}
        for answer, result in self._results(tasks, self.setups, self.inline, False):
            if result is None or result["status"] != "ok":
                reason = result["reason"] if result else answer.problem
                self.errors.append(f"the cache contract could not be run: {reason}")
                return {}
            found[answer.task["tree"]] = result["classes"]
        return found

    def _plan_of(self, result: ArchitectureResult) -> Plan:
        own = self.request.configs.get(result.architecture)
        plans = configs.plans(result.architecture, own)
        return next(plan for plan in plans if plan.variant == result.variant)

    def _collected(
        self, plans: Sequence[Plan], setups: Setups, compile_on: bool
    ) -> Iterator[tuple[int, _Collected]]:
        """Yield each plan when all trees have answered for it."""
        collected = [_Collected(plan) for plan in plans]
        tasks = [
            self._architecture_task(tree, index, plan)
            for index, plan in enumerate(plans)
            for tree in setups
        ]

        def wanted(task: Mapping[str, Any]) -> bool:
            return not collected[task["index"]].hopeless

        for answer, result in self._results(tasks, setups, self.inline, compile_on, wanted):
            state = collected[answer.task["index"]]
            state.answers[answer.task["tree"]] = answer
            state.results[answer.task["tree"]] = result
            if len(state.answers) == len(setups):
                yield answer.task["index"], state

    def _results(
        self,
        tasks: Sequence[dict[str, Any]],
        setups: Setups,
        inline: bool,
        compile_on: bool,
        wanted: Callable[[Mapping[str, Any]], bool] = lambda task: True,
    ) -> Iterator[tuple[Answer, Mapping[str, Any] | None]]:
        environment = child_environment(compile_on)
        jobs = self.request.jobs
        with Pool(setups, jobs, environment, self.folder, inline) as pool:
            for answer in pool.run(tasks, wanted):
                path = Path(answer.task["result"])
                result = json.loads(path.read_text("utf-8")) if path.exists() else None
                path.unlink(missing_ok=True)
                yield answer, result

    def _task(self, tree: str, kind: str) -> dict[str, Any]:
        self.serial += 1
        request = self.request
        return {
            "id": self.serial,
            "tree": tree,
            "kind": kind,
            "package": self.target.name,
            "device": request.device,
            "dtype": request.dtype,
            "seed": request.seed,
            "timeout": request.timeout,
            "memory": request.memory if self.facts.get("device") == "cpu" else 0.0,
            "out": str(self.folder / f"{self.serial}.npz"),
            "result": str(self.folder / f"{self.serial}.json"),
        }

    def _architecture_task(self, tree: str, index: int, plan: Plan) -> dict[str, Any]:
        own = {"model_type": plan.model_type, "config": plan.values, "index": index}
        return self._task(tree, "architecture") | own | {"names": configs.names()}


def make_setups(request: VerifyRequest, target: Target) -> dict[str, dict[str, Any]]:
    """What each tree's worker is told first; no entry for a rewritten tree without rewriting."""
    base: dict[str, Any] = {
        "package": target.name,
        "folder": str(target.folder),
        "replaced": _as_text(request.injected),
        "forces": None,
        "rope": request.rope_kernel,
    }
    replaced = _as_text({**request.injected, **(request.rewritten or {})})
    forces: dict[str, list[list[Any]]] = {}
    for edit in request.edits:
        lines = [edit.first_line, edit.last_line, edit.owner]
        forces.setdefault(str(edit.path), []).append(lines)
    trees = {"disk": base, "value": base | {"forces": forces}}
    differs = bool(request.rewritten)
    return trees | ({"rewritten": base | {"replaced": replaced}} if differs else {})


def _as_text(contents: Mapping[Path, bytes]) -> dict[str, str]:
    """Bytes as JSON can carry them: each byte one character."""
    return {str(path.resolve()): data.decode("latin-1") for path, data in contents.items()}


class _Missing(Exception):
    """A tree has no logits for a plan: the verdict that follows, and why."""

    def __init__(self, verdict: Verdict, reason: str) -> None:
        super().__init__(reason)
        self.verdict = verdict


def loaded_trees(state: _Collected) -> dict[str, TreeRun]:
    """What each tree answered for a plan; the files with the logits are removed."""
    import numpy as np

    trees: dict[str, TreeRun] = {}
    for tree, answer in sorted(state.answers.items(), key=lambda item: item[1].problem == NOT_RUN):
        path, told = Path(answer.task["out"]), state.results[tree]
        if told is None:
            raise _Missing("error", f"{tree} tree: {answer.problem or 'no result'}")
        if told["status"] != "ok":
            verdict: Verdict = "error" if told["status"] == "error" else "unsupported"
            raise _Missing(verdict, told["reason"])
        with np.load(path) as arrays:
            trees[tree] = TreeRun(told["runs"], {name: arrays[name] for name in arrays})
        path.unlink()
    return trees


def measured_plan(state: _Collected) -> Measured:
    """Compare what the trees answered for one plan."""
    plan = state.plan
    seconds = round(sum(answer.seconds for answer in state.answers.values()), 3)
    result = ArchitectureResult(plan.model_type, "error", variant=plan.variant, seconds=seconds)
    try:
        trees = loaded_trees(state)
    except _Missing as missing:
        return Measured(replace(result, verdict=missing.verdict, reason=str(missing)))
    trees.setdefault("rewritten", trees["disk"])
    caches = tuple((state.results["disk"] or {})["caches"])
    result = replace(result, power=power(trees["value"]), caches=caches)
    return Measured(result, measurements(trees))


def add_noise(measured: Measured, state: _Collected) -> Measured:
    """`measured` with what two runs of one tree differ by, from a repetition."""
    try:
        trees = loaded_trees(state)
    except _Missing:
        return measured
    noisy = [
        replace(m, noise=max(noise(m.name, trees[a], trees[b]) for a, b in TWINS.values()))
        for m in measured.measurements
    ]
    return Measured(measured.result, noisy)


def same_noise(before: Measured, after: Measured) -> Measured:
    """`after` with the noise that was found before, by scenario."""
    known = {m.name: m.noise for m in before.measurements}
    noisy = [replace(m, noise=known.get(m.name, 0.0)) for m in after.measurements]
    return Measured(after.result, noisy)


def measurements(trees: Mapping[str, TreeRun]) -> list[Measurement]:
    """Every scenario measured, decoding one by one first."""
    names = [name for name in trees["value"].runs if name != "control"]
    bounded = set(SEQUENTIAL.values())
    return [measure(name, trees) for name in names if name not in bounded]


def power(run_: TreeRun) -> float | None:
    """How far shifting the offset by one moves the logits, over their standard deviation."""
    control, normal = run_.rows("control"), run_.rows("history")
    if control is None or normal is None:
        return None
    scale = max(float(run_.logits["history"].std()), 1e-6)
    moved = largest(control, normal)
    return None if moved is None else moved / scale


def judge(measured: Sequence[Measured], dtype: str) -> tuple[list[ArchitectureResult], float]:
    """Judge all against the tolerance that their own healthy population gives."""
    everything = [m for item in measured for m in item.measurements]
    population = attribution.healthy_candidates(everything)
    relative = attribution.relative_tolerance(population, dtype)
    return [judge_one(item, relative) for item in measured], relative


def judge_one(item: Measured, relative: float) -> ArchitectureResult:
    if not item.measurements:
        return item.result
    return attribution.with_verdict(item.result, item.measurements, relative)


def combined(before: ArchitectureResult, after: ArchitectureResult) -> ArchitectureResult:
    """The verdict of the re-check, unless it could not run (no compiler, say)."""
    if after.verdict in ("error", "unsupported"):
        note = f"{before.reason} | with compilation on it could not be run: {after.reason}"
        return replace(before, reason=note)
    seconds = round(before.seconds + after.seconds, 3)
    if before.verdict == "kernel" and after.verdict == "other-divergence":
        return replace(before, rechecked=True, seconds=seconds)
    after = replace(after, rechecked=True, seconds=seconds)
    if after.verdict == before.verdict:
        return after
    note = f"{after.reason} | without compilation: {before.verdict}: {before.reason}"
    return replace(after, reason=note.removeprefix(" | "))
