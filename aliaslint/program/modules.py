"""The whole program: its modules, what their names mean, and where imports lead.

Modules outside the target (dependencies) are parsed only when a name leads to them.
"""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aliaslint.lower import ir
from aliaslint.lower.lowering import Lowering
from aliaslint.program.types import ClassOf, Ext, FuncOf, Mod
from aliaslint.source.files import split_lines

EFFECTS = "<effects>"  # stands for a folder: modules that are known by their effects alone
DefNode = ast.FunctionDef | ast.AsyncFunctionDef
BUILTINS = frozenset(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)


@dataclass(frozen=True, slots=True)
class GlobalVar:
    """A module-level variable that is neither a function, a class nor an import."""

    module: str
    name: str


Symbol = FuncOf | ClassOf | Ext | Mod | GlobalVar


@dataclass(slots=True, eq=False)
class Module:
    """One parsed file. `id` is short and unique; `dotted` is its import name as far as known."""

    id: str
    path: Path
    dotted: str
    tree: ast.Module
    in_target: bool
    is_test: bool
    lines: list[str] = field(default_factory=list)
    names: dict[str, tuple[str, object]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    lowering: Lowering = field(init=False)
    body: ir.Function | None = None
    imports_mlx: bool = False
    imports_other_arrays: bool = False
    mlx_names: frozenset[str] = frozenset()  # what `mlx.core` is called here

    def __post_init__(self) -> None:
        self.lowering = Lowering(self.id)
        collect_names(self, self.tree.body)
        self.mlx_names = frozenset(
            name for name, (_, value) in self.names.items() if value in {"mlx.core", "mlx:core"}
        )
        for kind, value in self.names.values():
            if kind in {"module", "import"}:
                top = str(value).partition(".")[0].partition(":")[0]
                self.imports_mlx |= top == "mlx"
                self.imports_other_arrays |= top in {"torch", "jax", "tensorflow"}


def collect_names(module: Module, body: list[ast.stmt]) -> None:
    """Record what each top-level statement binds; later bindings win, as at run time."""
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                module.names[name] = ("func", node)
            case ast.ClassDef(name=name):
                module.names[name] = ("class", node)
            case ast.Import(names=aliases):
                for alias in aliases:
                    dotted = alias.name if alias.asname else alias.name.partition(".")[0]
                    module.names[alias.asname or dotted] = ("module", dotted)
            case ast.ImportFrom(names=aliases):
                source = "." * node.level + (node.module or "")
                for alias in aliases:
                    if alias.name == "*":
                        module.stars.append(source)
                    else:
                        found = f"{source}:{alias.name}"
                        module.names[alias.asname or alias.name] = ("import", found)
            case ast.Assign(targets=targets):
                for assigned in targets:
                    for name_node in ast.walk(assigned):
                        if isinstance(name_node, ast.Name) and isinstance(name_node.ctx, ast.Store):
                            module.names[name_node.id] = ("var", node)
            case ast.AnnAssign(target=ast.Name(id=name)):
                module.names[name] = ("var", node)
            case ast.If(body=then, orelse=other):
                collect_names(module, then)
                collect_names(module, other)
            case ast.With(body=inner) | ast.For(body=inner) | ast.While(body=inner):
                collect_names(module, inner)
            case _ if hasattr(node, "handlers"):
                for handler in node.handlers:
                    collect_names(module, handler.body)
                collect_names(module, node.body)  # type: ignore[attr-defined]
            case _:
                pass


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, also those under its `if`, `try` and `with`."""
    for node in body:
        yield node
        match node:
            case ast.If() | ast.With() | ast.For() | ast.While() | ast.Try():
                for inner in (node.body, getattr(node, "orelse", [])):
                    yield from top_level(inner)
                for handler in getattr(node, "handlers", []):
                    yield from top_level(handler.body)
            case _:
                pass


def is_test_path(path: Path) -> bool:
    """Tests are `test_*.py`, `*_test.py`, `conftest.py` and what lies in `tests` folders."""
    name = path.name
    if name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py":
        return True
    return any(part in {"tests", "test", "testing"} for part in path.parts[-4:-1])


class ModuleTable:
    """All modules by path and by import name; dependencies are read when first asked for."""

    def __init__(self, roots: Mapping[str, Path], skeletons: Mapping[str, str]) -> None:
        self.roots = roots
        self.skeletons = skeletons
        self.by_path: dict[Path, Module | None] = {}
        self.by_id: dict[str, Module] = {}
        self._packages: dict[Path, tuple[Path, str]] = {}
        self._found: dict[tuple[str, str], Module | None] = {}
        self._target_dirs: set[Path] = set()

    def add(self, path: Path, tree: ast.Module, text: str, in_target: bool) -> Module:
        _, dotted = self.package_of(path)
        module_id = self._id(dotted.replace(":", "|"), path)
        module = Module(
            module_id, path, dotted, tree, in_target, is_test_path(path), split_lines(text)
        )
        self.by_id[module_id] = module
        self.by_path[path] = module
        if in_target:
            self._target_dirs.add(path.parent)
        return module

    def _id(self, dotted: str, path: Path) -> str:
        """Return an identity that does not depend on when a module was loaded: what is found in
        one process means the same in another."""
        if dotted not in self.by_id:
            return dotted
        return f"{dotted}|{hashlib.blake2b(os.fsencode(path), digest_size=8).hexdigest()}"

    def targets(self) -> Iterator[Module]:
        return (m for m in list(self.by_id.values()) if m.in_target)

    def package_of(self, path: Path) -> tuple[Path, str]:
        """Return the folder that holds the top-level package, and the dotted module name."""
        folder = path.parent
        root, prefix = self._package_folder(folder)
        if path.name == "__init__.py":
            return root, prefix or folder.name
        return root, f"{prefix}.{path.stem}" if prefix else path.stem

    def _package_folder(self, folder: Path) -> tuple[Path, str]:
        known = self._packages.get(folder)
        if known is None:
            if (folder / "__init__.py").exists() and folder.parent != folder:
                root, prefix = self._package_folder(folder.parent)
                known = (root, f"{prefix}.{folder.name}" if prefix else folder.name)
            elif any(root == folder for root in self.roots.values()):
                known = (folder.parent, folder.name)
            else:
                known = (folder, "")
            self._packages[folder] = known
        return known

    def load(self, path: Path) -> Module | None:
        """Return the module at `path`, parsed as a dependency if it is not a target."""
        if path not in self.by_path:
            self.by_path[path] = None
            try:
                data = path.read_bytes()
                tree = ast.parse(data)
            except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                return None
            self.add(path, tree, data.decode("utf-8", "replace"), in_target=False)
        return self.by_path[path]

    def bring(self, path: Path) -> Module | None:
        """Return the module at a path that another table has."""
        if path.parts[:1] == (EFFECTS,):
            return self._skeleton(".".join(path.with_suffix("").parts[1:]))
        return self.load(path)

    def find(self, importer: Module, dotted: str) -> Module | None:
        """Return the module that `import dotted` means in `importer`, if it is in the program."""
        key = (importer.id, dotted)
        if key not in self._found:
            self._found[key] = self._find(importer, dotted)
        return self._found[key]

    def _find(self, importer: Module, dotted: str) -> Module | None:
        for base, rest in self._bases(importer, dotted):
            path = base.joinpath(*rest.split(".")) if rest else base
            for candidate in (path / "__init__.py", path.parent / f"{path.name}.py"):
                if candidate in self.by_path or candidate.is_file():
                    return self.load(candidate)
        return self._skeleton(dotted)

    def _bases(self, importer: Module, dotted: str) -> Iterator[tuple[Path, str]]:
        if dotted.startswith("."):
            rest = dotted.lstrip(".")
            base = importer.path.parent
            for _ in range(len(dotted) - len(rest) - 1):
                base = base.parent
            yield base, rest
            return
        top, _, tail = dotted.partition(".")
        root, prefix = self.package_of(importer.path)
        if prefix.partition(".")[0] == top or not self._outside(top):
            yield root, dotted
            if importer.path.parent != root:
                yield importer.path.parent, dotted
            for folder in root.parents:
                if folder in self._target_dirs:
                    yield folder, dotted
        if top in self.roots:
            yield self.roots[top], tail

    def _outside(self, top: str) -> bool:
        return top in {"mlx", "numpy", "torch", "functools", "copy", "typing", "dataclasses"}

    def _skeleton(self, dotted: str) -> Module | None:
        text = self.skeletons.get(dotted)
        if text is None:
            return None
        path = Path(EFFECTS) / (dotted.replace(".", "/") + ".py")
        known = self.by_path.get(path)
        return known or self.add(path, ast.parse(text), text, in_target=False)

    # --- names

    def resolve(self, module: Module, name: str, depth: int = 0) -> Symbol | None:
        """Return what the global `name` means in `module`; None if nothing is known."""
        binding = module.names.get(name)
        if binding is None:
            for source in module.stars:
                found = self.find(module, source)
                if found and found is not module and depth < 6:
                    symbol = self.resolve(found, name, depth + 1)
                    if symbol is not None and not _is_builtin(symbol):
                        return symbol
            return Ext(f"builtins.{name}") if name in BUILTINS else None
        kind, value = binding
        match kind:
            case "func":
                assert isinstance(value, (ast.FunctionDef, ast.AsyncFunctionDef))
                return FuncOf(f"{module.id}:{name}:{value.lineno}:{value.col_offset}")
            case "class":
                return ClassOf(f"{module.id}:{name}")
            case "module":
                return self.module_symbol(module, str(value))
            case "import":
                source, _, attr = str(value).partition(":")
                return self.imported(module, source, attr, depth)
            case _:
                return GlobalVar(module.id, name)

    def module_symbol(self, module: Module, dotted: str) -> Symbol:
        found = self.find(module, dotted)
        return Mod(found.id) if found else Ext(dotted)

    def imported(self, module: Module, source: str, attr: str, depth: int = 0) -> Symbol | None:
        """Return what `from source import attr` binds in `module`."""
        found = self.find(module, source)
        if found is None:
            separator = "" if source.endswith(".") else "."
            sub = self.find(module, f"{source}{separator}{attr}")
            return Mod(sub.id) if sub else Ext(f"{source.lstrip('.')}.{attr}")
        symbol = self.resolve(found, attr, depth + 1) if depth < 8 else None
        if symbol is None or _is_builtin(symbol):
            separator = "" if source.endswith(".") else "."
            sub = self.find(module, f"{source}{separator}{attr}")
            if sub:
                return Mod(sub.id)
        return symbol


def _is_builtin(symbol: Symbol) -> bool:
    return isinstance(symbol, Ext) and symbol.dotted.startswith("builtins.")
