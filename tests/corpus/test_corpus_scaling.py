"""The work of check grows about linearly with the program: two copies cost about twice one.

Work is counted in function calls, which a busy machine does not change. The whole of a package
is measured by `python -m benchmarks.speed`, in calls and in CPU seconds.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from benchmarks.speed import prepare

BOUND = 2.3


def installed(package: str) -> Path:
    """Return the folder of an installed package without importing it; skips where it is not."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


def part_of(package: Path, folder: Path) -> Path:
    """Copy the caches and every fourth model: enough of a program, at a quarter of the cost."""
    chosen = {package / "models" / f"{name}.py" for name in ("__init__", "base", "cache")}
    chosen.update(sorted((package / "models").glob("*.py"))[::4])
    for path in sorted(chosen):
        target = folder / package.name / path.relative_to(package)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return folder / package.name


@pytest.mark.slow
def test_two_copies_of_a_tree_cost_about_twice_one(tmp_path: Path) -> None:
    part = part_of(installed("mlx_lm"), tmp_path / "part")
    bench = prepare(part, tmp_path / "bench", rounds=1)
    assert bench.calls(bench.two) / bench.calls(bench.one) < BOUND
