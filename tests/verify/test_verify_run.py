"""Whole runs over a small package written for these tests, with real MLX."""

from __future__ import annotations

import json
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("mlx.core")

from aliaslint.cli.verify import command
from aliaslint.verify import Edit, VerifyReport, VerifyRequest, run
from aliaslint.verify.model import ArchitectureResult, Verdict

pytestmark = pytest.mark.slow

TREE = Path(__file__).parent / "trees" / "tinylm"
CACHE = TREE / "models" / "cache.py"


def rebound() -> tuple[dict[Path, bytes], tuple[Edit, ...]]:
    """The cache file with rebindings in place of its in-place updates of the offset."""
    before = CACHE.read_text(encoding="utf-8").splitlines(keepends=True)
    after = [
        line.replace("self.offset += ", "self.offset = self.offset + ").replace(
            "self.offset -= ", "self.offset = self.offset - "
        )
        for line in before
    ]
    changed = [
        i + 1 for i, pair in enumerate(zip(before, after, strict=True)) if len(set(pair)) > 1
    ]
    edits = tuple(Edit(CACHE, line, line) for line in changed)
    assert len(edits) == 3
    return {CACHE: "".join(after).encode()}, edits


def request(*architectures: str) -> VerifyRequest:
    rewritten, edits = rebound()
    return VerifyRequest(
        TREE, rewritten, edits, architectures, device="cpu", timeout=8.0, memory=2.0
    )


@pytest.fixture(scope="module")
def report() -> VerifyReport:
    return run(request())


@pytest.fixture(scope="module")
def by_name(report: VerifyReport) -> dict[str, ArchitectureResult]:
    return {result.architecture: result for result in report.architectures}


@pytest.mark.parametrize(
    ("name", "verdict", "reason"),
    [
        ("healthy", "equivalent", ""),
        ("folded_heads", "equivalent", ""),
        ("stale", "fixed", "aliasing moves the logits by"),
        ("stale_unmasked", "fixed", "for another reason too"),
        ("unmasked", "other-divergence", "not by aliasing"),
        ("no_positions", "no-power", "shifting the offset by one changes nothing"),
        ("random_noise", "other-divergence", "two runs of the same tree differ by"),
        ("scalar_offset", "other-divergence", "models/scalar_offset.py:10 in positions"),
        ("paged", "unsupported", "OwnCache cannot be merged into a batch"),
        ("huge", "equivalent", ""),
        ("learnable", "equivalent", ""),
        ("colossal", "unsupported", "million parameters even when made small"),
        ("refusing", "unsupported", "ValueError: refuses every configuration"),
        ("leaving", "unsupported", "leaving needs the package nowhere"),
        ("hungry", "unsupported", "Unable to allocate"),
        ("crashing", "error", "SIGABRT: the reason of the crash"),
        ("hanging", "error", "took longer than 8 s"),
    ],
)
def test_verdict(
    by_name: dict[str, ArchitectureResult], name: str, verdict: Verdict, reason: str
) -> None:
    assert by_name[name].verdict == verdict
    assert reason in by_name[name].reason


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc fills what it hands out")
def test_memory_that_was_never_written_is_no_aliasing(
    by_name: dict[str, ArchitectureResult],
) -> None:
    result = by_name["unwritten"]
    assert result.verdict == "other-divergence"
    assert "it reads what it never wrote" in result.reason


def test_every_architecture_has_a_verdict(report: VerifyReport) -> None:
    modules = {path.stem for path in TREE.glob("models/*.py")} - {"cache", "common"}
    assert {result.architecture for result in report.architectures} == modules


def test_what_is_not_equivalent_was_run_with_compilation_too(
    by_name: dict[str, ArchitectureResult],
) -> None:
    again = {name for name, result in by_name.items() if result.rechecked}
    assert again - {"unwritten"} == {
        "stale",
        "stale_unmasked",
        "unmasked",
        "random_noise",
        "scalar_offset",
    }


def test_unsupported_scenario_is_named(by_name: dict[str, ArchitectureResult]) -> None:
    verdicts = {s.name: s.verdict for s in by_name["healthy"].scenarios}
    assert verdicts == dict.fromkeys(verdicts, "equivalent") | {"rotation": "unsupported"}
    assert len(verdicts) == 9


def test_cache_contract(report: VerifyReport) -> None:
    found = {cache.name: (cache.verdict, cache.changed_after_rewrite) for cache in report.caches}
    assert found == {
        "BatchKVCache": ("fixed", ("left_padding over finalize",)),
        "PagedCache": ("equivalent", ()),
    }


