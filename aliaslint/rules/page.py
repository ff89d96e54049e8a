"""A rule's documentation page, as Markdown: what `aliaslint explain` shows."""

from __future__ import annotations

from aliaslint.rules import Rule


def page(rule: Rule) -> str:
    """Return the page of `rule`, with a final newline."""
    parts = [f"# {rule.code}: {rule.name}", _facts(rule)]
    for title, body in _sections(rule):
        parts += [f"## {title}", body]
    return "\n\n".join(parts) + "\n"


def _facts(rule: Rule) -> str:
    default = "on by default" if rule.default else f"off by default (`--extend-select {rule.code}`)"
    fix = "with a fix" if rule.fix else "without a fix"
    return f"Severity {rule.severity}, {default}, {fix}."


def _sections(rule: Rule) -> list[tuple[str, str]]:
    sections = [
        ("What it does", rule.what),
        ("Why is this bad?", rule.why),
        ("Known problems", rule.known_problems),
        ("Example", _code(rule, rule.example)),
        ("Use instead", _code(rule, rule.instead)),
        ("Fix safety", rule.fix),
    ]
    return [(title, body) for title, body in sections if body]


def _code(rule: Rule, text: str) -> str:
    if not text:
        return ""
    return f"```{rule.language}\n{text}\n```"
