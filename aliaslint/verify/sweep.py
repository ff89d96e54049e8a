"""The runs behind one verification: preflight, sweep over the trees, repetition, re-check."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from aliaslint.errors import UserError
from aliaslint.verify import attribution, configs
from aliaslint.verify.configs import Plan
from aliaslint.verify.gather import (
    TWINS,
    Collected,
    Measured,
    add_noise,
    combined,
    judge_one,
    measured_plan,
    same_noise,
    unlike,
)
from aliaslint.verify.model import (
    ArchitectureResult,
    CacheResult,
    VerifyRequest,
)
from aliaslint.verify.pool import NOT_RUN, Answer, Pool, child_environment
from aliaslint.verify.target import Target, TargetError, installed_package

Setups = Mapping[str, Mapping[str, Any]]
Early = Mapping[int, tuple[Answer, Mapping[str, Any] | None]]
# glibc fills what it hands out with the bytes 0x41 and what it gets back with 0xbe, in float32
# 12.08 and -0.37: a model that reads what it never wrote gives other logits, instead of those
# that chance left in memory.
FILLED = {"MALLOC_PERTURB_": "190"}
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
            if result is None:
                raise VerifyError(f"a first run of MLX failed: {answer.problem}")
            raise VerifyError(f"MLX does not work here: {result['reason']}")
        self.facts = result

    def early(self, plans: Sequence[Plan], enough: Callable[[], bool]) -> Early:
        """What the tree on disk answers, plan by plan, until it is enough."""
        tasks = [self._architecture_task("disk", index, plan) for index, plan in enumerate(plans)]
        answers = self._results(
            tasks, self.setups, self.inline, compile_on=False, wanted=lambda task: not enough()
        )
        return {a.task["index"]: (a, result) for a, result in answers if a.problem != NOT_RUN}

    def measure(
        self, plans: Sequence[Plan], progress: Progress, early: Early | None = None
    ) -> list[Measured]:
        """Run every plan in every tree, without compilation; what was answered early is known."""
        progress.started(len(plans), str(self.facts["device"]), str(self.facts["mlx"]))
        found = {}
        known = early or {}
        for index, state in self._collected(plans, self.setups, compile_on=False, early=known):
            found[index] = measured_plan(state)
            progress.finished(found[index].result.title)
        return [found[index] for index in sorted(found)]

    def with_noise(self, measured: Sequence[Measured]) -> list[Measured]:
        """Run what looks like aliasing twice more, to tell it from runs that never repeat."""
        dtype = self.request.dtype
        again = [i for i, m in enumerate(measured) if attribution.suspected(m.measurements, dtype)]
        return self._repeated(measured, again, compile_on=False)

    def _repeated(
        self, measured: Sequence[Measured], again: Sequence[int], compile_on: bool
    ) -> list[Measured]:
        """`measured` with noise for those named, from two more runs of each tree."""
        plans = [self._plan_of(measured[i].result) for i in again]
        setups = {
            twin: {**self.setups[tree], "environment": filled}
            for tree, twins in TWINS.items()
            if tree in self.setups
            for twin, filled in zip(twins, ({}, FILLED), strict=True)
        }
        final = list(measured)
        for index, state in self._collected(plans, setups, compile_on):
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
        compiled = {
            index: same_noise(measured[again[index]], measured_plan(state))
            for index, state in self._collected(plans, self.setups, compile_on=True)
        }
        found = [compiled[i] for i in range(len(again))]
        doubtful = [i for i, m in enumerate(found) if unlike(measured[again[i]], m, relative)]
        noisy = self._repeated(found, doubtful, compile_on=True)
        final = list(judged)
        for first, found_again in zip(again, noisy, strict=True):
            final[first] = combined(judged[first], judge_one(found_again, relative))
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
        self,
        plans: Sequence[Plan],
        setups: Setups,
        compile_on: bool,
        early: Early = MappingProxyType({}),
    ) -> Iterator[tuple[int, Collected]]:
        """Yield each plan when all trees have answered for it; `early` are answers of "disk"."""
        collected = [Collected(plan) for plan in plans]
        for index, (answer, result) in early.items():
            collected[index].answers["disk"], collected[index].results["disk"] = answer, result
        tasks = [
            self._architecture_task(tree, index, plan)
            for index, plan in enumerate(plans)
            for tree in setups
            if tree not in collected[index].answers
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
        caches = self.target.cache_package
        own = {"model_type": plan.model_type, "config": plan.values, "index": index}
        own |= {"caches": caches}
        return self._task(tree, "architecture") | own | {"names": configs.names()}


def make_setups(request: VerifyRequest, target: Target) -> dict[str, dict[str, Any]]:
    """What each tree's worker is told first; no entry for a rewritten tree without rewriting."""
    base: dict[str, Any] = {
        "package": target.name,
        "folder": str(target.folder),
        "replaced": _as_text(request.injected),
        "forces": None,
        "rope": request.rope_kernel,
        "beside": _beside(target),
    }
    replaced = _as_text({**request.injected, **(request.rewritten or {})})
    forces: dict[str, list[list[Any]]] = {}
    for edit in request.edits:
        lines = [edit.first_line, edit.last_line, edit.owner]
        forces.setdefault(str(edit.path), []).append(lines)
    trees = {"disk": base, "value": base | {"forces": forces, "environment": FILLED}}
    differs = bool(request.rewritten)
    return trees | ({"rewritten": base | {"replaced": replaced}} if differs else {})


def _beside(target: Target) -> dict[str, str]:
    """The package whose caches the target's models use, if it is another one, by its name."""
    if target.cache_package == target.name:
        return {}
    try:
        return {target.cache_package: str(installed_package(target.cache_package))}
    except TargetError:  # What needs it will say so.
        return {}


def _as_text(contents: Mapping[Path, bytes]) -> dict[str, str]:
    """Bytes as JSON can carry them: each byte one character."""
    return {str(path.resolve()): data.decode("latin-1") for path, data in contents.items()}