def test_device_stands_in_the_report(report: VerifyReport) -> None:
    assert (report.device, report.exit_status(), report.exit_status(cured_is_success=True)) == (
        "cpu",
        1,
        0,
    )


def test_nothing_is_written_into_the_tree(report: VerifyReport) -> None:
    assert not list(TREE.rglob("__pycache__"))


def test_what_was_run_before_the_rewrite_is_known_gives_the_same_verdicts(
    tmp_path: Path, by_name: dict[str, ArchitectureResult]
) -> None:
    tree = tmp_path / "tinylm"
    shutil.copytree(TREE, tree)
    names = ("crashing", "healthy", "paged", "stale", "unmasked")
    wanted = VerifyRequest(tree, None, (), names, device="cpu", timeout=8.0, memory=2.0)
    found = {result.architecture: result.verdict for result in run(wanted).architectures}
    assert found == {name: by_name[name].verdict for name in names}


def test_rewrite_that_cures_nothing_is_told() -> None:
    result = run(replace(request("stale"), rewritten={}, edits=())).architectures[0]
    assert (result.verdict, "not cured" in result.reason) == ("broken", True)


def test_rewrite_that_breaks_a_healthy_architecture_is_told() -> None:
    path = TREE / "models" / "healthy.py"
    text = path.read_text(encoding="utf-8") + "\n    def __call__(self, inputs, cache=None):\n"
    text += "        return 2 * super().__call__(inputs, cache)\n"
    changed = replace(request("healthy"), rewritten={path: text.encode()}, edits=())
    result = run(changed).architectures[0]
    assert (result.verdict, "the rewrite moves the logits" in result.reason) == ("broken", True)


def test_edit_that_touches_a_mutated_parameter_is_no_change_of_a_healthy_architecture(
    tmp_path: Path,
) -> None:
    models = tmp_path / "pkg" / "models"
    models.mkdir(parents=True)
    for name in ("cache", "common", "healthy"):
        (models / f"{name}.py").write_bytes((TREE / "models" / f"{name}.py").read_bytes())
    source = (models / "common.py").read_text(encoding="utf-8")
    spoiled = source.replace(
        "        x = x + self.attention(self.norm(x), cache)\n",
        "        y = x\n        y += self.attention(self.norm(x), cache)\n        x = x + y\n",
    )
    cured = spoiled.replace("y += self.attention", "y = y + self.attention")
    (models / "common.py").write_text(spoiled, encoding="utf-8")
    line = spoiled.splitlines().index("        y += self.attention(self.norm(x), cache)") + 1
    path = models / "common.py"
    wanted = VerifyRequest(
        tmp_path, {path: cured.encode()}, (Edit(path, line, line),), ("healthy",), device="cpu"
    )
    assert run(wanted).architectures[0].verdict == "fixed"


def test_defective_rope_kernel_is_blamed() -> None:
    defective = replace(request("folded_heads"), rope_kernel="single_token_defect")
    found = run(defective)
    assert (found.architectures[0].verdict, found.preflight["rope"]["ok"]) == ("kernel", False)
    assert found.architectures[0].reason.endswith("the RoPE probe fails here: single-token")


def test_aliasing_is_told_from_a_defective_rope_kernel() -> None:
    """The runs that are compared share the kernel, so its defect moves neither of them alone."""
    defective = replace(request("stale", "healthy"), rope_kernel="single_token_defect")
    found = {result.architecture: result.verdict for result in run(defective).architectures}
    assert found == {"healthy": "equivalent", "stale": "fixed"}


def test_shards_cover_everything_once() -> None:
    names = ("healthy", "stale", "no_positions")
    parts = [run(replace(request(*names), shard=(k, 2))).architectures for k in (1, 2)]
    assert [len(part) for part in parts] == [2, 1]
    assert {result.architecture for part in parts for result in part} == set(names)


def test_inline_processes_give_the_same_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aliaslint.verify.sweep.Sweep.inline", True)
    wanted = replace(request("healthy", "stale", "crashing", "hanging"), timeout=6.0)
    verdicts = [result.verdict for result in run(wanted).architectures]
    assert verdicts == ["error", "error", "equivalent", "fixed"]


def test_self_test_catches_both_faults() -> None:
    done = CliRunner().invoke(command, ["--package", "mlx_lm", "--inject", "-a", "llama"])
    pytest.importorskip("mlx_lm")
    assert done.output.count("caught: ") == 2


