"""What a tree does when it runs: imports, caches, generation one by one and in a batch.

Run as a script, with the tree first on `sys.path` and then the mlx-lm that lies beside it; prints
one JSON object. It is the only part that imports the code of a release, so it runs in a process of
its own.

    python benchmarks/fix_releases/behaviour.py FOLDER PACKAGE [MODULE...]
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# Full attention, a rotating window beside it, and one whose captures were stale up to 0.31.3.
MODELS = ("llama", "gemma3_text", "gemma3n")
PROMPTS = [[3, 14, 15], [9, 2, 6, 5, 35, 8, 9, 7], [9, 3]]
TOKENS = 10
SEED = 7


def attempt(action: Callable[[], Any]) -> Any:
    """Return what an action gives, or "ERROR: ..." with what it raised; its prints are lost."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return action()
    except Exception as error:
        text = " ".join(str(error).split())[:120]
        return f"ERROR: {type(error).__name__}: {text}"


def imported(name: str, root: Path) -> str:
    """Import a module of the tree. Raises ImportError if another one of its name comes first."""
    module = importlib.import_module(name)
    if not Path(str(module.__file__)).is_relative_to(root):
        raise ImportError(f"{name} comes from {module.__file__}")
    return "ok"


def library(root: Path, package: str) -> str | None:
    """Return the name of the package that is laid out like mlx_lm: itself, or a copy inside."""
    for path in sorted((root / package).rglob("models/cache.py")):
        if (path.parent / "llama.py").is_file():
            return ".".join(path.parent.parent.relative_to(root).parts)
    return None


def cache_module(root: Path, package: str) -> str | None:
    """Return the module with caches for batches, if there is one."""
    for path in sorted((root / package).rglob("*cache*.py")):
        if "class BatchKVCache" in path.read_text(encoding="utf-8", errors="replace"):
            return ".".join(path.relative_to(root).with_suffix("").parts)
    return None


def caches(name: str) -> dict[str, Any]:
    """Run the public methods of each cache for batches; return what it gives back, as lists."""
    module = importlib.import_module(name)
    made = {
        "BatchKVCache": lambda kind: kind([2, 0]),
        "BatchRotatingKVCache": lambda kind: kind(8, [2, 0]),
    }
    found = {}
    for name, make in made.items():
        kind = getattr(module, name, None)
        if kind is not None:
            found[name] = attempt(lambda kind=kind, make=make: exercised(make(kind)))
    return found


def exercised(cache: Any) -> list[Any]:
    """Fill a cache as batched decoding does, drop a row, and look at it after each step."""
    import mlx.core as mx

    seen = []
    for step, length in enumerate((6, 1, 1, 1, 1)):
        keys = mx.arange(2 * 2 * length * 4).reshape(2, 2, length, 4).astype(mx.float32) + step
        fetched = cache.update_and_fetch(keys, keys + 0.5)
        seen.append([array.tolist() for array in (*fetched, cache.offset)])
    cache.filter(mx.array([1]))
    one = mx.ones((1, 2, 1, 4))
    seen.append([array.tolist() for array in (*cache.update_and_fetch(one, one), cache.offset)])
    return seen


class Tokenizer:
    """What `batch_generate` asks of a tokenizer."""

    eos_token_ids: frozenset[int] = frozenset()

    def decode(self, tokens: Sequence[int]) -> str:
        return " ".join(map(str, tokens))


def generated(package: str, model_type: str) -> dict[str, Any]:
    """Generate with a tiny model: each prompt alone, and all of them in a batch."""
    from aliaslint.verify import configs
    from aliaslint.verify.worker.build import build

    plan = configs.plans(model_type)[0]
    caches = importlib.import_module(f"{package}.models.cache")
    model, _ = build(package, caches, model_type, configs.names(), plan.values, SEED)
    return {
        "alone": attempt(lambda: alone(package, model)),
        "batch": attempt(lambda: batched(package, model)),
    }


def alone(package: str, model: Any) -> list[str]:
    """Generate from each prompt by itself, with a cache of `make_prompt_cache`."""
    import mlx.core as mx

    generate = importlib.import_module(f"{package}.generate")
    cache = importlib.import_module(f"{package}.models.cache")
    texts = []
    for prompt in PROMPTS:
        steps = generate.generate_step(
            mx.array(prompt),
            model,
            max_tokens=TOKENS,
            prompt_cache=cache.make_prompt_cache(model),
        )
        texts.append(Tokenizer().decode([int(token) for token, _ in steps]))
    return texts


def batched(package: str, model: Any) -> list[str] | None:
    """Generate from all prompts at once; None if the release has no `batch_generate`."""
    generate = importlib.import_module(f"{package}.generate")
    if not hasattr(generate, "batch_generate"):
        return None
    response = generate.batch_generate(model, Tokenizer(), PROMPTS, max_tokens=TOKENS)
    return list(response.texts)


def main(arguments: Sequence[str]) -> None:
    root, package, *modules = arguments
    folder = Path(root)
    beside = [str(path) for path in folder.glob(".venv/lib/*/site-packages")]
    sys.path[:1] = [root, *beside]
    names = [package, *modules]
    report: dict[str, Any] = {
        "imports": {n: attempt(lambda n=n: imported(n, folder)) for n in names}
    }
    module = cache_module(folder, package)
    report["caches"] = attempt(lambda: caches(module)) if module else {}
    inner = library(folder, package)
    if inner is not None:
        place = folder.joinpath(*inner.split("."), "models")
        models = [name for name in MODELS if (place / f"{name}.py").exists()]
        report["models"] = {m: attempt(lambda m=m: generated(inner, m)) for m in models}
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1:])
