"""Why there is no finding on a line, or none that is shown."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from aliaslint.explain.looking import Look
from aliaslint.explain.model import InClass, Mention, Place, Verdict
from aliaslint.lower import ir
from aliaslint.report.summary import count

MANY = 3


def reasons(
    look: Look, mentions: tuple[Mention, ...], verdicts: tuple[Verdict, ...]
) -> tuple[str, ...]:
    """Return clauses that say why the line is silent; none where a finding is shown on it."""
    if any(v.status == "reported" for v in verdicts):
        return ()
    placed = [v for v in verdicts if "place" in v.roles]
    if placed:
        return tuple(not_shown(verdict) for verdict in placed)
    if look.spot.decorator is not None:
        return (decorated(look.spot.decorator),)
    if look.spot.declares:
        return ("an annotation without a value binds nothing",)
    if look.spot.header is not None and isinstance(look.spot.header, ast.ClassDef):
        return ("it names a class and its bases: nothing here holds or updates an array",)
    if not look.recorder.reached:
        return (unreached(look),)
    if look.spot.header is not None:
        return ("it names a function and its parameters: nothing here reads or updates an array",)
    found = dict.fromkeys(silent(look, mentions, verdicts))
    return tuple(found) or (
        "nothing here takes a live array that is updated, updates one, or reads a changed one",
    )


def not_shown(verdict: Verdict) -> str:
    code = verdict.finding.code
    if verdict.comment is not None:
        return f"{code} is hidden by the comment on line {verdict.comment.line}"
    return f"{code} is not selected here: `--select {code}` shows it"


def decorated(node: ast.expr) -> str:
    """What a decorator means to the analysis."""
    text = ast.unparse(node)
    head = text.partition("(")[0]
    if "mx.compile" in text or "mx.checkpoint" in text:
        return f"`@{text}` isolates the function: it sees copies, so nothing of its caller changes"
    if head in {"property", "staticmethod", "classmethod"} or head.endswith("cached_property"):
        return f"`@{text}` says how the function is called; calls of it are followed"
    if head.rpartition(".")[2] in {"setter", "deleter"}:
        return f"`@{text}` makes the function run when the attribute is assigned to or deleted"
    if head.rpartition(".")[2] == "dataclass":
        return f"`@{text}` makes the constructor: what it is given is kept, not copied"
    return f"`@{text}` is taken to leave the function as it is"


def unreached(look: Look) -> str:
    if look.abandoned:
        return (
            f"this line was not analysed: {look.spot.unit} costs more than one function may, "
            "and was given up in front of it"
        )
    if look.spot.function is not None and not look.holders:
        return "this line was not analysed: another definition of the same name replaces this one"
    return (
        "this line was not analysed: no path leads to it; what stands in front of it always "
        "leaves, or a condition rules it out"
    )


# --- a line that was analysed and is silent


def silent(
    look: Look, mentions: tuple[Mention, ...], verdicts: tuple[Verdict, ...]
) -> Iterator[str]:
    updated: set[str] = set()
    for stmt in look.recorder.statements:
        for text, reason in update_reasons(look, stmt, mentions):
            updated.add(text)
            yield reason
    told = {role for verdict in verdicts for role in verdict.roles}
    rest = [m for m in mentions if not m.bound and m.text not in updated]
    yield from plain_reasons([m for m in rest if m.plain])
    live = [m for m in rest if not m.plain]
    yield from stale_reasons([m for m in live if m.stale], told)
    fresh = [m for m in live if not m.stale]
    yield from (r for m in fresh if m.classes and (r := attribute_reason(m)))
    rest = [m for m in fresh if not m.classes and not is_object(m)]
    yield from new_reasons([m for m in rest if m.has("array") and m.made and not m.same_as])
    yield from (shared_reason(m) for m in rest if m.same_as and not is_owner(m, mentions))
    bound = [m for m in mentions if m.bound and m.text not in updated]
    yield from new_reasons([m for m in bound if m.has("array") and m.made and not m.same_as])


def update_reasons(
    look: Look, stmt: ir.Stmt, mentions: tuple[Mention, ...]
) -> Iterator[tuple[str, str]]:
    """Why an update on the line is no finding: (what it is written to, the reason)."""
    from aliaslint.explain.recorder import as_expression
    from aliaslint.flow.frame import describe

    match stmt:
        case ir.Aug(target=target):
            text = describe(as_expression(target))
            mention = find(mentions, text, bound=False)
            if mention is not None:
                yield text, aug_reason(look, stmt, mention)
        case ir.Assign(targets=targets):
            for target in targets:
                if isinstance(target, ir.ToItem):
                    text = describe(target.obj)
                    mention = find(mentions, text, bound=False) or find(mentions, text, True)
                    if mention is not None and not is_object(mention) and not mention.plain:
                        yield text, item_reason(look, mention)
                elif isinstance(target, ir.ToAttr):
                    text = describe(as_expression(target))
                    mention = find(mentions, text, bound=True)
                    if mention is not None and mention.has("array") and not mention.same_as:
                        yield text, rebinding_reason(mention)
        case _:
            pass


def find(mentions: tuple[Mention, ...], text: str, bound: bool) -> Mention | None:
    return next((m for m in mentions if m.text == text and m.bound is bound), None)


def aug_reason(look: Look, stmt: ir.Aug, target: Mention) -> str:
    text = target.text
    if target.plain:
        where = f" in {names(target.classes)}" if target.classes else ""
        return f"`{text}` is {kinds_text(target)}{where}: the update binds a new value to it"
    if target.classes and not any(is_array(entry) for entry in target.classes):
        what = class_kinds(target.classes)
        return f"`{text}` is {what} in {names(target.classes)}: the update binds a new value to it"
    if target.has("array"):
        analysis = look.recorder.analysis
        where_ = analysis.where(look.recorder.module, stmt.at)
        sites = [info for site, info in analysis.sites.items() if site.where == where_]
        if isinstance(stmt.target, ir.ToAttr) and sites and not any(i.escaped for i in sites):
            return f"the object that `{text}` belongs to was made here, and nobody else has it yet"
        if target.same_as:
            return f"{shares(target)}, and none of those is read behind this update"
        if target.parameter:
            return of_a_caller(look, target)
        return f"nobody else holds the array of `{text}` when it is updated"
    if target.has("container"):
        return f"`{text}` is a {detail(target)}: what it holds stays as it is"
    return unknown_reason(target)


def unknown_reason(target: Mention) -> str:
    return f"what `{target.text}` is could not be told: an update counts where an array is known"


def item_reason(look: Look, target: Mention) -> str:
    if not target.has("array"):
        return unknown_reason(target)
    if target.same_as:
        return f"{shares(target)}; nothing that holds it is read behind this write"
    if target.parameter:
        return of_a_caller(look, target)
    return f"nobody else holds the array of `{target.text}` when it is written into"


def rebinding_reason(target: Mention) -> str:
    return f"a new array is bound to `{target.text}`: who captured the old one keeps its value"


def plain_reasons(mentions: list[Mention]) -> Iterator[str]:
    """Numbers, texts and None: those known by class one by one, the others together."""
    rest: dict[str, list[str]] = {}
    for mention in mentions:
        if mention.classes:
            every = "every class" if len(mention.classes) > 1 else "the class"
            yield (
                f"`{mention.text}` is {kinds_text(mention)} in {every} that reaches here "
                f"({names(mention.classes)})"
            )
        else:
            rest.setdefault(kinds_text(mention), []).append(f"`{mention.text}`")
    for kind, texts in rest.items():
        yield f"{join(texts)} {'is' if len(texts) == 1 else 'are'} {kind}: no update changes it"


def stale_reasons(mentions: list[Mention], told: Iterable[str]) -> Iterator[str]:
    if "read" in told:
        return
    for mention in mentions:
        change = mention.stale[0]
        by = place_text(change.place)
        if not change.certain:
            yield f"`{mention.text}` may be stale, by {by}: that alone is AL102"
        else:
            yield f"`{mention.text}` is stale, by {by}, but its value is not used on this line"


def attribute_reason(mention: Mention) -> str:
    """Why a live attribute that is taken here stays what it is."""
    arrays = [entry for entry in mention.classes if is_array(entry)]
    if not arrays:
        every = "every class" if len(mention.classes) > 1 else "the class"
        whose = " of the cache protocol" if mention.guessed else " that reaches here"
        what = class_kinds(mention.classes)
        return f"`{mention.text}` is {what} in {every}{whose} ({names(mention.classes)})"
    hits = [(c, u) for c in arrays for u in c.updates if u.how == "in-place"]
    if hits:
        places = join(dict.fromkeys(place_text(u.place) for _, u in hits))
        return (
            f"`{mention.text}` is the live array; it is updated in place ({places}), but no read "
            "of what this line takes was found behind such an update"
        )
    binds = [(c, u) for c in arrays for u in c.updates]
    if binds:
        places = join(dict.fromkeys(place_text(u.place) for _, u in binds))
        return (
            f"`{mention.text}` is the live array, but every update binds a new one to it "
            f"({places}): what was taken keeps its value"
        )
    return f"`{mention.text}` is the live array, and nothing in {names(arrays)} updates it"


def new_reasons(mentions: list[Mention]) -> Iterator[str]:
    if mentions:
        texts = [f"`{m.text}`" for m in mentions]
        verb = "is a new array" if len(texts) == 1 else "are new arrays"
        them = "it" if len(texts) == 1 else "them"
        yield f"{join(texts)} {verb} ({places_text(mentions)}): nobody else holds {them}"


def shared_reason(mention: Mention) -> str:
    return f"{shares(mention)}, but no in-place update of it was found in front of this line"


def is_object(mention: Mention) -> bool:
    return mention.has("object") or mention.has("container")


def is_owner(mention: Mention, mentions: tuple[Mention, ...]) -> bool:
    """True for what the line takes a field or an element of."""
    parts = (f"{mention.text}.", f"{mention.text}[")
    return any(other.text.startswith(parts) for other in mentions)


# --- words


def of_a_caller(look: Look, target: Mention) -> str:
    """Why the update of a parameter's array is silent, as far as callers were followed."""
    whose = f"the array of `{target.text}` belongs to the caller"
    if look.complete:
        return f"{whose}, and none in the program reads it again behind the call"
    if not look.callers:
        return f"{whose}, and no caller was found"
    followed = count(look.callers, "direct caller")
    return f"{whose}; none that was followed ({followed}) reads it again behind the call"


