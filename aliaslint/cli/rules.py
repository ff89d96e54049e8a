"""`aliaslint rules`."""

from __future__ import annotations

import json

import click

from aliaslint import __version__
from aliaslint.cli.options import text_or_json
from aliaslint.rules import Rule, rules


@click.command("rules")
@text_or_json("How to list them.")
def command(output_format: str) -> None:
    """List the rules: code, name, whether on by default, whether with a fix, and what each finds.

    `aliaslint explain CODE` shows the page of one.
    """
    if output_format == "json":
        document = {"version": __version__, "rules": [rule_object(rule) for rule in rules()]}
        click.echo(json.dumps(document, indent=2))
        return
    width = max(len(rule.name) for rule in rules())
    for rule in rules():
        default = "on " if rule.default else "off"
        fix = "fix" if rule.fix else "   "
        click.echo(f"{rule.code}  {rule.name:<{width}}  {default}  {fix}  {rule.summary}")


def rule_object(rule: Rule) -> dict[str, object]:
    return {
        "code": rule.code,
        "name": rule.name,
        "summary": rule.summary,
        "severity": rule.severity,
        "default": rule.default,
        "fixable": bool(rule.fix),
        "what": rule.what,
        "why": rule.why,
        "known_problems": rule.known_problems,
        "example": rule.example,
        "instead": rule.instead,
        "fix_safety": rule.fix,
    }
