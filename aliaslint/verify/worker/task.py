"""One task: build one architecture in one tree, run every scenario, write down the logits."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
import numpy as np

from aliaslint.verify.worker import scenarios
from aliaslint.verify.worker.build import Unsupported, build
from aliaslint.verify.worker.caches import CacheMaker, walk
from aliaslint.verify.worker.scenarios import Logits, Session


def run_architecture(task: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Run the task's scenarios; write their logits to `task["out"]` and return the rest."""
    package, model_type = task["package"], task["model_type"]
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            caches = importlib.import_module(f"{task['caches']}.models.cache")
            own = (task["names"], task["config"], task["seed"])
            model, config = build(package, caches, model_type, *own)
        if task["dtype"] != "float32":
            model.set_dtype(getattr(mx, task["dtype"]))
        session = Session(model, CacheMaker(caches, model), _vocabulary(config))
        kinds = sorted({type(cache).__name__ for cache in walk(session.maker.plain())})
    except Unsupported as reason:
        return {"status": "unsupported", "reason": str(reason)}
    except SystemExit:
        return {
            "status": "unbuilt",
            "reason": f"ends the process when imported: {_last_line(said)}",
        }
    except Exception as error:
        return {"status": "unbuilt", "reason": describe(error, folder)}
    outcomes, arrays = _run_all(session, folder, task.get("only"))
    np.savez(task["out"], **cast("dict[str, Any]", arrays))
    return {"status": "ok", "caches": kinds, "config": config, "runs": outcomes}


def _run_all(
    session: Session, folder: Path, only: list[str] | None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    calls: dict[str, Callable[[Session], Logits]] = dict(scenarios.REFERENCES)
    calls |= {scenario.name: scenario.run for scenario in scenarios.SCENARIOS}
    calls[scenarios.CONTROL] = lambda session: scenarios.history(session, shift=1)
    outcomes: dict[str, Any] = {}
    arrays: dict[str, np.ndarray] = {}
    for name, call in calls.items():
        if only is not None and name not in only:
            continue
        outcomes[name] = _run_one(name, call, session, folder, arrays)
    return outcomes, arrays


def _run_one(
    name: str,
    call: Callable[[Session], Logits],
    session: Session,
    folder: Path,
    arrays: dict[str, np.ndarray],
) -> dict[str, Any]:
    try:
        logits = call(session)
    except Unsupported as reason:
        return {"status": "unsupported", "reason": str(reason)}
    except Exception as error:
        return {"status": "raised", "reason": describe(error, folder)}
    keys = sorted(logits)
    arrays[name] = np.stack([logits[key] for key in keys])
    return {"status": "ok", "index": [list(key) for key in keys]}


def _last_line(said: io.StringIO) -> str:
    return next(reversed(said.getvalue().split("\n")[:-1]), "without a word")


def describe(error: BaseException, folder: Path) -> str:
    """The error in one line, with the innermost place inside the tree under test."""
    text = " ".join(str(error).split())[:200]
    kind = type(error).__name__
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(folder):
            where = f"{path.relative_to(folder)}:{frame.lineno} in {frame.name}"
            return f"{kind}: {text} ({where})" if text else f"{kind} ({where})"
    return f"{kind}: {text}" if text else kind


def _vocabulary(config: Mapping[str, Any]) -> int:
    """The vocabulary size of a configuration, also where it is nested; 100 if not given."""
    for name in ("vocab_size", "embedding_size", "num_vocab"):
        if isinstance(config.get(name), int):
            return int(config[name])
    inner = [_vocabulary(value) for value in config.values() if isinstance(value, dict)]
    return min(inner, default=100)


def write_result(task: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """Write the result beside the logits, whole or not at all."""
    path = Path(task["result"])
    temporary = path.with_suffix(".part")
    temporary.write_text(json.dumps(result), encoding="utf-8")
    os.replace(temporary, path)
