"""Report data: exit status, JSON and back, merging, JUnit, text."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from aliaslint.errors import UserError
from aliaslint.verify import configs
from aliaslint.verify.formats import as_json, render
from aliaslint.verify.junit import as_junit
from aliaslint.verify.merge import load_report, merge_reports
from aliaslint.verify.model import (
    VERDICTS,
    ArchitectureResult,
    CacheResult,
    ScenarioResult,
    Verdict,
    VerifyReport,
    report_from_json,
)
from aliaslint.verify.report_text import by_handle
from aliaslint.verify.report_text import render as render_text

SCENARIO = ScenarioResult("history", "fixed", "why", 2.0, 3.0, 3.0, 0.0, 0.0, steps=(0.0, 3.0))


def report(*verdicts: Verdict, **values: Any) -> VerifyReport:
    results = tuple(
        ArchitectureResult(f"arch{i}", verdict, "why", scenarios=(SCENARIO,))
        for i, verdict in enumerate(verdicts)
    )
    base: dict[str, Any] = {
        "version": "1",
        "target": "tree",
        "device": "cpu",
        "dtype": "float32",
        "mlx": "0.32.4",
        "preflight": {"rope": {"ok": True}},
        "architectures": results,
    }
    return VerifyReport(**{**base, **values})


@pytest.mark.parametrize(
    ("verdicts", "options", "status"),
    [
        (["equivalent"], {}, 0),
        (["equivalent", "fixed"], {}, 1),
        (["equivalent", "fixed"], {"cured_is_success": True}, 0),
        (["broken"], {"cured_is_success": True}, 1),
        (["other-divergence"], {}, 0),
        (["other-divergence"], {"strict": True}, 1),
        (["no-power", "kernel"], {}, 0),
        (["error", "equivalent"], {}, 0),
        (["error", "unsupported"], {}, 2),
        ([], {}, 2),
    ],
)
def test_exit_status(verdicts: list[Verdict], options: dict[str, bool], status: int) -> None:
    assert report(*verdicts).exit_status(**options) == status


@pytest.mark.parametrize(
    ("verdict", "cured", "status"),
    [
        ("equivalent", False, 0),
        ("fixed", False, 1),
        ("fixed", True, 0),
        ("broken", True, 1),
        ("unsupported", False, 2),
    ],
)
def test_package_without_architectures_is_judged_by_its_caches(
    verdict: Verdict, cured: bool, status: int
) -> None:
    found = report(caches=(CacheResult("C", "c.py", verdict),))
    assert found.exit_status(cured_is_success=cured) == status


@pytest.mark.parametrize(("verdict", "status"), [("broken", 1), ("fixed", 1), ("equivalent", 2)])
def test_caches_decide_where_no_architecture_has_a_verdict(verdict: Verdict, status: int) -> None:
    found = report("unsupported", caches=(CacheResult("C", "c.py", verdict),))
    assert found.exit_status() == status


def test_json_goes_there_and_back() -> None:
    cache = CacheResult("C", "models/cache.py", "fixed", "", ("offset",), ("offset over trim",))
    before = report("fixed", "equivalent", caches=(cache,), errors=("line",))
    assert report_from_json(json.loads(as_json(before))) == before


def test_json_counts_every_verdict() -> None:
    summary = json.loads(as_json(report("fixed", "error")))["summary"]
    expected = dict.fromkeys(VERDICTS, 0) | {"fixed": 1, "error": 1, "total": 2, "verified": 1}
    expected["model_types"] = 1
    assert summary == expected | {"edited_files": []}


def test_json_is_strict_about_infinity() -> None:
    scenario = replace(SCENARIO, alias=float("inf"))
    result = ArchitectureResult("a", "fixed", scenarios=(scenario,))
    text = as_json(report(architectures=(result,)))
    assert json.loads(text, parse_constant=pytest.fail)["summary"]["fixed"] == 1


def test_merge_puts_the_shards_together_in_order() -> None:
    names = ["b", "a", "c"]
    parts = [report(architectures=(ArchitectureResult(n, "equivalent"),)) for n in names]
    merged = merge_reports(parts)
    assert [result.architecture for result in merged.architectures] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (report("equivalent"), "arch0 is in more than one of the reports"),
        (report(device="metal"), "the reports differ in device: cpu, metal"),
        (report(dtype="float16"), "the reports differ in dtype: float16, float32"),
    ],
)
def test_merge_refuses_what_does_not_belong_together(other: VerifyReport, message: str) -> None:
    with pytest.raises(UserError, match=message):
        merge_reports([report("equivalent"), other])


@pytest.mark.parametrize(
    ("shards", "message"),
    [
        ([(1, 3), (3, 3)], "shard 2/3 is missing"),
        ([(2, 3)], "shard 1/3, 3/3 is missing"),
        ([(1, 2), (1, 3)], "shards of different runs: 1/2, 1/3"),
    ],
)
def test_merge_refuses_an_incomplete_run(shards: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        merge_reports([report(shard=shard) for shard in shards])


def test_merged_report_is_a_whole_one() -> None:
    merged = merge_reports([report(shard=(k, 2), planned=0) for k in (1, 2)])
    assert merged.shard == (1, 1)


def test_shard_without_configurations_is_no_failure() -> None:
    broken = CacheResult("C", "c.py", "broken")
    assert report(caches=(broken,), shard=(3, 3), planned=2).exit_status() == 0


def test_report_of_no_change_is_no_failure_alone_and_merged() -> None:
    parts = [report(shard=(k, 2), nothing_changed=True) for k in (1, 2)]
    merged = merge_reports(parts)
    assert [r.exit_status() for r in (*parts, merged)] == [0, 0, 0]
    last = render(parts[0], "text").splitlines()[-1]
    assert last == "no architecture is touched by the changed files"


@pytest.mark.parametrize("text", ["no json", "[" * 200_000, "[]", '{"version": "1"}'])
def test_loading_what_is_no_report(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(UserError, match="is no report of verify"):
        load_report(path)


def test_junit_counts_and_names() -> None:
    root = ElementTree.fromstring(as_junit(report("fixed", "equivalent", "error", "unsupported")))
    suite = root[0]
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "4", "failures": "1", "errors": "1", "skipped": "1"}
    kinds = [[child.tag for child in case] for case in suite]
    assert kinds == [["failure"], ["system-out"], ["error"], ["skipped"]]


@pytest.mark.parametrize(("strict", "failures"), [(False, "0"), (True, "1")])
def test_junit_fails_where_the_exit_status_does(strict: bool, failures: str) -> None:
    root = ElementTree.fromstring(render(report("other-divergence"), "junit", strict=strict))
    assert root[0].get("failures") == failures


def test_text_names_the_device_first() -> None:
    stream = io.StringIO()
    render_text(report("fixed"), stream)
    first = stream.getvalue().splitlines()[0]
    assert first == "Verified on the CPU with MLX 0.32.4, float32: tree"


def test_text_explains_the_verdicts_that_occur() -> None:
    text = render(report("fixed", "no-power"), "text")
    assert "fixed: alias-broken on disk, and the rewrite cures it" in text
    assert "no-power: agrees, but a wrong offset would not be seen either" in text
    assert "kernel:" not in text


@pytest.mark.parametrize("verdicts", [(), ("equivalent",)])
def test_text_explains_the_verdicts_of_caches_too(verdicts: tuple[Verdict, ...]) -> None:
    caches = tuple(CacheResult(name, "a.py", name) for name in ("fixed", "unsupported"))  # type: ignore[arg-type]
    text = render(report(*verdicts, caches=caches), "text")
    assert "fixed: alias-broken on disk, and the rewrite cures it" in text
    assert "unsupported: " not in text
    assert ("largest difference of the logits" in text) == bool(verdicts)


def test_changed_handles_stand_together() -> None:
    changed = [
        "offset over update_and_fetch (prefill)",
        "state[2] over trim",
        "offset over update_and_fetch (decode)",
        "offset over update_and_fetch of a shallow copy",
        "left_padding over finalize",
    ]
    assert by_handle(changed) == (
        "offset (update_and_fetch, update_and_fetch of a copy); left_padding (finalize)"
    )


def test_state_is_named_where_it_alone_changes() -> None:
    assert by_handle(["state[2] over trim"]) == "state[2] (trim)"


def test_variants_take_the_values_of_their_architecture() -> None:
    first, shared = configs.plans("gemma3n")
    layers = first.values["text_config"]["layer_types"]
    assert shared.values["text_config"]["layer_types"] == layers
    assert shared.values["text_config"]["num_kv_shared_layers"] == 2
    assert "num_kv_shared_layers" not in first.values["text_config"]


def test_own_configuration_replaces_the_table() -> None:
    assert [plan.values for plan in configs.plans("gemma3n", {"x": 1})] == [{"x": 1}]


def test_json_follows_the_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    path = Path(__file__).parents[2] / "docs" / "schema" / "verify.json"
    cache = CacheResult("C", "models/cache.py", "fixed", "", ("offset",), ("offset over trim",))
    facts = {"python": "3.12.1", "inplace_mutates": True, "rope": {"ok": True, "message": "right"}}
    document = json.loads(
        as_json(
            report("fixed", "error", caches=(cache,), preflight=facts, tolerance={"relative": 1})
        )
    )
    schema = json.loads(path.read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(document)
    assert set(document) == set(schema["properties"])
    assert set(document["architectures"][0]) == set(schema["$defs"]["architecture"]["properties"])
    scenario = document["architectures"][0]["scenarios"][0]
    assert set(scenario) == set(schema["$defs"]["scenario"]["properties"])


def test_page_holds_the_report_and_loads_nothing() -> None:
    result = ArchitectureResult("arch", "fixed", "</script><script>alert(1)</script>")
    page = render(report(architectures=(result,)), "html")
    start = page.index('id="data">') + len('id="data">')
    data = json.loads(page[start : page.index("</script>", start)])
    assert data["report"]["architectures"][0]["reason"] == "</script><script>alert(1)</script>"
    assert not re.search(r"""(?:src|href)=|@import|url\(|https?://""", page)


def test_merge_on_the_command_line(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from aliaslint.cli.verify import command

    for name, verdict in (("a", "equivalent"), ("b", "fixed")):
        part = report(architectures=(ArchitectureResult(name, verdict),))  # type: ignore[arg-type]
        (tmp_path / f"{name}.json").write_text(as_json(part))
    paths = [str(tmp_path / "b.json"), str(tmp_path / "a.json")]
    done = CliRunner().invoke(
        command, ["--merge", *paths, "--output-format", "json"], standalone_mode=False
    )
    merged = json.loads(done.output)
    assert [item["architecture"] for item in merged["architectures"]] == ["a", "b"]
    assert done.return_value == 1


@pytest.mark.parametrize("option", ["--output-file", "--emit-test"])
def test_file_that_cannot_be_written_is_told_before_the_work(tmp_path: Path, option: str) -> None:
    from click.testing import CliRunner

    from aliaslint.cli.verify import command

    path = tmp_path / "nowhere" / "file"
    done = CliRunner().invoke(command, [str(tmp_path), option, str(path)], standalone_mode=False)
    assert str(done.exception) == f"{path}: cannot be written: there is no folder {path.parent}"


@pytest.mark.parametrize("option", ["--timeout", "--memory"])
def test_limits_are_positive(option: str) -> None:
    from click.testing import CliRunner

    from aliaslint.cli.verify import command

    done = CliRunner().invoke(command, [option, "0"])
    assert (done.exit_code, "0 is not in the range" in done.output) == (2, True)


@pytest.mark.parametrize("text", ["3/2", "0/2", "x", "1/", "1/2/3"])
def test_shard_that_makes_no_sense(text: str) -> None:
    from aliaslint.cli.verify import _shard

    with pytest.raises(UserError, match="write it as K/N"):
        _shard(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--merge", "--inject", "a"], "--merge does not go with --inject"),
        (
            ["--merge", "--package", "a", "-a", "b", "--config", "b=c"],
            "--merge does not go with --package, --arch, --config",
        ),
        (
            ["--emit-test", "t.py", "--merge", "--strict"],
            "--emit-test does not go with --merge, --strict",
        ),
        (["--inject", "--shard", "1/2"], "--inject does not go with --shard"),
        (["--inject", "--output-format", "junit"], "--inject answers in text or json"),
    ],
)
def test_option_that_would_do_nothing_is_refused(arguments: list[str], message: str) -> None:
    from click.testing import CliRunner

    from aliaslint.cli.verify import command

    done = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert str(done.exception) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["llama"], "--config llama: write it as model_type=config.json"),
        (["llama="], "--config llama=: write it as model_type=config.json"),
        (["=given.json"], "--config =given.json: write it as model_type=config.json"),
        (["llama=nowhere.json"], "nowhere.json: cannot be read: No such file or directory"),
        (["llama=deep.json"], "deep.json: is no JSON"),
        (["llama=list.json"], "list.json: a configuration is a JSON object"),
        (
            ["llama=given.json", "mistral=given.json"],
            "--config mistral=given.json: llama has a configuration already",
        ),
    ],
)
def test_configuration_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    from aliaslint.cli.verify import _configs
    from aliaslint.verify.target import find_target

    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "cache.py").write_text("")
    (tmp_path / "utils.py").write_text('MODEL_REMAPPING = {"mistral": "llama"}\n')
    texts = {"given": "{}", "list": "[]", "deep": "[" * 200_000}
    for name, text in texts.items():
        (tmp_path / f"{name}.json").write_text(text)
    with pytest.raises(UserError) as raised:
        _configs(find_target(tmp_path), options)
    assert str(raised.value) == message


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_report_that_cannot_be_written_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    from aliaslint.cli.verify import write_report

    done = report(architectures=(ArchitectureResult("shown", "equivalent"),))
    with pytest.raises(UserError, match="/dev/full: cannot be written: No space left on device"):
        write_report(done, "json", Path("/dev/full"))
    assert "shown" in capsys.readouterr().out
