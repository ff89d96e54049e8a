from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def run_contract(task: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    return {"status": "ok", "classes": []}
