"""What is known about a line: kinds, aliases, staleness, calls, and why it is silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliaslint.explain import explain_line
from aliaslint.explain.model import Call, Explanation, Mention

CACHES = """\
import mlx.core as mx


class PlainCache:
    def __init__(self):
        self.offset = 0

    def update_and_fetch(self, k, v):
        self.offset += k.shape[2]  # plain
        return k, v


class SlotCache:
    def __init__(self, rows):
        self.offset = mx.array([0] * rows)
        self.lengths = mx.array([0] * rows)

    @property
    def size(self):
        return self.offset

    def update_and_fetch(self, k, v):
        self.offset += k.shape[2]  # slot
        return k, v

    def trim(self, n):
        self.lengths -= n  # trim
        self.offset -= n  # aliaslint: ignore[AL001] on purpose


class NewCache:
    def __init__(self, rows):
        self.offset = mx.array([0] * rows)

    def update_and_fetch(self, k, v):
        self.offset = self.offset + k.shape[2]  # new
        return k, v


def fresh(n):
    made = SlotCache(2)
    made.offset += n  # fresh
    return made
"""
MODEL = """\
import mlx.core as mx
import mlx.nn as nn
import elsewhere

from caches import SlotCache


class Attention(nn.Module):
    def __init__(self, dim):
        self.proj = nn.Linear(dim, dim)

    def __call__(self, x, cache):
        start = cache.offset  # capture
        q = self.proj(x)  # project
        k, v = cache.update_and_fetch(q, q)  # update
        q = rotate(q, start)  # read
        elsewhere.log(q)  # outside
        mx.eval(q)  # evaluate
        same = identity(q)  # identity

        def inner(y):
            return y + start  # nested

        return inner(same)
        mx.eval(x)  # behind


def rotate(a, offset):
    return a + offset  # rotate


def identity(a):
    return a


def scale(x: mx.array, n):
    x *= n  # scaled
    return None


def known(n):
    cache = SlotCache(n)
    size = cache.size  # getter
    for i, part in enumerate([cache, cache]):  # loop
        total = [p.offset for p in [part]]  # comprehension
    return size, total
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model and the caches that it imports, outside of every environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "caches.py").write_text(CACHES)
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def explain(folder: Path, name: str, comment: str) -> Explanation:
    """Explain the line of a file that ends with a comment, or holds it."""
    path = folder / name
    lines = path.read_text().split("\n")
    (line,) = (i for i, text in enumerate(lines, 1) if f"# {comment}" in text)
    return explain_line(path, line)


def mention(explanation: Explanation, text: str, bound: bool = False) -> Mention:
    (found,) = (m for m in explanation.mentions if m.text == text and m.bound is bound)
    return found


def call(explanation: Explanation, text: str) -> Call:
    (found,) = (c for c in explanation.calls if c.text == text)
    return found


def kinds(mention: Mention) -> set[str]:
    return {kind.name for kind in mention.kinds}


def codes(explanation: Explanation) -> dict[str, tuple[str, ...]]:
    return {verdict.finding.code: verdict.roles for verdict in explanation.verdicts}


# --- verdicts


def test_a_capture_is_reported_with_its_trace(program: Path) -> None:
    explanation = explain(program, "model.py", "capture")
    assert (explanation.unit, explanation.reported) == ("Attention.__call__", True)
    assert codes(explanation) == {"AL101": ("place", "capture")}
    assert explanation.reasons == ()


@pytest.mark.parametrize(
    ("name", "comment", "role"),
    [
        ("model.py", "update", "call"),
        ("model.py", "rotate", "read"),
        ("model.py", "nested", "read"),
        ("caches.py", "slot", "mutation"),
    ],
)
def test_a_line_that_takes_part_in_a_finding_elsewhere(
    program: Path, name: str, comment: str, role: str
) -> None:
    explanation = explain(program, name, comment)
    roles = codes(explanation)["AL101"]
    assert role in roles
    assert "place" not in roles


def test_findings_that_are_off_or_suppressed_are_told(program: Path) -> None:
    off = explain(program, "caches.py", "trim")
    assert [(v.finding.code, v.status) for v in off.verdicts] == [("AL002", "unselected")]
    assert off.reasons == ("AL002 is not selected here: `--select AL002` shows it",)
    hidden = explain(program, "caches.py", "aliaslint")
    (verdict,) = hidden.verdicts
    assert (verdict.finding.code, verdict.status) == ("AL001", "suppressed")
    assert verdict.comment is not None
    assert verdict.comment.line == hidden.line
    assert not hidden.reported


