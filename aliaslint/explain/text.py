"""An explanation as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aliaslint.explain.model import (
    Call,
    Change,
    Explanation,
    InClass,
    Kind,
    Mention,
    Place,
    Verdict,
)
from aliaslint.explain.reasons import ARTICLES, join
from aliaslint.report import relative
from aliaslint.report.text import Painter, printable

WIDTH = 28  # of the column of texts
MANY = 4
ROLES = {
    "capture": "takes the live array",
    "hand-over": "hands the array over",
    "call": "makes a call on the way",
    "mutation": "updates the array in place",
    "read": "reads the changed value",
}
KINDS = {
    **ARTICLES,
    "array": "an array",
    "unknown": "of unknown kind",
    "other": "something that holds no array",
}


def render(explanation: Explanation, color: bool = False) -> str:
    paint = Painter(color)
    place = f"{relative(explanation.path)}:{explanation.line}"
    lines = [f"{paint('path', place)}, in {explanation.unit}"]
    lines.append(f"    {paint('dim', f'{explanation.line} |')} {printable(explanation.source)}")
    lines += section("verdict", paint, verdict_lines(explanation, paint))
    lines += section("mentions", paint, mention_lines(explanation.mentions))
    lines += section("calls", paint, call_lines(explanation.calls))
    lines += section("rests on", paint, (f"{note}" for note in explanation.notes))
    return "\n".join(lines)


def section(title: str, paint: Painter, lines: Iterator[str]) -> list[str]:
    found = [f"  {line}" for line in lines]
    return ["", paint("role", title), *found] if found else []


# --- verdict


def verdict_lines(explanation: Explanation, paint: Painter) -> Iterator[str]:
    for verdict in explanation.verdicts:
        yield from finding_lines(verdict, paint)
    told = any("place" in v.roles for v in explanation.verdicts)
    for reason in explanation.reasons:
        yield f"not shown: {reason}" if told else f"silent: {reason}"


def finding_lines(verdict: Verdict, paint: Painter) -> Iterator[str]:
    finding = verdict.finding
    code = paint(finding.severity, finding.code)
    if "place" in verdict.roles:
        yield f"{code}{status_text(verdict)} {finding.message} [{finding.name}]"
        for step in finding.trace:
            place = f"{relative(step.path)}:{step.span.line}"
            yield f"  {step.role:<9} {place}  {step.message}".rstrip()
        if finding.repair and finding.repair.reason:
            yield f"  {finding.fixable} fix: {finding.repair.reason}"
        return
    what = join(ROLES[role] for role in verdict.roles if role in ROLES)
    place = f"{relative(finding.path)}:{finding.span.line}:{finding.span.column}"
    yield f"{what}: part of {code} at {place}{status_text(verdict)}"
    yield f"  {finding.message}"


def status_text(verdict: Verdict) -> str:
    """Say why `check` does not show a finding; empty where it does."""
    if verdict.comment is not None:
        return f" (suppressed by the comment at {where(verdict.comment)})"
    return " (not selected)" if verdict.status == "unselected" else ""


# --- mentions


def mention_lines(mentions: tuple[Mention, ...]) -> Iterator[str]:
    before = {mention.text for mention in mentions if not mention.bound}
    for mention in mentions:
        when = " (from here on)" if mention.bound else ""
        head, *rest = describe(mention, mention.bound and mention.text in before)
        yield f"{mention.text + when:<{WIDTH}} {head}"
        for line in rest:
            yield f"{'':<{WIDTH}} {line}"


def describe(mention: Mention, again: bool) -> Iterator[str]:
    """Yield what there is to say of a mention: its kinds first. Its classes are not told again."""
    kinds = " or ".join(dict.fromkeys(kind_text(kind) for kind in mention.kinds))
    told = [kinds]
    if mention.parameter:
        told.append("a parameter")
    if mention.captured:
        told.append(f"taken live on {lines_of(mention.captured)}")
    elif mention.made and mention.has("array"):
        told.append(f"new, made on {lines_of(mention.made)}")
    yield ", ".join(told)
    if mention.same_as:
        yield f"the same as {join((f'`{text}`' for text in mention.same_as), MANY)}"
    if again:
        return
    if mention.classes:
        yield "in the cache classes it is" if mention.guessed else "by class it is"
    for entry in in_groups(mention.classes):
        yield f"  {entry}"
    for change in mention.stale:
        yield f"stale: {change_text(change)}"


def in_groups(classes: tuple[InClass, ...]) -> Iterator[str]:
    """One line for each class with an array, one for all classes of every other kind."""
    rest: dict[str, list[str]] = {}
    for entry in classes:
        kinds = " or ".join(dict.fromkeys(kind_text(kind) for kind in entry.kinds))
        if any(kind.name == "array" for kind in entry.kinds):
            yield f"{kinds} in {entry.name} ({where(entry.place)}){update_text(entry)}"
        else:
            rest.setdefault(kinds, []).append(f"{entry.name} ({where(entry.place)})")
    for kinds, names in rest.items():
        yield f"{kinds} in {join(names, MANY)}"


def update_text(entry: InClass) -> str:
    parts = []
    for how, words in (("in-place", "updated in place"), ("rebinds", "bound anew")):
        places = [update.place for update in entry.updates if update.how == how]
        if places:
            parts.append(f"{words} at {wheres(places)}")
    return f": {'; '.join(parts)}" if parts else ": no method updates it"


def kind_text(kind: Kind) -> str:
    match kind.name:
        case "object":
            return f"an object of {kind.detail}{at(kind.place)}"
        case "container":
            return f"a {kind.detail}"
        case "function" | "class" | "module":
            return f"the {kind.name} {kind.detail}{at(kind.place)}"
        case "other" if kind.detail:
            return f"`{kind.detail}`"
        case name:
            return KINDS.get(name, name)


def change_text(change: Change) -> str:
    """The update, and the calls to it from the outermost inwards."""
    via = "".join(f", through `{place.text}` ({where(place)})" for place in change.through[:MANY])
    may = "" if change.certain else " may have changed it"
    return f"`{change.place.text}` ({where(change.place)}){via}{may}"


# --- calls


def call_lines(calls: tuple[Call, ...]) -> Iterator[str]:
    for call in calls:
        head, *rest = call_parts(call)
        yield f"{call.text:<{WIDTH}} {head}"
        for line in rest:
            yield f"{'':<{WIDTH}} {line}"


def call_parts(call: Call) -> Iterator[str]:
    callees = [f"{callee.name}{at(callee.place)}" for callee in call.callees]
    effect = f": {call.effect}" if call.effect else ""
    match call.resolution:
        case "unresolved":
            outside = f" ({call.outside}, outside of the program)" if call.outside else ""
            yield f"did not resolve{outside}{effect}"
        case "unseen":
            yield call.effect
        case "library":
            yield f"{call.outside or 'outside of the program'}{effect}"
        case "protocol":
            yield f"the cache protocol, on an object of unknown class{effect}"
            yield from (f"may be {callee}" for callee in callees)
        case "class":
            yield f"makes an object: {join(callees, MANY)}{effect}"
        case _:
            yield f"{join(callees, MANY)}{effect}"
    if call.updates:
        shown = [f"`{u.place.text}` ({where(u.place)})" for u in call.updates]
        yield f"updates arrays in place: {join(shown, MANY)}"


# --- places


def lines_of(places: tuple[Place, ...]) -> str:
    lines = list(dict.fromkeys(str(place.line) for place in places))
    return f"line{'s' * (len(lines) > 1)} {join(lines, MANY)}"


def where(place: Place) -> str:
    return f"{place.path.name}:{place.line}"


def wheres(places: Iterable[Place]) -> str:
    """Return `a.py:3, 5 and 7`: the name of a file once."""
    files: dict[str, list[str]] = {}
    for place in places:
        files.setdefault(place.path.name, []).append(str(place.line))
    return "; ".join(f"{name}:{join(lines, 2 * MANY)}" for name, lines in files.items())


def at(place: Place | None) -> str:
    return f" ({where(place)})" if place is not None else ""
