"""The effect table: what the generator reads from a cache module, and what comes back as text."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from aliaslint.program import effect_tables
from benchmarks import effect_tables as generator

CACHE = '''
import mlx.core as mx


def trim_all(caches, n):
    return [c.finalize(n) for c in caches]


def helper(x):
    return mx.roll(x, 1)


class Base:
    @property
    def state(self):
        return []


class Batch(Base):
    step = 256

    def __init__(self, padding, size=16):
        self.keys = None
        self.offset = mx.array([-p for p in padding])
        self.size_limit = size
        self._idx = 0

    def update_and_fetch(self, keys, values):
        """Docstring."""
        previous = self._idx
        if self.keys is None:
            self.keys = mx.zeros(keys.shape)
        self.offset += keys.shape[2]
        self._idx += keys.shape[2]
        self.keys[..., previous : self._idx, :] = keys
        return self.keys[..., : self._idx, :], values

    @property
    def state(self):
        k = self.keys
        if self._idx < k.shape[2]:
            k = k[..., : self._idx, :]
        return k, self.offset

    @state.setter
    def state(self, v):
        self.keys, self.offset = v
        self._idx = self.keys.shape[2]

    def finalize(self, other, *, padding=None):
        self.keys = helper(self.keys)
        self.offset = self.offset - padding
        other.finalize(self, padding=padding)

    @classmethod
    def merge(cls, caches):
        if not caches:
            raise ValueError("nothing")
        cache = cls([0] * len(caches))
        cache.offset += 1
        return cache


class Counter:
    def count(self):
        self.n += 1
'''

WANTED = """
def trim_all(caches, n):
    return [v1.finalize(n) for v1 in caches]


def helper(x):
    return mx.zeros((1,))


class Base:
    @property
    def state(self):
        return []


class Batch(Base):
    step = 0
    def __init__(self, padding, size=None):
        self.keys = None
        self.offset = mx.zeros((1,))
        self.size_limit = size
        self._idx = 0
    def update_and_fetch(self, keys, values):
        if _either:
            self.keys = mx.zeros((1,))
        self.offset += 1
        self._idx += 1
        self.keys[...] = keys
        return (mx.zeros((1,)), values)
    @property
    def state(self):
        v1 = self.keys
        if _either:
            v1 = mx.zeros((1,))
        return (v1, self.offset)
    @state.setter
    def state(self, v):
        self.keys = v[0]
        self.offset = v[1]
        self._idx = 0
    def finalize(self, other, *, padding=None):
        self.keys = mx.zeros((1,))
        self.offset = mx.zeros((1,))
        other.finalize(self, padding=padding)
    @classmethod
    def merge(cls, caches):
        if _either:
            raise ValueError
        t1 = cls([])
        v1 = t1
        v1.offset += 1
        return v1
"""


def release(
    folder: Path, version: str, source: str, needs: str = "Requires-Dist: mlx>=0.31"
) -> Path:
    """Make an unpacked wheel with a cache module."""
    place = folder / version
    (place / "mlx_lm" / "models").mkdir(parents=True)
    (place / "mlx_lm" / "models" / "cache.py").write_text(source)
    (place / "mlx_lm" / "models" / "base.py").write_text("")
    information = place / f"mlx_lm-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Name: mlx_lm\nVersion: {version}\n{needs}\n\nText\n")
    return place


def use(monkeypatch: pytest.MonkeyPatch, table: dict[str, Any]) -> None:
    """Make the generated table the built-in one."""
    monkeypatch.setattr(effect_tables, "known", lambda name: True)
    monkeypatch.setattr(effect_tables, "table", lambda name: table["modules"])
    monkeypatch.setattr(effect_tables, "facts", lambda name: table["releases"])


def test_skeleton_has_the_effects_of_the_module_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, generator.build([release(tmp_path, "1.0", CACHE)]))
    text = effect_tables.skeleton("mlx_lm", "1.0")
    assert ast.unparse(ast.parse(text)) == ast.unparse(
        ast.parse(f"import mlx.core as mx\n_either = len(__name__) > 0\n{WANTED}")
    )


def test_skeleton_behaves_like_the_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Under MLX, a held offset is changed by an update of the one as of the other."""
    mx = pytest.importorskip("mlx.core")
    use(monkeypatch, generator.build([release(tmp_path, "1.0", CACHE)]))
    changed = []
    skeleton = effect_tables.skeleton("mlx_lm", "1.0")
    for source, keys in ((CACHE, mx.ones((2, 1, 3, 4))), (skeleton, mx.array(1))):
        module = ModuleType("cache")
        exec(source, module.__dict__)
        cache = module.Batch([1, 0])
        held = cache.offset
        cache.update_and_fetch(keys, keys)
        changed.append((held is cache.offset, held is cache.state[1]))
    assert changed == [(True, True), (True, True)]


