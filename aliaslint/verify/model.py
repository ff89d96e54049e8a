"""What `verify` is asked and what it answers: plain data, no MLX, no analysis.

The JSON of a report is a public interface (DESIGN section 9, docs/schema/verify.json).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from aliaslint.findings import Finding

Verdict = Literal[
    "equivalent",
    "fixed",
    "broken",
    "other-divergence",
    "no-power",
    "kernel",
    "unsupported",
    "error",
]
VERDICTS: tuple[Verdict, ...] = (
    "equivalent",
    "fixed",
    "broken",
    "other-divergence",
    "no-power",
    "kernel",
    "unsupported",
    "error",
)
MEANINGS: dict[Verdict, str] = {
    "equivalent": "batched decoding agrees with decoding one by one",
    "fixed": "alias-broken on disk, and the rewrite cures it",
    "broken": "an alias bug that the rewrite does not cure, or a change that the rewrite makes",
    "other-divergence": "batched differs from one by one, or raises, and not because of aliasing",
    "no-power": "agrees, but a wrong offset would not be seen either",
    "kernel": "differs because of the RoPE kernel of this MLX version",
    "unsupported": "cannot be compared here, for the reason given",
    "error": "the run crashed, hung, or ran out of memory",
}
VERIFIED: frozenset[Verdict] = frozenset(
    {"equivalent", "fixed", "broken", "other-divergence", "no-power", "kernel"}
)


@dataclass(frozen=True, slots=True)
class Edit:
    """Lines of the tree on disk that a fix rewrites (first and last line, from 1).

    `owner` is the attribute that a store-back writes too (`self.offset`), else "".
    """

    path: Path
    first_line: int
    last_line: int
    owner: str = ""


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """One run: the tree on disk, what the rewrite makes of it, and how to run.

    `injected` gives contents that stand for files on disk (the self-test puts faults in).
    `rewritten` maps absolute paths to new contents; None means that `verify` asks the fixer.
    `architectures` names model types to run (empty: all of the target); `configs` maps a model
    type to a configuration that replaces the built-in one. With `nothing_changed` there is nothing
    to run, and the report says so. `timeout` is in seconds and `memory`
    in GiB, each for one architecture. `shard` is (K, N), counted from 1. `rope_kernel` names a
    function of `rope_kernels` that takes the place of MLX's own, to show what its defect does.
    `findings` are what the edits cure, shown beside the architectures that they explain.
    """

    target: Path
    rewritten: Mapping[Path, bytes] | None = None
    edits: tuple[Edit, ...] = ()
    architectures: tuple[str, ...] = ()
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    device: str | None = None
    dtype: str = "float32"
    jobs: int = 2
    timeout: float = 60.0
    memory: float = 6.0
    shard: tuple[int, int] = (1, 1)
    seed: int = 0
    rope_kernel: str | None = None
    findings: tuple[Finding, ...] = ()
    injected: Mapping[Path, bytes] = field(default_factory=dict)
    nothing_changed: bool = False


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """One scenario of one architecture: what was measured, and the verdict over it.

    `status` maps each run ("disk", "rewritten", "value") to "ok", "raised" or "unsupported".
    Differences are maxima of absolute logit differences; None where a side did not run:
    `alias` disk against value semantics, `rewrite` rewritten against value semantics,
    `other` value semantics against one by one, `difference` disk against one by one, and
    `cured` rewritten against one by one. `noise` is what two runs of one tree differ by (looked
    for where aliasing is suspected). `steps` is `difference` step by step.
    """

    name: str
    verdict: Verdict
    reason: str = ""
    scale: float = 0.0
    difference: float | None = None
    alias: float | None = None
    rewrite: float | None = None
    other: float | None = None
    cured: float | None = None
    noise: float = 0.0
    tolerance: float = 0.0
    first_step: int | None = None
    steps: tuple[float, ...] = ()
    status: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ArchitectureResult:
    """The verdict over one configuration of one model type.

    `power` is how far the logits moved in the control run, over their standard deviation.
    `aliases` are further model types that the package builds with the same module. `findings`
    are those of `check` whose trace passes through its module, as `check` prints them in JSON.
    """

    architecture: str
    verdict: Verdict
    reason: str = ""
    variant: str = ""
    scenarios: tuple[ScenarioResult, ...] = ()
    power: float | None = None
    caches: tuple[str, ...] = ()
    seconds: float = 0.0
    rechecked: bool = False
    aliases: tuple[str, ...] = ()
    findings: tuple[Mapping[str, Any], ...] = ()

    @property
    def title(self) -> str:
        return f"{self.architecture} ({self.variant})" if self.variant else self.architecture


@dataclass(frozen=True, slots=True)
class CacheResult:
    """The contract of one cache class: which held handles changed, on disk and rewritten."""

    name: str
    path: str
    verdict: Verdict
    reason: str = ""
    attributes: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    changed_after_rewrite: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The whole answer. `errors` are lines about the run itself, not about one architecture.

    `shard` is (K, N) where this is the K-th of N parts, and `planned` how many configurations all
    parts have together. With `nothing_changed` no file that matters to an architecture had
    changed, and nothing was run.
    """

    version: str
    target: str
    device: str
    dtype: str
    mlx: str
    preflight: Mapping[str, Any]
    architectures: tuple[ArchitectureResult, ...]
    caches: tuple[CacheResult, ...] = ()
    errors: tuple[str, ...] = ()
    edited_files: tuple[str, ...] = ()
    tolerance: Mapping[str, float] = field(default_factory=dict)
    shard: tuple[int, int] = (1, 1)
    planned: int = 0
    nothing_changed: bool = False

    def count(self, verdict: Verdict) -> int:
        return sum(result.verdict == verdict for result in self.architectures)

    @property
    def verified(self) -> int:
        """How many configurations got a real verdict."""
        return sum(result.verdict in VERIFIED for result in self.architectures)

    @property
    def model_types(self) -> int:
        """How many model types got a real verdict, those mapped to another's module too."""
        verified = [result for result in self.architectures if result.verdict in VERIFIED]
        return len({name for r in verified for name in (r.architecture, *r.aliases)})

    def exit_status(self, *, cured_is_success: bool = False, strict: bool = False) -> int:
        """0 nothing alias-broken, 1 something is, 2 nothing could be verified.

        `cured_is_success` is the rule of `fix --verify`, `strict` counts other divergences too.
        A package whose architectures have no verdict is judged by its cache classes. A part of a
        run that has none of its configurations has nothing to say.
        """
        if not self.architectures and (self.planned or self.nothing_changed):
            return 0
        if not self.verified:
            return self._cache_status(cured_is_success)
        failing = _failing(cured_is_success) | ({"other-divergence"} if strict else set())
        return int(any(result.verdict in failing for result in self.architectures))

    def _cache_status(self, cured_is_success: bool) -> int:
        """As `exit_status`, by the cache classes: sound ones do not stand for architectures."""
        if any(cache.verdict in _failing(cured_is_success) for cache in self.caches):
            return 1
        sound = any(cache.verdict in VERIFIED for cache in self.caches)
        return 0 if sound and not self.architectures else 2

    def to_json(self) -> dict[str, Any]:
        counts: dict[str, int] = {verdict: self.count(verdict) for verdict in VERDICTS}
        counts |= {"total": len(self.architectures), "verified": self.verified}
        counts["model_types"] = self.model_types
        data = asdict(self)
        data.pop("edited_files")
        return data | {"summary": counts | {"edited_files": list(self.edited_files)}}


