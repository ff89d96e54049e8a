"""The installed mlx-lm: a handful of architectures, without asking the fixer."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from packaging.version import Version

pytest.importorskip("mlx.core")
pytest.importorskip("mlx_lm")

from aliaslint.verify import VerifyError, VerifyReport, VerifyRequest, run
from aliaslint.verify.target import installed_package

pytestmark = pytest.mark.slow
TYPES = ("gemma3_text", "gemma3n", "llama", "mamba", "qwen3_next")


@pytest.fixture(scope="module")
def report() -> VerifyReport:
    target = installed_package("mlx_lm")
    return run(VerifyRequest(target, {}, architectures=TYPES, device="cpu"))


def test_verdicts(report: VerifyReport) -> None:
    found = {r.architecture: r.verdict for r in report.architectures if not r.variant}
    captured = "equivalent" if Version(version("mlx-lm")) >= Version("0.32") else "broken"
    assert found == {
        "gemma3_text": "equivalent",
        "gemma3n": captured,
        "llama": "equivalent",
        "mamba": "other-divergence",
        "qwen3_next": found["qwen3_next"],
    }
    assert found["qwen3_next"] in ("equivalent", "other-divergence")


def test_rotating_caches_rotate(report: VerifyReport) -> None:
    rotating = next(r for r in report.architectures if r.architecture == "gemma3_text")
    verdicts = {scenario.name: scenario.verdict for scenario in rotating.scenarios}
    assert verdicts["rotation"] == "equivalent"
    assert "RotatingKVCache" in rotating.caches


def test_missing_device_is_one_line() -> None:
    import mlx.core as mx

    if mx.default_device().type == mx.gpu:
        pytest.skip("has the device")
    request = VerifyRequest(installed_package("mlx_lm"), {}, architectures=("llama",), device="gpu")
    with pytest.raises(VerifyError, match="MLX does not work here"):
        run(request)