def test_unchanged_definitions_of_two_releases_are_one_entry(tmp_path: Path) -> None:
    rebound = CACHE.replace("self.offset += keys.shape[2]", "self.offset = self.offset + 1")
    folders = [
        release(tmp_path, "1.0", CACHE),
        release(tmp_path, "1.1", CACHE),
        release(tmp_path, "1.10", rebound),
    ]
    entries = generator.build(folders)["modules"]["models/cache.py"]
    spans = [(e["name"], e["first"], e["last"]) for e in entries]
    assert spans == [
        ("trim_all", "1.0", "1.10"),
        ("helper", "1.0", "1.10"),
        ("Base", "1.0", "1.10"),
        ("Batch", "1.0", "1.1"),
        ("Batch", "1.10", "1.10"),
    ]


def changing_lines(text: str) -> list[int]:
    """Return the lines of augmented assignments to attributes."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute)
    ]


def test_skeleton_has_its_effects_on_the_lines_of_each_release(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sources = {
        "1.0": CACHE,
        "1.1": "# A comment more.\n" * 7 + CACHE,
        "1.2": CACHE.replace("self._idx += keys", "# In between.\n\n        self._idx += keys"),
    }
    use(monkeypatch, generator.build([release(tmp_path, v, s) for v, s in sources.items()]))
    for version, source in sources.items():
        wanted = changing_lines(source.partition("class Counter")[0])
        assert changing_lines(effect_tables.skeleton("mlx_lm", version)) == wanted


@pytest.mark.parametrize(
    ("version", "in_place"), [("1.0", True), ("1.1.5", True), ("2", False), ("0.5", True)]
)
def test_release_that_is_not_newer_stands_for_a_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, in_place: bool
) -> None:
    rebound = CACHE.replace("self.offset += keys.shape[2]", "self.offset = self.offset + 1")
    folders = [release(tmp_path, "1.0", CACHE), release(tmp_path, "1.10", rebound)]
    use(monkeypatch, generator.build(folders))
    text = effect_tables.skeleton("mlx_lm", version)
    assert ("        self.offset += 1" in text) is in_place


def test_requirement_on_mlx_is_kept_without_extras(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    needs = 'Requires-Dist: mlx[cpu]>=9; extra == "cpu"\nRequires-Dist: mlx>=0.31.2; x == "y"'
    use(monkeypatch, generator.build([release(tmp_path, "1.0", CACHE, needs)]))
    assert effect_tables.requirement("mlx_lm", "1.0") == ">=0.31.2"


def test_effect_hidden_in_a_nested_function_is_refused() -> None:
    source = "def f(c):\n    def g():\n        c.offset += 1\n    g()\n"
    with pytest.raises(NotImplementedError, match="line 3"):
        generator.module_facts(source)


def test_text_of_a_table_is_its_json(tmp_path: Path) -> None:
    import json

    table = generator.build([release(tmp_path, "1.0", CACHE)])
    assert json.loads(generator.text_of(table["modules"])) == table["modules"]
    assert json.loads(generator.releases_text(table["releases"])) == table["releases"]


# The table that is shipped


@pytest.mark.parametrize("version", effect_tables.releases("mlx_lm"))
def test_shipped_skeletons_parse(version: str) -> None:
    for text in effect_tables.skeletons("mlx_lm", version).values():
        ast.parse(text)


@pytest.mark.parametrize(
    ("version", "batched"),
    [("0.27.1", False), ("0.28.0", True), ("0.31.3", True), ("0.32.2", True)],
)
def test_shipped_table_knows_since_when_there_are_batched_caches(
    version: str, batched: bool
) -> None:
    assert effect_tables.batched("mlx_lm", version) is batched


@pytest.mark.parametrize(
    ("version", "attribute", "changes"),
    [
        ("0.28.0", "offset", True),
        ("0.31.3", "offset", True),
        ("0.32.0", "offset", False),
        ("0.32.2", "offset", False),
    ],
)
@pytest.mark.parametrize("operation", ["update_and_fetch", "trim"])
def test_shipped_batch_cache_changes_what_the_release_changes(
    version: str, attribute: str, changes: bool, operation: str
) -> None:
    pytest.importorskip("mlx.core")
    module = ModuleType("cache")
    exec(effect_tables.skeleton("mlx_lm", version), module.__dict__)
    cache = module.BatchKVCache([1, 0])
    held = getattr(cache, attribute)
    cache.update_and_fetch(1, 1) if operation == "update_and_fetch" else cache.trim(1)
    assert (held is getattr(cache, attribute)) is changes


def test_shipped_list_of_caches_keeps_its_caches_apart() -> None:
    pytest.importorskip("mlx.core")
    module = ModuleType("cache")
    exec(effect_tables.skeleton("mlx_lm", "0.31.3"), module.__dict__)
    first, second = module.BatchKVCache([1, 0]), module.BatchKVCache([1, 0])
    caches = module.CacheList(first, second)
    assert (caches[0], caches[1]) == (first, second)


LISTED = """
from mlx_lm.models.cache import BatchKVCache, CacheList