def _failing(cured_is_success: bool) -> set[str]:
    return {"broken"} if cured_is_success else {"broken", "fixed"}


def report_from_json(data: Mapping[str, Any]) -> VerifyReport:
    """The report that `to_json` wrote; anything else raises KeyError, TypeError or the like."""
    values = {k: v for k, v in data.items() if k in VerifyReport.__dataclass_fields__}
    values["architectures"] = tuple(_architecture(item) for item in data["architectures"])
    values["caches"] = tuple(_tuples(CacheResult, item) for item in data["caches"])
    values["errors"] = tuple(data["errors"])
    values["edited_files"] = tuple(data["summary"]["edited_files"])
    values["shard"] = tuple(data.get("shard", (1, 1)))
    return VerifyReport(**values)


def _architecture(item: Mapping[str, Any]) -> ArchitectureResult:
    scenarios = tuple(_tuples(ScenarioResult, scenario) for scenario in item["scenarios"])
    result: ArchitectureResult = _tuples(ArchitectureResult, {**item, "scenarios": scenarios})
    return result


def _tuples(kind: type, item: Mapping[str, Any]) -> Any:
    names = kind.__dataclass_fields__  # type: ignore[attr-defined]
    known = {key: value for key, value in item.items() if key in names}
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in known.items()})