@pytest.mark.parametrize("request_to_end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupt_leaves_no_process_and_no_folder(
    tmp_path: Path, request_to_end: signal.Signals
) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    code = "from aliaslint.cli.main import main; main()"
    arguments = ["verify", str(TREE), "-a", "hanging", "--timeout", "50", "--device", "cpu"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        cwd=tmp_path,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )
    deadline = time.monotonic() + 60
    while not children_of(process.pid, deep=True) and time.monotonic() < deadline:
        time.sleep(0.1)
    started = children_of(process.pid, deep=True)
    assert started
    process.send_signal(request_to_end)
    process.wait(30)
    alive = [pid for pid in started if Path(f"/proc/{pid}").exists()]
    assert (alive, list(tmp_path.glob("aliaslint-verify-*"))) == ([], [])


@pytest.mark.parametrize(
    ("room", "message"),
    [
        (0, "no place for temporary files: No usable temporary directory found in ["),
        (16, "a first run of MLX failed: its result could not be written: the folder for"),
    ],
)
def test_full_disk_is_one_line(room: int, message: str) -> None:
    """A limit of a few bytes a file stands for it: what is written fails in the same place."""
    code = "from aliaslint.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "verify", str(TREE), "-a", "healthy", "--device", "cpu"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
        check=False,
    )
    assert done.stderr.startswith(f"aliaslint: error: {message}")
    assert (done.stderr.count("\n"), done.returncode) == (1, 2)


def heed_interrupts() -> None:
    """A shell starts what runs in the background with SIGINT ignored, `nohup` with SIGHUP, and
    both are inherited."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def children_of(pid: int, deep: bool) -> list[int]:
    """Processes below `pid`; with `deep` only if some of them have children of their own."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        pytest.skip("needs /proc")
    direct = [int(word) for word in text.split()]
    below = [below for child in direct for below in children_of(child, False)]
    return [] if deep and not below else [*direct, *below]


def test_own_configuration(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"hidden_size": 32, "num_hidden_layers": 1}))
    arguments = [str(TREE), "-a", "healthy", "--config", f"healthy={path}", "--device", "cpu"]
    done = CliRunner().invoke(command, [*arguments, "--output-format", "json"])
    assert json.loads(done.output)["architectures"][0]["verdict"] == "equivalent"


def test_released_configuration_is_made_small(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    released = {
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "rope_theta": 500000.0,
        "eos_token_id": [128001],
    }
    path.write_text(json.dumps(released))
    given = json.loads(path.read_text())
    wanted = replace(request("healthy"), configs={"healthy": given}, memory=1.0)
    assert run(wanted).architectures[0].verdict == "equivalent"


@pytest.mark.parametrize(("in_place", "verdict"), [(True, "broken"), (False, "equivalent")])
def test_caches_of_a_package_without_models(tmp_path: Path, in_place: bool, verdict: str) -> None:
    package = tmp_path / "server"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('not needed for its caches')\n")
    update = "self.offset += n" if in_place else "self.offset = self.offset + n"
    (package / "caches.py").write_text(
        "import mlx.core as mx\n\n\nclass Paged:\n"
        "    def __init__(self, left_padding):\n"
        "        self.offset = mx.array(left_padding)\n\n"
        "    def update_and_fetch(self, keys, values):\n"
        f"        n = keys.shape[2]\n        {update}\n        return keys, values\n"
    )
    found = run(VerifyRequest(tmp_path, {}, device="cpu"))
    assert [(cache.name, cache.verdict) for cache in found.caches] == [("Paged", verdict)]
    assert found.exit_status() == int(in_place)


def test_models_of_a_package_without_caches_use_those_of_mlx_lm(tmp_path: Path) -> None:
    pytest.importorskip("mlx_lm")
    models = tmp_path / "server" / "models"
    models.mkdir(parents=True)
    (models.parent / "__init__.py").write_text("raise RuntimeError('not needed for its models')\n")
    (models / "own.py").write_text("from mlx_lm.models.llama import Model, ModelArgs\n")
    found = run(VerifyRequest(tmp_path, {}, device="cpu"))
    (result,) = found.architectures
    assert (result.architecture, result.verdict, result.caches) == (
        "own",
        "equivalent",
        ("KVCache",),
    )


def test_change_that_touches_no_architecture_gives_an_empty_report(tmp_path: Path) -> None:
    tree, output = tmp_path / "tinylm", tmp_path / "report.json"
    shutil.copytree(TREE, tree)
    changed = tree / "notes.py"
    changed.write_text("")
    arguments = [str(changed), "--output-format", "json", "--output-file", str(output)]
    done = CliRunner().invoke(command, arguments, standalone_mode=False)
    found = json.loads(output.read_text())
    assert (done.return_value, found["architectures"], found["nothing_changed"]) == (0, [], True)
