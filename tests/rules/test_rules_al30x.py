"""The rules about RoPE and declared dependencies: their fixtures, and what decides beside code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fixtures"))

from fixture_loader import Fixture, collect, expected_findings, expected_steps

from aliaslint import engine
from aliaslint.findings import Finding
from aliaslint.rules import Selection

RULES = ("AL301", "AL302", "AL303", "AL304")
FIXTURES = [f for f in collect("flag") + collect("clean") if f.rule in RULES]
KERNEL = "mx.fast.rope({}, 8, traditional=False, base=1e4, scale=1.0, offset={})"


def check(*paths: Path) -> list[Finding]:
    request = engine.Request(paths, selection=Selection(select=("ALL",)), cache=False)
    return engine.check(request).findings


@pytest.fixture(autouse=True)
def no_active_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda f: f.name)
def test_findings_are_exactly_those_expected(fixture: Fixture) -> None:
    found = check(fixture.root if fixture.path.is_dir() else fixture.path)
    places = [(f.code, f.path, f.span.line) for f in found]
    assert sorted(places) == sorted((e.code, e.path, e.line) for e in expected_findings(fixture))


@pytest.mark.parametrize(
    "fixture",
    [f for f in FIXTURES if any(e.column for e in expected_findings(f))],
    ids=lambda f: f.name,
)
def test_findings_start_at_the_columns_expected(fixture: Fixture) -> None:
    found = check(fixture.root if fixture.path.is_dir() else fixture.path)
    wanted = {(e.code, e.line, e.column) for e in expected_findings(fixture) if e.column}
    assert wanted <= {(f.code, f.span.line, f.span.column) for f in found}


@pytest.mark.parametrize(
    "fixture", [f for f in FIXTURES if expected_steps(f)], ids=lambda f: f.name
)
def test_traces_hold_the_steps_expected(fixture: Fixture) -> None:
    steps = {(s.role, s.span.line) for f in check(fixture.path) for s in f.trace}
    assert {(s.role, s.line) for s in expected_steps(fixture)} <= steps


def project(folder: Path, code: str, *requirements: str) -> Path:
    """Make a project with one module; without requirements it declares nothing."""
    listed = ", ".join(f'"{r}"' for r in requirements)
    (folder / ".git").mkdir()
    if requirements:
        text = f'[project]\nname = "p"\ndependencies = [{listed}]\n'
        (folder / "pyproject.toml").write_text(text)
    (folder / "model.py").write_text(f"import mlx.core as mx\nimport mlx.nn as nn\n\n\n{code}")
    return folder


def codes(folder: Path) -> list[str]:
    return sorted(f.code for f in check(folder) if f.code in RULES)


FOLDED = f"def rotate(q, o, B, H, L):\n    return {KERNEL.format('q.reshape(B * H, L, 8)', 'o')}\n"


@pytest.mark.parametrize(
    ("requirements", "found"),
    [
        (["mlx>=0.30"], ["AL301"]),
        (["mlx"], ["AL301"]),
        (["mlx<0.32"], ["AL301"]),
        (["mlx>=0.31.2; sys_platform == 'darwin'"], ["AL301"]),
        (["mlx-metal>=0.30"], ["AL301"]),
        (["mlx==0.27.0"], ["AL301"]),
        (["mlx~=0.29.5"], ["AL301"]),
        (["mlx==0.24.*"], ["AL301"]),
        (["mlx===0.30.2"], ["AL301"]),
        (["mlx-lm==0.20.0"], ["AL301"]),
        (["mlx>=0.32.0rc1"], []),
        (["mlx-lm==0.32.9"], []),
        (["mlx-lm>=0.31"], ["AL301"]),
        (["mlx-lm"], ["AL301"]),
        (["mlx>=0.32"], []),
        (["mlx>0.31.2"], []),
        (["mlx==0.32.*"], []),
        (["mlx-lm>=0.32"], []),
        (["mlx>=0.30", "mlx-lm>=0.32"], []),
        (["numpy"], []),
        ([], []),
    ],
)
def test_al301_rests_on_the_declared_floor(
    tmp_path: Path, requirements: list[str], found: list[str]
) -> None:
    assert codes(project(tmp_path, FOLDED, *requirements)) == found


def test_al301_rests_on_the_metadata_of_an_installed_package(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "server"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"import mlx.core as mx\n\n\n{FOLDED}")
    metadata = tmp_path / "site-packages" / "server-1.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Name: server\nVersion: 1.0\nRequires-Dist: mlx>=0.30\n\n")
    assert codes(package) == ["AL301"]


IMPORTS = "import math\nimport numpy as np\nfrom einops import rearrange\n\n\n"
FOLDS = [
    "q.reshape(-1, L, 8)",
    "q.reshape((B * H, L, 8))",
    "q.reshape([H * B, L, -1])",
    "mx.reshape(q, (-1, q.shape[-2], q.shape[-1]))",
    "mx.reshape(q, shape=(-1, L, 8))",
    "q.reshape(B * H, 1, L, 8)",
    "q.flatten(0, 1)",
    "q.flatten(start_axis=0, end_axis=1)",
    "q.flatten(0, -3)",
    "mx.flatten(q, 0, 1)",
    "q.flatten(end_axis=1)",
    "mx.squeeze(q[:1], 0)",
    "q[:1].squeeze(axis=0)",
    "q[0]",
    "mx.concatenate([q[:1], q[1:]])",
    "mx.concatenate(mx.split(q, H, axis=1), axis=0)",
    "q.flatten(0, 1).astype(mx.float32)",
    "q.flatten(0, 1) * 2.0",
    "mx.contiguous(q.flatten(0, 1))",
    "q.flatten(0, 1)[..., :4]",
    "(q.flatten(0, 1) if L else q)",
    "(lambda: q)() if B else q.flatten(0, 1)",
    "q.reshape(-1, *q.shape[2:])",
    "q.reshape((-1,) + q.shape[2:])",
    "q.reshape([B * H] + list(q.shape[2:]))",
    "q.reshape(q.shape[0] * q.shape[1], L, 8)",
    "q.reshape(math.prod(q.shape[:2]), L, 8)",
    "q.reshape(int(np.prod(q.shape[:-2])), L, 8)",
    "q.reshape((n := B * H), L, 8)",
    "q.reshape(-1, 1, L, 8)",
    "q.reshape(B, 1, H, L, 8).reshape(B * 1 * H, L, 8)",
    "mx.reshape(mx.abs(q), (B * H, L, 8))",
    "mx.take(q, 0, axis=0)",
    "q[:1].squeeze((0,))",
    "q[:1].squeeze(-4)",
    "q[0, ...]",
    "q[0, :, :, :]",
    "q.flatten(0, 1)[:, -1:]",
    "mx.expand_dims(q.flatten(0, 1), 1)",
    "q.flatten(0, 1).transpose(0, 2, 1).transpose(0, 2, 1)",
    "mx.softmax(q.flatten(0, 1), axis=-1)",
    "[x.flatten(0, 1) for x in (q, q)][0]",
    "{'x': q.flatten(0, 1)}['x']",
    "rearrange(q, 'b h l d -> (b h) l d')",
    "list(map(lambda x: x.flatten(0, 1), (q, q)))[0]",
    "q.flatten(-4, -3)",
    "mx.flatten(q, start_axis=-4, end_axis=-3)",
    "q.view(mx.uint16).flatten(-4, 1)",
    "mx.squeeze(q, [0])",
    "mx.as_strided(q, (B * H, L, D))",
    "mx.as_strided(q, shape=(B * H, L, D))",
    "mx.repeat(q.flatten(0, 1), 2, axis=0)",
    "mx.concatenate(list(q), axis=0)",
    "mx.concatenate([q[i] for i in range(B)])",
    "list(map(lambda row: mx.abs(row), q))[0]",
    "mx.unflatten(q.flatten(0, 1), 1, (1, L))",
    "mx.moveaxis(q, 1, 2).reshape(-1, L, D)",
    "mx.swapaxes(q, 1, 2).reshape(B * H, L, D)",
]
# Of an array of which nothing tells the rank.
FOLDS_OF_UNKNOWN = [
    "q.flatten(-4, -3)",
    "q.flatten(-4, 1)",
    "mx.flatten(q, -4, -3)",
    "q[0, ...]",
    "q[0, :, :, :]",
    "q[i, ...]",
    "mx.squeeze(q, [0])",
    "q.squeeze(-4)",
    "q.reshape(-1, *q.shape[2:])",
    "q.reshape((-1, *q.shape[2:]))",
    "q.reshape((-1,) + q.shape[2:])",
    "mx.reshape(q, shape=[-1, *q.shape[2:]])",
    "q.reshape(-1, 1, *q.shape[2:])",
    "q.reshape(q.shape[0] * q.shape[1], *q.shape[2:])",
    "q.reshape(math.prod(q.shape[:2]), *q.shape[2:])",
    "q.reshape(*q.shape[1:])",
    "q.reshape(-1, *rest)",
]


@pytest.mark.parametrize("array", FOLDS)
def test_fold_is_recognised(tmp_path: Path, array: str) -> None:
    code = (
        f"{IMPORTS}def f(q, o):\n    B, H, L, D = q.shape\n    return {KERNEL.format(array, 'o')}\n"
    )
    assert codes(project(tmp_path, code, "mlx>=0.30")) == ["AL301"]


@pytest.mark.parametrize("array", FOLDS_OF_UNKNOWN)
def test_fold_of_an_array_of_unknown_rank_is_recognised(tmp_path: Path, array: str) -> None:
    body = f"b, h, *rest = q.shape\n    return {KERNEL.format(array, 'o')}"
    code = f"{IMPORTS}def f(q, o, i: int):\n    {body}\n"
    assert codes(project(tmp_path, code, "mlx>=0.30")) == ["AL301"]


HEALTHY_OF_UNKNOWN = [
    "q.flatten(-2, -1)",
    "q.flatten(-3, -2)",
    "q[0]",
    "q[:1, ...]",
    "q[:, 0, ...]",
    "q[0, ...][None]",
    "mx.squeeze(q, [0])[None]",
    "mx.squeeze(q, [1])",
    "q.reshape(-1, *q.shape[1:])",
    "q.reshape(-1, q.shape[1], *q.shape[2:])",
    "q.reshape(-1, h, *rest)",
    "q.reshape((b, -1) + q.shape[2:])",
    "q.flatten(-4, -3).reshape(q.shape)",
    "mx.unflatten(q.flatten(-4, -3), 0, (b, h))",
    "mx.stack([q[0, ...], q[1, ...]])",
]


@pytest.mark.parametrize("array", HEALTHY_OF_UNKNOWN)
def test_other_arrays_of_unknown_rank_are_silent(tmp_path: Path, array: str) -> None:
    body = f"b, h, *rest = q.shape\n    return {KERNEL.format(array, 'o')}"
    code = f"{IMPORTS}def f(q, o):\n    {body}\n"
    assert codes(project(tmp_path, code, "mlx>=0.30")) == []


FOLD = KERNEL.format("q.flatten(0, 1)", "o")
PLACES = {
    "lambda of a module": f"rotate = lambda q, o: {FOLD}",
    "lambda in a table": f"TABLE = {{'rotate': lambda q, o: {FOLD}}}",
    "lambda as a default": f"def f(q, rotate=lambda q, o: {FOLD}):\n    return rotate(q, 3)",
    "lambda of a class": f"class K:\n    rotate = lambda self, q, o: {FOLD}",
    "lambda of an object": (
        f"class K:\n    def __init__(self):\n        self.f = lambda q, o: {FOLD}"
    ),
    "lambda handed over": f"def f(q, o):\n    return apply(lambda q: {FOLD}, q)",
    "lambda given back": f"def f(o):\n    return lambda q: {FOLD}",
    "compiled lambda": f"rotate = mx.compile(lambda q, o: {FOLD})",
    "inner function": f"def f(o):\n    def g(q):\n        return {FOLD}\n    return g",
    "inner class": (f"def f(o):\n    class K:\n        def g(self, q):\n            return {FOLD}"),
    "class in a class": (
        f"class J:\n    class K:\n        def g(self, q, o):\n            return {FOLD}"
    ),
}


@pytest.mark.parametrize("code", PLACES.values(), ids=PLACES)
def test_fold_is_found_wherever_it_stands(tmp_path: Path, code: str) -> None:
    assert codes(project(tmp_path, f"{code}\n", "mlx>=0.30")) == ["AL301"]


@pytest.mark.parametrize("code", PLACES.values(), ids=PLACES)
def test_rope_at_native_rank_is_right_wherever_it_stands(tmp_path: Path, code: str) -> None:
    native = code.replace("q.flatten(0, 1)", "q")
    assert codes(project(tmp_path, f"{native}\n", "mlx>=0.30")) == []


def test_inner_class_does_not_displace_one_of_the_module(tmp_path: Path) -> None:
    fold = "class K:\n    def fold(self, x):\n        return x.flatten(0, 1)\n\n\n"
    turn = f"def f(q, o):\n    return {KERNEL.format('K().fold(q)', 'o')}\n\n\n"
    inner = "def g():\n    class K:\n        def fold(self, x):\n            return x\n"
    assert codes(project(tmp_path, fold + turn + inner, "mlx>=0.30")) == ["AL301"]


HEALTHY = [
    "q",
    "q.reshape(B, H, L, 8)",
    "q.reshape(B, -1, L, 8)",
    "q.reshape(B, L, H * 8)",
    "q.transpose(0, 2, 1, 3)",
    "q.flatten(2, 3)",
    "q.flatten(-2)",
    "q.squeeze(1)",
    "q[:, 0]",
    "q[..., :4]",
    "q[None]",
    "q.flatten(0, 1).reshape(B, H, L, 8)",
    "q.reshape(B * H, 2, 8)",
    "mx.concatenate([q, q], axis=-1)",
    "mx.concatenate([q, q], axis=1)",
    "mx.zeros((B, H, L, 8))",
    "q.reshape(-1, H, L, 8)",
    "q.flatten(0, 1)[None]",
    "q.reshape(B * H, L, D)[None, :, :, :]",
    "mx.expand_dims(q.flatten(0, 1), 0)",
    "mx.unflatten(q.flatten(0, 1), 0, (B, H))",
    "q[mx.arange(B)]",
    "mx.take(q, mx.arange(B), axis=0)",
    "q[:, :1].squeeze(1)",
    "mx.repeat(q[:, :1], H, axis=1)",
    "q.reshape(B * H, 2 * L, 4)",
    "mx.concatenate([q, q], axis=2).reshape(B * H, 2 * L, D)",
    "q.reshape(B * H, max(L, 2), D)",
    "rearrange(q, 'b h l d -> b l (h d)')",
    "rearrange(q.flatten(0, 1), '(b h) l d -> b h l d', b=B)",
]


@pytest.mark.parametrize("array", HEALTHY)
def test_other_shapes_are_silent(tmp_path: Path, array: str) -> None:
    code = (
        f"{IMPORTS}def f(q, o):\n    B, H, L, D = q.shape\n    return {KERNEL.format(array, 'o')}\n"
    )
    assert codes(project(tmp_path, code, "mlx>=0.30")) == []


GUARDS = [
    ("if L > 1:", True),
    ("if L >= 2:", True),
    ("if L != 1:", True),
    ("if not L == 1:", True),
    ("if L > 1 and B:", True),
    ("if L == 4:", True),
    ("if 1 < L:", True),
    ("if 2 <= L:", True),
    ("if 1 < L <= 8:", True),
    ("if q.shape[2] > 1:", True),
    ("if q.shape[-2] != 1:", True),
    ("if not (L == 1 or B):", True),
    ("while L > 1:", True),
    ("if (many := L > 1):", False),
    ("if 0 < L:", False),
    ("if L < 2:", False),
    ("if 1 <= L <= 8:", False),
    ("if L > 0:", False),
    ("if L == 1:", False),
    ("if L > 1 or B:", False),
    ("if B > 1:", False),
]


@pytest.mark.parametrize(("guard", "silent"), GUARDS)
def test_guards_on_the_length_are_understood(tmp_path: Path, guard: str, silent: bool) -> None:
    call = KERNEL.format("q.flatten(0, 1)", "o")
    code = f"def f(q, o):\n    B, H, L, D = q.shape\n    {guard}\n        return {call}\n"
    assert (codes(project(tmp_path, code, "mlx>=0.30")) == []) is silent


GUARDED = {
    "assert": ("assert L > 1\n    return {}", True),
    "early return": ("if L == 1:\n        return q\n    return {}", True),
    "either": ("return {} if L > 1 else q", True),
    "and": ("return L > 1 and {}", True),
    "or": ("return L == 1 or {}", True),
    "filter": ("return [{} for _ in o if L > 1]", True),
    "name": ("many = L > 1\n    if many:\n        return {}", True),
    "other name": ("n = q.shape[2]\n    if n > 1:\n        return {}", True),
    "match": ("match L:\n        case 1:\n            return q\n    return {}", True),
    "left": ("if L > 1:\n        o = 3\n    return {}", False),
    "rebound": ("if L > 1:\n        L = 1\n        q = q[:, :, :1]\n        return {}", False),
    "other case": ("match L:\n        case 2:\n            return q\n    return {}", False),
}


@pytest.mark.parametrize(("body", "silent"), GUARDED.values(), ids=GUARDED)
def test_guards_hold_where_they_stand(tmp_path: Path, body: str, silent: bool) -> None:
    call = KERNEL.format("q.flatten(0, 1)", "o")
    code = f"def f(q, o):\n    B, H, L, D = q.shape\n    {body.format(call)}\n"
    assert (codes(project(tmp_path, code, "mlx>=0.30")) == []) is silent


@pytest.mark.parametrize(
    ("offset", "found"),
    [
        ("3", ["AL301"]),
        ("cache.offset", ["AL301"]),
        ("mx.array(cache.offset)", ["AL301"]),
        ("mx.array([3])", ["AL301", "AL304"]),
        ("0", []),
        ("mx.array([1, 2])", []),
        ("mx.array([c.offset for c in cache])", []),
        ("mx.arange(4)", []),
        ("mx.broadcast_to(o, (B,))", []),
        ("mx.array([1, 2]) + 1", []),
    ],
)
def test_only_scalar_offsets_count(tmp_path: Path, offset: str, found: list[str]) -> None:
    call = KERNEL.format("q.flatten(0, 1)", offset)
    code = f"def f(q, o, cache, B):\n    return {call}\n"
    assert codes(project(tmp_path, code, "mlx>=0.30")) == found


def test_call_of_a_module_without_an_offset_is_silent(tmp_path: Path) -> None:
    code = "def f(q):\n    rope = nn.RoPE(8)\n    return rope(q.flatten(0, 1))\n"
    assert codes(project(tmp_path, code, "mlx>=0.30")) == []


def test_helper_in_another_module_is_followed(tmp_path: Path) -> None:
    folder = project(tmp_path, "", "mlx>=0.30")
    (folder / "shapes.py").write_text("def fold(x):\n    return x.reshape(-1, *x.shape[-2:])\n")
    (folder / "shapes.py").write_text(
        "def fold(x):\n    B, H, L, D = x.shape\n    return x.reshape(B * H, L, D)\n"
    )
    (folder / "model.py").write_text(
        "import mlx.core as mx\nfrom shapes import fold\n\n\n"
        f"def f(q, o):\n    return {KERNEL.format('fold(q)', 'o')}\n"
    )
    assert codes(folder) == ["AL301"]


def test_recursion_is_followed_once(tmp_path: Path) -> None:
    call = KERNEL.format("q", "o")
    code = (
        f"def f(q, o, n):\n    if n:\n        return f(q.flatten(0, 1), o, 0)\n    return {call}\n"
    )
    assert codes(project(tmp_path, code, "mlx>=0.30")) == ["AL301"]


PAIR = [
    "q = q.reshape(B * H, L, D)",
    f"q = {KERNEL.format('q', 'o')}",
    "return q.reshape(B, H, L, D)",
]


@pytest.mark.parametrize("at", [None, 0, 2])
def test_fix_is_promised_only_where_no_comment_stands_in_its_way(
    tmp_path: Path, at: int | None
) -> None:
    lines = [f"{line}  # why" if n == at else line for n, line in enumerate(PAIR)]
    body = "\n    ".join(["B, H, L, D = q.shape", *lines])
    folder = project(tmp_path, f"def f(q, o):\n    {body}\n", "mlx")
    (finding,) = [f for f in check(folder) if f.code == "AL301"]
    assert finding.fixable == ("unsafe" if at is None else None)


def test_finding_without_an_inverse_pair_has_no_fix(tmp_path: Path) -> None:
    (finding,) = [f for f in check(project(tmp_path, FOLDED, "mlx")) if f.code == "AL301"]
    assert finding.fixable is None


BATCHES = f"def decode_batch(q, o):\n    return {KERNEL.format('q', 'o')}\n"


@pytest.mark.parametrize(
    ("requirements", "found"),
    [
        (["mlx>=0.30"], ["AL302"]),
        (["mlx>=0.30,<0.33", "mlx-lm>=0.31"], ["AL302", "AL303"]),
        (["mlx>=0.32"], []),
        ([], []),
    ],
)
def test_al302_rests_on_the_declared_floor(
    tmp_path: Path, requirements: list[str], found: list[str]
) -> None:
    wanted = [code for code in found if code == "AL302"]
    assert [c for c in codes(project(tmp_path, BATCHES, *requirements)) if c == "AL302"] == wanted


def test_al302_names_requirement_file_and_line(tmp_path: Path) -> None:
    (finding,) = [f for f in check(project(tmp_path, BATCHES, "mlx>=0.30")) if f.code == "AL302"]
    assert (finding.path.name, finding.span.line, finding.span.column) == ("pyproject.toml", 3, 18)
    assert "`mlx>=0.30`" in finding.message


def test_al302_is_a_warning(tmp_path: Path) -> None:
    folder = project(tmp_path, BATCHES, "mlx>=0.30")
    assert {f.severity for f in check(folder) if f.code == "AL302"} == {"warning"}


def test_al302_sees_a_lock_file_beside_a_good_floor(tmp_path: Path) -> None:
    folder = project(tmp_path, BATCHES, "mlx>=0.32")
    (folder / "uv.lock").write_text('[[package]]\nname = "mlx"\nversion = "0.31.2"\n')
    found = [(f.path.name, f.span.line) for f in check(folder) if f.code == "AL302"]
    assert found == [("uv.lock", 2)]


DYNAMIC = '[tool.setuptools.dynamic]\ndependencies = {file = ["needs.txt"]}\n'
ELSEWHERE: list[tuple[dict[str, str], list[tuple[str, int, str]]]] = [
    (
        {"pyproject.toml": DYNAMIC, "needs.txt": "numpy\nPACKAGE>=0.30\n"},
        [("needs.txt", 2, "PACKAGE>=0.30")],
    ),
    ({"pyproject.toml": DYNAMIC, "needs.txt": "PACKAGE>=0.32\n"}, []),
    (
        {"setup.cfg": "[options]\ninstall_requires = file: needs.txt\n", "needs.txt": "PACKAGE\n"},
        [("needs.txt", 1, "PACKAGE")],
    ),
    ({"requirements.txt": "PACKAGE\n-c limits.txt\n", "limits.txt": "PACKAGE>=0.32\n"}, []),
    (
        {"requirements.txt": "PACKAGE\n-c limits.txt\n", "limits.txt": "\nPACKAGE<0.32\n"},
        [("limits.txt", 2, "PACKAGE<0.32")],
    ),
    (
        {"requirements.txt": "PACKAGE>=0.31\n-c limits.txt\n", "limits.txt": "PACKAGE<1\n"},
        [("requirements.txt", 1, "PACKAGE>=0.31")],
    ),
    # Another package may bring it along.
    (
        {"requirements.txt": "server\n-c limits.txt\n", "limits.txt": "PACKAGE<0.32\n"},
        [("limits.txt", 1, "PACKAGE<0.32")],
    ),
    (
        {"pyproject.toml": '[tool.poetry.dependencies]\nPACKAGE = "^0.31 || ^0.32"\n'},
        [("pyproject.toml", 2, 'PACKAGE = "^0.31 || ^0.32"')],
    ),
    ({"pyproject.toml": '[tool.poetry.dependencies]\nPACKAGE = "~0.32.0 || ^0.33"\n'}, []),
]


def places(folder: Path, code: str, package: str, files: dict[str, str], rule: str) -> list[object]:
    """Write a project, and return where the rule finds which declaration."""
    (folder / "m.py").write_text(code)
    for name, text in files.items():
        (folder / name).write_text(text.replace("PACKAGE", package))
    found = [f for f in check(folder) if f.code == rule]
    return [(f.path.name, f.span.line, f.message.split("`")[1]) for f in found]


@pytest.mark.parametrize(("files", "wanted"), ELSEWHERE)
def test_al302_stands_where_versions_are_decided(
    tmp_path: Path, files: dict[str, str], wanted: list[tuple[str, int, str]]
) -> None:
    code = f"import mlx.core as mx\n\n\n{BATCHES}"
    named = [(name, line, text.replace("PACKAGE", "mlx")) for name, line, text in wanted]
    assert places(tmp_path, code, "mlx", files, "AL302") == named


@pytest.mark.parametrize(("files", "wanted"), ELSEWHERE)
@pytest.mark.usefixtures("table")
def test_al303_stands_where_versions_are_decided(
    tmp_path: Path, files: dict[str, str], wanted: list[tuple[str, int, str]]
) -> None:
    named = [(name, line, text.replace("PACKAGE", "mlx-lm")) for name, line, text in wanted]
    assert places(tmp_path, SERVES, "mlx-lm", files, "AL303") == named


@pytest.mark.parametrize(("files", "wanted"), ELSEWHERE)
def test_al301_rests_on_what_files_elsewhere_admit(
    tmp_path: Path, files: dict[str, str], wanted: list[tuple[str, int, str]]
) -> None:
    code = f"import mlx.core as mx\n\n\n{FOLDED}"
    assert len(places(tmp_path, code, "mlx", files, "AL301")) == len(wanted)


@pytest.mark.parametrize(
    ("limit", "wanted"),
    [
        ("mlx>=0.32", []),
        ("mlx<0.32", [("limits.txt", 1, "mlx<0.32")]),
        ("click", [("requirements.txt", 1, "mlx-lm>=0.30")]),
    ],
)
def test_constraint_on_mlx_decides_what_mlx_lm_brings(
    tmp_path: Path, limit: str, wanted: list[tuple[str, int, str]]
) -> None:
    files = {"requirements.txt": "mlx-lm>=0.30\n-c limits.txt\n", "limits.txt": limit}
    code = f"import mlx.core as mx\n\n\n{BATCHES}"
    assert places(tmp_path, code, "mlx", files, "AL302") == wanted


def test_al302_is_silent_without_batches(tmp_path: Path) -> None:
    code = BATCHES.replace("decode_batch", "decode")
    assert codes(project(tmp_path, code, "mlx>=0.30")) == []


SERVES = (
    "from mlx_lm.generate import BatchGenerator\n\n\ndef serve(m):\n    return BatchGenerator(m)\n"
)
TABLE = {
    "releases": {
        "0.30.7": {"digest": "", "captures": []},
        "0.31.0": {"digest": "", "captures": [{"path": "models/a.py", "line": 3}]},
        "0.31.3": {
            "digest": "",
            "captures": [{"path": f"models/{n}.py", "line": 7} for n in "bcdef"],
        },
        "0.32.0": {"digest": "", "captures": []},
    }
}


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    from aliaslint.program import stale_captures

    monkeypatch.setattr(stale_captures, "packages", lambda: ("mlx_lm",))
    monkeypatch.setattr(stale_captures, "table", lambda name: TABLE)


def al303(folder: Path) -> list[str]:
    return [f.message for f in check(folder) if f.code == "AL303"]


@pytest.mark.parametrize(
    ("requirement", "said"),
    [
        ("mlx-lm", "mlx-lm 0.31.0 to 0.31.3"),
        ("mlx-lm>=0.31.1", "mlx-lm 0.31.3,"),
        ("mlx-lm<0.31.1", "mlx-lm 0.31.0,"),
        ("mlx-lm==0.31.3", "models/b.py:7, models/c.py:7, models/d.py:7 and 2 more"),
        ("mlx-lm==0.31.0", "models/a.py:3"),
        ("mlx-lm==0.30.7", None),
        ("mlx-lm>=0.32", None),
        ("mlx-lm==0.31.9", None),
    ],
)
@pytest.mark.usefixtures("table")
def test_al303_names_releases_and_captures(
    tmp_path: Path, requirement: str, said: str | None
) -> None:
    messages = al303(project(tmp_path, SERVES, requirement, "mlx>=0.32"))
    assert [said in message for message in messages if said] == [True] * (said is not None)


@pytest.mark.parametrize(
    "code",
    [
        "import mlx_lm\n",
        "from mlx_lm import generate\n",
        "class BatchGenerator:\n    pass\n",
        "# from mlx_lm.generate import BatchGenerator\n",
    ],
)
@pytest.mark.usefixtures("table")
def test_al303_is_silent_without_batches_through_the_package(tmp_path: Path, code: str) -> None:
    assert al303(project(tmp_path, code, "mlx-lm==0.31.3")) == []


@pytest.mark.parametrize(
    "code",
    [
        "from mlx_lm.server import main\n",
        "import mlx_lm.server\n",
        "from mlx_lm.models.cache import BatchKVCache as B\n",
        "import mlx_lm\n\nmlx_lm.generate.batch_generate(1)\n",
    ],
)
@pytest.mark.usefixtures("table")
def test_al303_sees_batches_through_the_package(tmp_path: Path, code: str) -> None:
    assert len(al303(project(tmp_path, code, "mlx-lm==0.31.3"))) == 1


@pytest.mark.usefixtures("table")
def test_al303_is_silent_in_the_package_itself(tmp_path: Path) -> None:
    folder = project(tmp_path, SERVES, "mlx-lm==0.31.3")
    (folder / "mlx_lm" / "models").mkdir(parents=True)
    (folder / "mlx_lm" / "__init__.py").write_text("")
    (folder / "mlx_lm" / "models" / "cache.py").write_text("")
    assert al303(folder) == []


def install(folder: Path, version: str, model: str) -> None:
    """Install mlx-lm with in-place caches and one model into `.venv`."""
    site = folder / ".venv" / "lib" / "python3.12" / "site-packages"
    (site / "mlx_lm" / "models").mkdir(parents=True)
    (folder / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (site / "mlx_lm" / "__init__.py").write_text("")
    (site / "mlx_lm" / "models" / "cache.py").write_text(
        "import mlx.core as mx\n\n\nclass BatchKVCache:\n    def __init__(self, padding):\n"
        "        self.offset = mx.array(padding)\n\n"
        "    def update_and_fetch(self, keys, values):\n        self.offset += 1\n"
        "        return keys, values\n"
    )
    (site / "mlx_lm" / "models" / "model.py").write_text(model)
    information = site / f"mlx_lm-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Name: mlx-lm\nVersion: {version}\n\n")


STALE = (
    "def f(cache, x):\n    offset = cache.offset\n    cache.update_and_fetch(x, x)\n"
    "    return offset + 0\n"
)


@pytest.mark.parametrize(
    ("model", "captures"),
    [(STALE, "models/model.py:2"), (STALE.replace("= cache.offset", "= cache.offset + 0"), None)],
)
@pytest.mark.usefixtures("table")
def test_al303_analyses_a_locked_release_that_was_changed_where_it_is_installed(
    tmp_path: Path, model: str, captures: str | None
) -> None:
    folder = project(tmp_path, SERVES)
    (folder / "requirements.txt").write_text("mlx-lm==0.31.3\n")
    install(folder, "0.31.3", model)
    assert [captures in m for m in al303(folder) if captures] == [True] * (captures is not None)
    assert len(al303(folder)) == (captures is not None)


@pytest.mark.usefixtures("table")
def test_al303_of_another_release_than_the_installed_one_is_by_the_table(tmp_path: Path) -> None:
    folder = project(tmp_path, SERVES)
    (folder / "requirements.txt").write_text("mlx-lm==0.31.0\n")
    install(folder, "0.32.0", "")
    assert "models/a.py:3" in al303(folder)[0]


CALL = KERNEL.format("x", "o")
FORMS = {
    "loop": f"for _ in range(2):\n        y = {CALL}\n        x = q.flatten(0, 1)\n    return y",
    "while": f"while o:\n        y = {CALL}\n        x = q.flatten(0, 1)\n    return y",
    "try": f"try:\n        x = q.flatten(0, 1)\n    except E:\n        pass\n    return {CALL}",
    "except": f"try:\n        g()\n    except E:\n        x = q.flatten(0, 1)\n    return {CALL}",
    "finally": f"try:\n        g()\n    finally:\n        x = q.flatten(0, 1)\n    return {CALL}",
    "with": f"with g():\n        x = q.flatten(0, 1)\n    return {CALL}",
    "match": f"match o:\n        case 1:\n            x = q.flatten(0, 1)\n    return {CALL}",
    "walrus": f"g(x := q.flatten(0, 1))\n    return {CALL}",
    "tuple": f"x, y = q.flatten(0, 1), q\n    return {CALL}",
    "list": f"y = [q.flatten(0, 1)]\n    x = y[0]\n    return {CALL}",
    "augmented": f"x = q.flatten(0, 1)\n    x *= 2\n    return {CALL}",
    "annotated": f"x: mx.array = q.flatten(0, 1)\n    return {CALL}",
    "nested function": f"def g(x):\n        return {CALL}\n    return g(q.flatten(0, 1))",
    "closure": f"x = q.flatten(0, 1)\n    def g():\n        return {CALL}\n    return g()",
    "comprehension": f"return [{CALL} for x in [q.flatten(0, 1)]]",
    "or": f"x = o or q.flatten(0, 1)\n    return {CALL}",
    "lambda": f"g = lambda x: {CALL}\n    return g(q.flatten(0, 1))",
    "starred call": f"def g(x, o):\n        return {CALL}\n    return g(*(q.flatten(0, 1), o))",
    "attribute": f"g.x = q.flatten(0, 1)\n    return {KERNEL.format('g.x', 'o')}",
    "generator": f"def g():\n        yield q.flatten(0, 1)\n    (x,) = g()\n    return {CALL}",
    "row of a loop": f"for x in q:\n        y = {CALL}\n    return y",
    "numbered row": f"for i, x in enumerate(q):\n        y = {CALL}\n    return y",
    "index of a row": f"for i in range(B):\n        x = q[i]\n        y = {CALL}\n    return y",
    "other branch": f"if o:\n        g\n    else:\n        x = q.flatten(0, 1)\n    return {CALL}",
}


@pytest.mark.parametrize("body", FORMS.values(), ids=FORMS)
def test_fold_flows_through_statements(tmp_path: Path, body: str) -> None:
    code = f"def f(q, o, g):\n    B, H, L, D = q.shape\n    x = q\n    {body}\n"
    assert codes(project(tmp_path, code, "mlx>=0.30")) == ["AL301"]


UNDONE = {
    "rebound": f"x = q.flatten(0, 1)\n    x = q\n    return {CALL}",
    "returned before": f"if o:\n        x = q.flatten(0, 1)\n        return x\n    return {CALL}",
    "raised before": f"if o:\n        x = q.flatten(0, 1)\n        raise E\n    return {CALL}",
    "another name": f"y = q.flatten(0, 1)\n    return {CALL}, y",
    "in a function that is not called": f"def g():\n        x = q.flatten(0, 1)\n    return {CALL}",
}


@pytest.mark.parametrize("body", UNDONE.values(), ids=UNDONE)
def test_fold_that_does_not_reach_rope_is_silent(tmp_path: Path, body: str) -> None:
    code = f"def f(q, o):\n    B, H, L, D = q.shape\n    x = q\n    {body}\n"
    assert codes(project(tmp_path, code, "mlx>=0.30")) == []


MODULES = {
    "an attribute": "self.rope = nn.RoPE(8)",
    "one of two": "self.rope, self.other = nn.RoPE(8), 3",
    "a factory": "self.rope = make_rope(8)",
    "a conditional": "self.rope = nn.RoPE(8) if dims else nn.RoPE(4)",
    "a helper": "self.rope = initialize_rope(8)",
    "not known": "pass",
}


@pytest.mark.parametrize("made", MODULES.values(), ids=MODULES)
def test_modules_like_rope_are_known(tmp_path: Path, made: str) -> None:
    code = (
        "def make_rope(dims):\n    return nn.RoPE(dims)\n\n\n"
        f"class A(nn.Module):\n    def __init__(self, dims):\n        {made}\n\n"
        "    def __call__(self, q, cache):\n"
        "        return self.rope(q.flatten(0, 1), offset=cache.offset)\n"
    )
    assert codes(project(tmp_path, code, "mlx>=0.30")) == ["AL301"]


NAMED = {
    "an annotated parameter": (
        "def f(self, q, turn: nn.RoPE, o):\n        return turn({}, offset=o)"
    ),
    "one that may be none": (
        "def f(self, q, turn: nn.RoPE | None, o):\n        return turn({}, offset=o)"
    ),
    "an annotated field": (
        "turn: nn.RoPE\n\n    def f(self, q, o):\n        return self.turn({}, offset=o)"
    ),
    "an attribute of the class": (
        "turn = nn.RoPE(8)\n\n    def f(self, q, o):\n        return self.turn({}, offset=o)"
    ),
    "an annotated argument of the constructor": (
        "def __init__(self, turn: nn.RoPE):\n        self.turn = turn\n\n"
        "    def f(self, q, o):\n        return self.turn({}, offset=o)"
    ),
    "a global": "def f(self, q, o):\n        return TURN({}, offset=o)",
}


@pytest.mark.parametrize("body", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize(("array", "found"), [("q.flatten(0, 1)", ["AL301"]), ("q", [])])
def test_modules_are_known_by_more_than_their_name(
    tmp_path: Path, body: str, array: str, found: list[str]
) -> None:
    code = f"TURN: nn.RoPE = nn.RoPE(8)\n\n\nclass A:\n    {body.format(array)}\n"
    assert codes(project(tmp_path, code, "mlx>=0.30")) == found


def test_method_and_inherited_wrapper_are_followed(tmp_path: Path) -> None:
    code = (
        f"class Base:\n    def turn(self, x, o):\n        return {CALL}\n\n\n"
        "class A(Base):\n    def __call__(self, q, o):\n"
        "        return self.turn(q.flatten(0, 1), o)\n"
    )
    assert codes(project(tmp_path, code, "mlx>=0.30")) == ["AL301"]


def test_call_of_something_that_only_sounds_like_rope_is_silent(tmp_path: Path) -> None:
    code = "def f(q, emb):\n    cos, sin = emb.rotary_emb(q.flatten(0, 1), 3)\n    return cos\n"
    assert codes(project(tmp_path, code, "mlx>=0.30")) == []


def test_code_of_the_module_itself_is_looked_at(tmp_path: Path) -> None:
    code = f"q = mx.zeros((1, 2, 1, 8))\nprint({KERNEL.format('q.flatten(0, 1)', '3')})\n"
    assert codes(project(tmp_path, code, "mlx>=0.30")) == ["AL301"]


def test_wrapper_in_another_module_is_followed(tmp_path: Path) -> None:
    folder = project(tmp_path, "", "mlx>=0.30")
    (folder / "kernels.py").write_text(
        "import mlx.core as mx\n\n\nclass Turn:\n    def __call__(self, x, o):\n"
        f"        return {CALL}\n"
    )
    (folder / "model.py").write_text(
        "from kernels import Turn\n\n\nclass A:\n    def __init__(self):\n"
        "        self.turn = Turn()\n\n    def __call__(self, q, o):\n"
        "        return self.turn(q.flatten(0, 1), o)\n"
    )
    (finding,) = [f for f in check(folder) if f.code == "AL301"]
    assert (finding.path.name, finding.span.line) == ("model.py", 9)


ONE = [
    "mx.array([o])",
    "mx.array((o,))",
    "mx.array(o)[None]",
    "mx.array(o)[mx.newaxis]",
    "mx.expand_dims(o, 0)",
    "mx.reshape(o, (1,))",
    "mx.array(3).reshape(-1)",
    "mx.full([1], o)",
    "mx.zeros((1,)) + o",
    "mx.stack([o])",
    "mx.concatenate([mx.array([o])])",
    "mx.array([o, o])[:1]",
    "mx.array([o, o])[-1:]",
    "mx.maximum(mx.array([o]), 0)",
    "mx.arange(o, o + 1)",
    "mx.arange(o, 1 + o)",
    "mx.arange(start=o, stop=o + 1, dtype=mx.int32)",
    "mx.arange(5, 6)",
    "mx.arange(1)",
    "mx.full(shape=(1,), vals=o)",
    "mx.zeros(shape=1) + o",
    "mx.ones(1) * o",
    "mx.expand_dims(o, [0])",
    "mx.array(3).flatten()",
    "mx.array([[o]])[0]",
    "mx.array([[o]]).squeeze(0)",
    "mx.array([[o]]).reshape(-1)",
    "mx.repeat(mx.array(3), 1)",
    "mx.tile(mx.array([o]), (1,))",
    "mx.linspace(o, o, 1)",
    "mx.take(o, mx.array([0]))",
    "o[mx.array([0])]",
    "o[2:3]",
    "mx.zeros_like(mx.array([o])) + o",
]


@pytest.mark.parametrize("offset", ONE)
def test_offset_of_one_element_is_recognised(tmp_path: Path, offset: str) -> None:
    code = f"def f(q, o):\n    return {KERNEL.format('q', offset)}\n"
    assert codes(project(tmp_path, code)) == ["AL304"]


NOT_ONE = [
    "mx.array([o]).item()",
    "mx.array([o])[0]",
    "mx.array([o]).squeeze()",
    "mx.max(mx.array([o]))",
    "mx.repeat(mx.array([o]), B)",
    "mx.broadcast_to(mx.array([o]), (B,))",
    "mx.array([o]) + mx.zeros((B,))",
    "mx.concatenate([mx.array([o]), mx.array([o])])",
    "mx.stack([mx.array(o) for _ in range(B)])",
    "mx.array([o, o, o])[:3]",
    "mx.arange(o, o + 2)",
    "mx.arange(o, o + B)",
    "mx.arange(o)",
    "mx.arange(o, o + 1).item()",
    "mx.arange(o, o + 1)[0]",
    "mx.full(shape=(B,), vals=o)",
    "mx.tile(mx.array([o]), (B,))",
    "mx.repeat(mx.array(3), B)",
    "mx.linspace(o, o, B)",
    "mx.take(o, mx.arange(B))",
    "mx.take(o, 0)",
    "o[mx.arange(B)]",
    "o[-1:0]",
    "mx.zeros_like(o)",
    "mx.array([[o]]).item()",
]


@pytest.mark.parametrize("offset", NOT_ONE)
def test_other_offsets_are_no_offset_of_one_element(tmp_path: Path, offset: str) -> None:
    code = f"def f(q, o, B):\n    return {KERNEL.format('q', offset)}\n"
    assert codes(project(tmp_path, code)) == []


SINGLE = {
    "slice": "return [{} for x in [q[i : i + 1] for i in o]]",
    "first": "x = q[:1]\n    return {}",
    "split": "return [{} for x in mx.split(q, q.shape[0])]",
    "index": "return [{} for x in [q[mx.array([0])]]]",
    "axis": "return [{} for x in [mx.expand_dims(row, 0) for row in q]]",
    "guard": "x = q\n    if q.shape[0] == 1:\n        return {}",
    "guard by name": "x = q\n    B, L, D = x.shape\n    if B > 1:\n        return q\n    return {}",
}


@pytest.mark.parametrize("body", SINGLE.values(), ids=SINGLE)
def test_offset_of_one_element_for_one_sequence_is_right(tmp_path: Path, body: str) -> None:
    call = KERNEL.format("x", "mx.array([o])")
    code = f"def f(q, o):\n    {body.format(call)}\n"
    assert codes(project(tmp_path, code)) == []