def test_a_rule_that_is_ignored_in_the_file_is_not_selected(program: Path) -> None:
    config = '[tool.aliaslint.per-file-ignores]\n"model.py" = ["AL101"]\n'
    (program / "pyproject.toml").write_text(config)
    (verdict,) = explain(program, "model.py", "capture").verdicts
    assert verdict.status == "unselected"


# --- why it is silent


@pytest.mark.parametrize(
    ("name", "comment", "reason"),
    [
        (
            "caches.py",
            "plain",
            "`self.offset` is a number in PlainCache: the update binds a new value to it",
        ),
        (
            "caches.py",
            "new",
            "a new array is bound to `self.offset`: who captured the old one keeps its value",
        ),
        (
            "caches.py",
            "fresh",
            "the object that `made.offset` belongs to was made here, and nobody else has it yet",
        ),
        ("model.py", "project", "`q` is a new array (line 14): nobody else holds it"),
        ("model.py", "scaled", "the array of `x` belongs to the caller, and no caller was found"),
        (
            "model.py",
            "behind",
            "this line was not analysed: no path leads to it; what stands in front of it always "
            "leaves, or a condition rules it out",
        ),
    ],
)
def test_says_why_a_line_is_silent(program: Path, name: str, comment: str, reason: str) -> None:
    explanation = explain(program, name, comment)
    assert reason in explanation.reasons
    assert explanation.reached is (comment != "behind")


def test_an_update_that_rebinds_is_the_reason_for_a_healthy_capture(program: Path) -> None:
    healthy = CACHES.replace("self.offset += k", "self.offset = k").replace("-= n", "= n")
    (program / "caches.py").write_text(healthy)
    explanation = explain(program, "model.py", "capture")
    assert not explanation.verdicts
    (reason,) = explanation.reasons
    assert reason.startswith("`cache.offset` is the live array, but every update binds a new one")
    assert "(caches.py:23)" in reason


def test_an_int_in_every_class_is_the_reason_for_a_healthy_capture(program: Path) -> None:
    (program / "caches.py").write_text(CACHES.partition("class SlotCache")[0])
    (program / "model.py").write_text(MODEL.partition("def known")[0])
    (reason,) = explain(program, "model.py", "capture").reasons
    assert reason == ("`cache.offset` is a number in the class of the cache protocol (PlainCache)")


