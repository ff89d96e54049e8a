"""A relative import that leads above every folder resolves to nothing, and nothing breaks."""

from __future__ import annotations

import ast
from pathlib import Path

from aliaslint.program.modules import ModuleTable


def test_a_relative_import_above_the_root_is_not_in_the_program() -> None:
    text = "from ... import name\n"
    table = ModuleTable({}, {})
    module = table.add(Path("/folder/module.py"), ast.parse(text), text, True)
    assert table.find(module, "...") is None
