"""The pages in docs/rules/ are those of the rules."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SPEC = importlib.util.spec_from_file_location("generate_docs", DOCS / "generate.py")
assert SPEC is not None
assert SPEC.loader is not None
GENERATE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(GENERATE)
PAGES = dict(GENERATE.pages())


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_is_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == PAGES[path], "run: python docs/generate.py"


def test_there_are_no_other_pages() -> None:
    assert set((DOCS / "rules").iterdir()) == set(PAGES)
