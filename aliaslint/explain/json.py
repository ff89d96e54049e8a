"""An explanation as JSON: `docs/schema/explain.json`. A public interface: additions only."""

from __future__ import annotations

from typing import Any

from aliaslint import __version__
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
from aliaslint.report import relative
from aliaslint.report.json import finding_object


def document(explanation: Explanation) -> dict[str, Any]:
    """Return the explanation as the object that is printed."""
    return {
        "version": __version__,
        "path": relative(explanation.path),
        "line": explanation.line,
        "source": explanation.source,
        "unit": explanation.unit,
        "reached": explanation.reached,
        "reported": explanation.reported,
        "findings": [_verdict(verdict) for verdict in explanation.verdicts],
        "reasons": list(explanation.reasons),
        "mentions": [_mention(mention) for mention in explanation.mentions],
        "calls": [_call(call) for call in explanation.calls],
        "notes": list(explanation.notes),
    }


def _place(place: Place) -> dict[str, Any]:
    return {"path": relative(place.path), "line": place.line, "text": place.text}


def _optional(place: Place | None) -> dict[str, Any] | None:
    return _place(place) if place is not None else None


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        **finding_object(verdict.finding),
        "roles": list(verdict.roles),
        "status": verdict.status,
        "comment": _optional(verdict.comment),
    }


def _kind(kind: Kind) -> dict[str, Any]:
    return {"name": kind.name, "detail": kind.detail, "place": _optional(kind.place)}


def _in_class(entry: InClass) -> dict[str, Any]:
    return {
        "name": entry.name,
        "place": _place(entry.place),
        "kinds": [_kind(kind) for kind in entry.kinds],
        "updates": [{"how": u.how, "place": _place(u.place)} for u in entry.updates],
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "place": _place(change.place),
        "through": [_place(place) for place in change.through],
        "certain": change.certain,
    }


def _mention(mention: Mention) -> dict[str, Any]:
    return {
        "text": mention.text,
        "column": mention.column,
        "bound": mention.bound,
        "kinds": [_kind(kind) for kind in mention.kinds],
        "same_as": list(mention.same_as),
        "made": [_place(place) for place in mention.made],
        "captured": [_place(place) for place in mention.captured],
        "parameter": mention.parameter,
        "classes": [_in_class(entry) for entry in mention.classes],
        "guessed": mention.guessed,
        "stale": [_change(change) for change in mention.stale],
    }


def _call(call: Call) -> dict[str, Any]:
    return {
        "text": call.text,
        "column": call.column,
        "resolution": call.resolution,
        "callees": [{"name": c.name, "place": _optional(c.place)} for c in call.callees],
        "outside": call.outside,
        "effect": call.effect,
        "updates": [_change(change) for change in call.updates],
    }