def shares(mention: Mention) -> str:
    others = join(f"`{text}`" for text in mention.same_as)
    what = "array" if mention.has("array") else "value"
    return f"`{mention.text}` is the same {what} as {others}"


def is_array(entry: InClass) -> bool:
    return any(kind.name == "array" for kind in entry.kinds)


def class_kinds(classes: Iterable[InClass]) -> str:
    """Return what an attribute is in some classes where it is no array."""
    found = dict.fromkeys(kind for entry in classes for kind in entry.kinds)
    return " or ".join(dict.fromkeys(ARTICLES.get(k.name, k.detail or k.name) for k in found))


def detail(mention: Mention) -> str:
    return next((k.detail for k in mention.kinds if k.detail), "container")


ARTICLES = {
    "int": "an int",
    "bool": "a bool",
    "number": "a number",
    "text": "a text",
    "none": "None",
}


def kinds_text(mention: Mention) -> str:
    return " or ".join(ARTICLES.get(kind.name, kind.name) for kind in mention.kinds)


def names(classes: Iterable[InClass]) -> str:
    return join(dict.fromkeys(entry.name for entry in classes), MANY)


def place_text(place: Place) -> str:
    return f"`{place.text}` ({short(place.path)}:{place.line})"


def places_text(mentions: Iterable[Mention]) -> str:
    lines = sorted({place.line for m in mentions for place in m.made})
    return f"line{'s' * (len(lines) > 1)} {join(map(str, lines))}"


def short(path: Path) -> str:
    return path.name


def join(texts: Iterable[str], limit: int = 4) -> str:
    """Return "a, b and c", cut behind `limit` parts."""
    parts = list(texts)
    if len(parts) > limit:
        parts = [*parts[: limit - 1], f"{len(parts) - limit + 1} more"]
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
