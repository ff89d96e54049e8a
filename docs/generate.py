"""Writes docs/rules/ from the rules: `python docs/generate.py`. A test keeps it up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aliaslint.rules import Rule, rules
from aliaslint.rules.page import page

DOCS = Path(__file__).parent
FIXTURES = DOCS.parent / "fixtures"
NOTE = "<!-- Made by docs/generate.py from aliaslint/rules/; edit those. -->\n\n"


def pages() -> Iterator[tuple[Path, str]]:
    """Yield path and text of each generated page."""
    folder = DOCS / "rules"
    yield folder / "README.md", NOTE + overview()
    for rule in rules():
        yield folder / f"{rule.code}.md", NOTE + page(rule) + examples(rule)


def overview() -> str:
    """Return the table of all rules."""
    rows = [
        f"| [{r.code}]({r.code}.md) | {r.name} | {r.summary} | {r.severity} "
        f"| {'on' if r.default else 'off'} | {'yes' if r.fix else ''} |"
        for r in rules()
    ]
    head = ["| code | name | finds | severity | default | fix |", "|---|---|---|---|---|---|"]
    return "# Rules\n\n" + "\n".join([*head, *rows]) + "\n"


def examples(rule: Rule) -> str:
    """Return where more examples are: programs that are executed in the tests."""
    if not (FIXTURES / rule.code).is_dir():
        return ""
    place = f"[fixtures/{rule.code}](../../fixtures/{rule.code})"
    return f"\n## More examples\n\n{place} has programs that are and are not reported; all run.\n"


def main() -> None:
    for path, text in pages():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
