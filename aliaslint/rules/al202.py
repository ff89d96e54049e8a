"""AL202: an operand that is the same array as one updated in place."""

from __future__ import annotations

from aliaslint.rules import Rule

RULE = Rule(
    code="AL202",
    name="aliased-operand",
    summary="in-place update of an array that another name still reads",
    message="`{statement}` also changes `{other}`, the same array, which is read afterwards",
    severity="error",
    default=True,
    what="""\
Finds the same fault away from owners: `residual = x; x += f(x)` and then a read of `residual`, or
a function that updates its parameter in place while its caller reads the argument later.""",
    why="""\
`residual = x` copies nothing. After `x += f(x)` both names have the sum, and the residual
connection adds it to itself. With numbers and with torch's out-of-place habits the code reads
as if it were right.""",
    example="""\
residual = x
x += self.attn(x)
return self.mlp(x) + residual""",
    instead="""\
residual = x
x = x + self.attn(x)
return self.mlp(x) + residual""",
    known_problems="""\
Out-parameters are meant and silent: a function that updates its parameter and returns nothing
derived from it, and `x = process(x)`, where the caller puts the result back under the same name.
They are reported only where a third name still holds the array and is read.""",
    fix="""\
Rebinding. Safe unless the function is meant to write into its parameter, or another holder counts
on the update.""",
)
