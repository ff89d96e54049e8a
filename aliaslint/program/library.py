"""What calls into MLX, numpy, the standard library and builtins give back.

The table is about handles only: a name that is not listed gives a new value. Sources: the
measured table of MLX semantics (MLX 0.32.4 and 0.30.6) and MLX's own stubs.
"""

from __future__ import annotations

from aliaslint.program.types import ARRAY, NONE, OTHER, SCALAR, STR, UNKNOWN, ExtInst, Type

MX_NOT_ARRAYS = frozenset(
    "eval async_eval default_device default_stream set_default_device set_default_stream seed "
    "save savez savez_compressed save_safetensors save_gguf load synchronize clear_cache "
    "get_active_memory get_peak_memory get_cache_memory set_wired_limit set_memory_limit "
    "reset_peak_memory metal is_available finfo iinfo issubdtype new_stream stream Device Stream "
    "export_function import_function compile checkpoint custom_function grad value_and_grad vmap "
    "vjp jvp disable_compile enable_compile".split()
)

# Functions of MLX that look at a handle without using its value.
MX_NOT_READS = frozenset({"mlx.core.eval", "mlx.core.async_eval", "mlx.core.synchronize"})

# Wrappers under which the wrapped function sees copies of its arguments.
MX_ISOLATING = frozenset({"mlx.core.compile", "mlx.core.checkpoint"})
MX_TRANSPARENT = frozenset({"mlx.core.custom_function"})

# Modules of mlx.nn that hand their argument on unchanged, always or in some mode.
NN_IDENTITY = frozenset(
    {"mlx.nn.Identity", "mlx.nn.Dropout", "mlx.nn.Dropout2d", "mlx.nn.Dropout3d"}
)
NN_CONTAINERS = frozenset({"mlx.nn.Sequential"})

BUILTIN_SCALARS = frozenset(
    "len int float bool abs round hash id ord sum divmod pow isinstance issubclass hasattr "
    "callable all any complex".split()
)
BUILTIN_TEXT = frozenset("str repr format ascii chr hex bin oct input".split())
NOT_READS = frozenset(
    f"builtins.{name}" for name in "isinstance issubclass hasattr id type callable len".split()
)

# Methods of arrays that change them: `a += b` and `a[i] = v` as calls.
IN_PLACE_METHODS = frozenset(
    f"__{name}__"
    for name in "iadd isub imul itruediv ifloordiv imod ipow iand ior ixor imatmul ilshift "
    "irshift setitem".split()
)

METADATA = frozenset("shape dtype ndim size nbytes itemsize".split())

# Methods that only arrays have (or that show an array where the module uses MLX): evidence.
ARRAY_METHODS = frozenset(
    "astype reshape transpose swapaxes squeeze flatten moveaxis item tolist sum mean max min "
    "argmax argmin square sqrt exp log view logsumexp cumsum".split()
)
ARRAY_SCALARS = frozenset({"item", "tolist"})


def builtin_result(name: str) -> Type:
    """Return the type that a call of the builtin `name` gives (arrays ruled out or not)."""
    if name in {"abs", "sum", "pow", "round", "divmod", "min", "max"}:
        return UNKNOWN
    if name in BUILTIN_SCALARS:
        return SCALAR
    if name in BUILTIN_TEXT:
        return STR
    if name in {"print", "setattr", "delattr"}:
        return NONE
    return UNKNOWN


def call_result(dotted: str) -> Type:
    """Return the type of `dotted(...)` for a name outside the program."""
    head, _, tail = dotted.rpartition(".")
    if head == "builtins":
        return builtin_result(tail)
    if dotted.startswith("mlx.core."):
        if tail in MX_NOT_ARRAYS or head.startswith("mlx.core.distributed"):
            return OTHER if tail != "load" else UNKNOWN
        return ARRAY
    if dotted.startswith("mlx.nn."):
        if tail[:1].isupper():
            return frozenset({ExtInst(dotted)})
        return ARRAY
    if dotted.startswith("numpy."):
        return OTHER
    if dotted.startswith(("math.", "time.", "random.", "os.", "re.")):
        return SCALAR
    return UNKNOWN


def instance_call_result(dotted: str) -> Type:
    """Return the type of calling an instance of an outside class, as layers of mlx.nn are."""
    if dotted.startswith("mlx.nn."):
        return UNKNOWN if dotted in NN_CONTAINERS else ARRAY
    return UNKNOWN


def attribute_type(dotted: str) -> Type:
    """Return the type of an attribute path of an outside module that is not called."""
    if dotted.startswith(("mlx.core.", "math.")):
        return OTHER
    return UNKNOWN