def test_decorators_and_bare_annotations_are_explained(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("import mlx.core as mx\n@mx.compile\ndef f(x):\n    n: int\n    return x\n")
    (reason,) = explain_line(path, 2).reasons
    assert reason.startswith("`@mx.compile` isolates the function")
    assert explain_line(path, 4).reasons == ("an annotation without a value binds nothing",)


# --- mentions


def test_an_attribute_of_unknown_class_is_told_by_class(program: Path) -> None:
    offset = mention(explain(program, "model.py", "capture"), "cache.offset")
    assert offset.guessed
    told = {entry.name: (entry.kinds[0].name, entry.updates) for entry in offset.classes}
    assert told["PlainCache"] == ("number", ())
    assert [(u.how, u.place.line) for u in told["SlotCache"][1]] == [
        ("in-place", 23),
        ("in-place", 28),
    ]
    assert [(u.how, u.place.line) for u in told["NewCache"][1]] == [("rebinds", 36)]


def test_what_a_line_binds_is_told_as_it_is_behind_it(program: Path) -> None:
    start = mention(explain(program, "model.py", "capture"), "start", bound=True)
    assert start.same_as == ("cache.offset",)
    assert [place.line for place in start.captured] == [13]


def test_a_stale_name_is_told_with_the_update_and_the_calls_to_it(program: Path) -> None:
    start = mention(explain(program, "model.py", "read"), "start")
    (change,) = start.stale
    assert (change.place.path.name, change.place.line, change.certain) == ("caches.py", 23, True)
    assert [place.line for place in change.through] == [15]


def test_kinds_of_names(program: Path) -> None:
    known = explain(program, "model.py", "getter")
    assert kinds(mention(known, "cache")) == {"object"}
    assert mention(known, "cache").kinds[0].detail == "SlotCache"
    assert kinds(mention(known, "size", bound=True)) == {"array"}
    given_to_a_layer = explain(program, "model.py", "project")
    assert kinds(mention(given_to_a_layer, "x")) == {"array"}
    loop = explain(program, "model.py", "loop")
    assert kinds(mention(loop, "i", bound=True)) == {"int"}
    assert mention(loop, "part", bound=True).kinds[0].detail == "SlotCache"


def test_names_of_a_comprehension_are_seen(program: Path) -> None:
    inside = explain(program, "model.py", "comprehension")
    assert kinds(mention(inside, "p.offset")) == {"array"}


def test_the_parameters_of_a_head(program: Path) -> None:
    head = explain_line(program / "model.py", 12)
    assert [m.text for m in head.mentions] == ["self", "x", "cache"]
    assert all(m.parameter for m in head.mentions)


# --- calls


def test_what_calls_resolve_to(program: Path) -> None:
    update = call(explain(program, "model.py", "update"), "cache.update_and_fetch(q, q)")
    assert update.resolution == "protocol"
    assert [callee.name for callee in update.callees] == [
        "PlainCache.update_and_fetch",
        "SlotCache.update_and_fetch",
        "NewCache.update_and_fetch",
    ]
    assert [change.place.line for change in update.updates] == [23]
    read = call(explain(program, "model.py", "read"), "rotate(q, start)")
    assert (read.resolution, [c.name for c in read.callees]) == ("function", ["rotate"])
    layer = call(explain(program, "model.py", "project"), "self.proj(x)")
    assert (layer.resolution, layer.outside) == ("library", "mlx.nn.Linear")
    assert layer.effect == "gives a new array"


def test_a_call_that_did_not_resolve(program: Path) -> None:
    log = call(explain(program, "model.py", "outside"), "elsewhere.log(q)")
    assert (log.resolution, log.outside) == ("unresolved", "elsewhere.log")
    assert log.effect == "taken to read what it is given, and to update nothing"


def test_what_a_call_does_with_its_argument(program: Path) -> None:
    looked = call(explain(program, "model.py", "evaluate"), "mx.eval(q)")
    assert looked.effect == "looks at what it is given without using the value"
    given = call(explain(program, "model.py", "identity"), "identity(q)")
    assert given.effect == "may give back the very array or object of `q`, not a copy"


def test_an_attribute_that_runs_a_getter_is_a_call(program: Path) -> None:
    getter = call(explain(program, "model.py", "getter"), "cache.size")
    assert [callee.name for callee in getter.callees] == ["SlotCache.size"]


# --- what is looked at


def test_the_function_is_analysed_whatever_the_size_of_the_program(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for number in range(45):
        (package / f"m{number}.py").write_text(f"def f{number}(x):\n    return x\n")
    (package / "main.py").write_text("def quiet(x):\n    y = x\n    return y\n")
    explanation = explain_line(package / "main.py", 2)
    assert explanation.reached
    assert mention(explanation, "y", bound=True).same_as == ("x",)


@pytest.mark.parametrize("complete", [False, True])
def test_evidence_of_a_caller_in_another_file(program: Path, complete: bool) -> None:
    other = (
        "from model import scale\n\n\ndef use(x, y):\n    z = x\n    scale(x, 2)\n    return z\n"
    )
    (program / "other.py").write_text(other.replace("return z", "return z + y"))
    path = program / "model.py"
    line = MODEL.split("\n").index("    x *= n  # scaled") + 1
    explanation = explain_line(path, line, complete=complete)
    assert "AL202" in codes(explanation)


def test_the_findings_of_a_whole_check_reach_further_than_direct_callers(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    scale = (
        "import mlx.core as mx\n\n\ndef scale(x: mx.array, n):\n    x *= n\n    return x.sum()\n"
    )
    (package / "a.py").write_text(scale)
    (package / "b.py").write_text(
        "from .a import scale\n\n\ndef twice(x, n):\n    return scale(x, n) + 1\n"
    )
    (package / "c.py").write_text(
        "from .b import twice\n\n\ndef use(x):\n    y = twice(x, 2)\n    return x + y\n"
    )
    near = explain_line(package / "a.py", 5)
    assert near.reasons[0].startswith("the array of `x` belongs to the caller; none that was")
    whole = explain_line(package / "a.py", 5, complete=True)
    assert "AL202" in codes(whole)
    assert any(note.startswith("the findings of a check of") for note in whole.notes)
    assert explain_line(package / "a.py", 5).verdicts == whole.verdicts  # stored by now