caches = CacheList(BatchKVCache([1, 0]), BatchKVCache([1, 0]))
offset = caches[0].offset
caches[INDEX].update_and_fetch(1, 1)
print(offset + 1)
"""


@pytest.mark.parametrize(("index", "found"), [(0, ["AL101"]), (1, [])])
def test_update_in_a_list_of_caches_concerns_that_cache(
    tmp_path: Path, index: int, found: list[str]
) -> None:
    from aliaslint.analysis import AnalysisOptions, analyse
    from aliaslint.source.files import SourceFile, read

    (tmp_path / "model.py").write_text(LISTED.replace("INDEX", str(index)))
    file = read(tmp_path / "model.py")
    assert isinstance(file, SourceFile)
    options = AnalysisOptions(dependency_versions={"mlx_lm": "0.31.3"})
    assert [f.code for f in analyse([file], options).findings] == found


USES = """
class Attention:
    def __call__(self, x, cache: "Batch"):
        offset = cache.offset
        cache.update_and_fetch(x, x)
        return offset + 1


class Prompt:
    def __call__(self, x, cache):
        state = cache.state
        cache.update_and_fetch(x, x)
        return state[1] + 1


def healthy(cache, x):
    offset = cache.offset + 0
    cache.update_and_fetch(x, x)
    return offset + 1
"""


@pytest.mark.parametrize("rebinds", [False, True])
def test_analysis_finds_the_same_by_table_as_by_source(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rebinds: bool
) -> None:
    from aliaslint.analysis import AnalysisOptions, analyse
    from aliaslint.source.files import SourceFile, read

    source = CACHE
    if rebinds:
        source = source.replace("self.offset += keys.shape[2]", "self.offset = self.offset + 1")
    place = release(tmp_path, "1.0", source)
    use(monkeypatch, generator.build([place]))
    (tmp_path / "model.py").write_text(USES)
    file = read(tmp_path / "model.py")
    assert isinstance(file, SourceFile)
    by_source = AnalysisOptions(dependency_roots={"mlx_lm": place / "mlx_lm"})
    by_table = AnalysisOptions(dependency_versions={"mlx_lm": "1.0"})
    first, second = (
        [(f.code, f.span, [(s.role, s.span.line) for s in f.trace]) for f in found]
        for found in (analyse([file], o).findings for o in (by_source, by_table))
    )
    assert first == second
    assert any(code == "AL101" for code, _, _ in first) is not rebinds
