"""The page of a report, opened in a headless browser where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from aliaslint.verify.formats import render
from aliaslint.verify.model import ArchitectureResult, CacheResult, ScenarioResult, VerifyReport

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
FINDING = {
    "code": "AL101",
    "path": "models/gemma3n.py",
    "line": 134,
    "message": "stale",
    "trace": [{"role": "capture", "path": "models/gemma3n.py", "line": 134, "message": "held"}],
}


def page() -> str:
    steps = (0.0, 1e-6, 3.0)
    scenario = ScenarioResult("history", "fixed", "why", 2.0, 3.0, 3.0, 0.0, 0.0, steps=steps)
    results = (
        ArchitectureResult("llama", "equivalent", power=1.0, aliases=("mistral",)),
        ArchitectureResult("gemma3n", "fixed", "<b>why</b>", "shared-kv", (scenario,)),
        ArchitectureResult("odd", "broken", findings=(FINDING,)),
    )
    cache = CacheResult("BatchKVCache", "models/cache.py", "fixed", "", (), ("offset over trim",))
    facts = {"rope": {"ok": True, "message": "5472 calls right"}}
    report = VerifyReport(
        "1",
        "tree",
        "cpu",
        "float32",
        "0.32.4",
        facts,
        results,
        (cache, CacheResult("TokenBuffer", "models/cache.py", "unsupported")),
        tolerance={"relative": 1e-5},
    )
    return render(report, "html")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The document after its script has run and the first two rows were opened."""
    if BROWSER is None:
        pytest.skip("needs Chromium")
    folder: Path = tmp_path_factory.mktemp("page")
    path = folder / "report.html"
    click = '<script>for (const row of document.querySelectorAll(".row")) row.click();</script>'
    path.write_text(page().replace("</body>", f"{click}</body>"), encoding="utf-8")
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
    done = subprocess.run(
        [BROWSER, *arguments, "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


pytestmark = pytest.mark.slow


def test_every_architecture_has_a_row(opened: str) -> None:
    names = re.findall(r'<tr class="row"[^>]*><td>([^<]*)</td>', opened)
    assert names == ["llama", "gemma3n (shared-kv)", "odd"]


def test_heat_map_colours_what_is_not_zero(opened: str) -> None:
    row = opened[opened.index("gemma3n (shared-kv)") :]
    cells = re.findall(r'<div class="cell"([^>]*)>', row)[:3]
    titles = [re.findall(r'title="([^"]*)"', cell)[0] for cell in cells]
    assert titles == ["step 0: 0", "step 1: 1.0e-6", "step 2: 3.0e+0"]
    assert ["background" in cell for cell in cells] == [False, True, True]


def test_reason_is_text_and_no_markup(opened: str) -> None:
    assert "&lt;b&gt;why&lt;/b&gt;" in opened


def test_trace_stands_beside_a_broken_architecture(opened: str) -> None:
    assert "AL101 models/gemma3n.py:134 stale" in opened
    assert "<code>models/gemma3n.py:134</code> held" in opened


def test_filters_and_legend_name_the_verdicts_that_occur(opened: str) -> None:
    assert re.findall(r"<button[^>]*>([^<]*)</button>", opened) == [
        "1 equivalent",
        "1 fixed",
        "1 broken",
    ]


def test_legend_explains_the_verdicts_of_caches_too(opened: str) -> None:
    assert re.findall(r"<dt[^>]*>([^<]*)</dt>", opened) == [
        "equivalent",
        "fixed",
        "broken",
        "unsupported",
    ]


def test_names_that_share_a_module_are_shown(opened: str) -> None:
    assert "Also built with it: mistral" in opened
