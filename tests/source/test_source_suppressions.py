"""Suppression comments: which are ours, which lines they cover, what they hide."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from aliaslint.findings import Finding, Span
from aliaslint.source.suppressions import Suppression, judge, suppressions


def read(text: str) -> tuple[Suppression, ...]:
    text = dedent(text)
    return suppressions(text.encode(), text)


def found(code: str, line: int) -> Finding:
    names = {"AL001": "inplace-exposed-attribute", "AL101": "stale-capture"}
    name = names.get(code, "other")
    return Finding(code, name, "message", "error", Path("/a.py"), Span(line, 1, line, 2))


@pytest.mark.parametrize(
    ("comment", "kind", "names"),
    [
        ("# aliaslint: ignore[AL001]", "ignore", ["AL001"]),
        ("# aliaslint:ignore[AL001]", "ignore", ["AL001"]),
        ("#aliaslint: ignore[AL001, AL101]", "ignore", ["AL001", "AL101"]),
        ("# aliaslint: ignore[stale-capture] because it is tested", "ignore", ["stale-capture"]),
        ("# aliaslint: ignore", "ignore", []),
        ("# aliaslint: ignore[]", "ignore", []),
        ("# aliaslint: skip-file", "skip-file", []),
        ("# noqa: AL001", "noqa", ["AL001"]),
        ("# noqa:AL001,E501", "noqa", ["AL001", "E501"]),
        ("# NOQA: al001 E501", "noqa", ["al001", "E501"]),
        ("# type: ignore  # noqa: AL001", "noqa", ["AL001"]),
    ],
)
def test_reads_directives(comment: str, kind: str, names: list[str]) -> None:
    (read_one,) = read(f"x += 1  {comment}\n")
    assert (read_one.kind, [named.text for named in read_one.named]) == (kind, names)


@pytest.mark.parametrize(
    "line",
    [
        "x = 1  # noqa",
        "x = 1  # noqa: E501",
        "x = '# noqa: AL001'",
        "x = '''\n# aliaslint: skip-file\n'''",
        "x = 1  # about aliaslint: it ignores things",
    ],
)
def test_leaves_alone_what_is_not_ours(line: str) -> None:
    assert read(line) == ()


def test_spans_cover_comment_and_names() -> None:
    (comment,) = read("é = 1  # aliaslint: ignore[AL001, AL101] a reason  # type: int\n")
    assert comment.span == Span(1, 8, 1, 50)
    assert [named.span for named in comment.named] == [Span(1, 28, 1, 33), Span(1, 35, 1, 40)]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("a += 1  # noqa: AL001\n", (1, 1), id="its own line"),
        pytest.param("f(\n  a,  # noqa: AL001\n  b,\n)\n", (1, 4), id="the whole statement"),
        pytest.param("f(\n  a,\n)  # noqa: AL001\n", (1, 3), id="from the last line"),
        pytest.param("x = '''\n'''  # noqa: AL001\n", (1, 2), id="a string over lines"),
        pytest.param("a = b + \\\n  c  # noqa: AL001\n", (1, 2), id="a continuation"),
        pytest.param("if a:  # noqa: AL001\n  b\n", (1, 1), id="only the header of a block"),
        pytest.param("if a: b += 1; c += 1  # noqa: AL001\n", (1, 1), id="a one-line suite"),
        pytest.param("# noqa: AL001\na\n", (1, 1), id="noqa on its own line: nothing else"),
        pytest.param("# aliaslint: ignore[AL001]\n\na\n", (3, 3), id="ours: next statement"),
        pytest.param(
            "# aliaslint: ignore[AL001]\n# more\nf(\n)\n", (3, 4), id="ours: all of the next one"
        ),
        pytest.param("a\n# aliaslint: ignore[AL001]\n", (2, 2), id="ours: at the end"),
        pytest.param("a\r\nb  # noqa: AL001\r\n", (2, 2), id="CRLF"),
    ],
)
def test_covers_the_statement(text: str, lines: tuple[int, int]) -> None:
    (comment,) = suppressions(text.encode(), text)
    assert (comment.first, comment.last) == lines


@pytest.mark.parametrize("text", ["a  # noqa: AL001\n'''", "a  # noqa: AL001\n(", "if"])
def test_a_file_that_does_not_tokenise_does_not_raise(text: str) -> None:
    assert len(read(text)) == text.count("noqa")


@pytest.mark.parametrize(
    ("comment", "code", "hidden"),
    [
        ("# aliaslint: ignore[AL101]", "AL101", True),
        ("# aliaslint: ignore[al101]", "AL101", True),
        ("# aliaslint: ignore[stale-capture]", "AL101", True),
        ("# noqa: AL101", "AL101", True),
        ("# noqa: stale-capture", "AL101", False),
        ("# aliaslint: ignore[AL001]", "AL101", False),
        ("# aliaslint: ignore", "AL101", False),
        ("# noqa", "AL101", False),
    ],
)
def test_hides_what_it_names(comment: str, code: str, hidden: bool) -> None:
    judged = judge(read(f"x += 1  {comment}\n"), [found(code, 1)])
    assert (len(judged.hidden), len(judged.shown)) == (int(hidden), int(not hidden))


def test_other_lines_are_not_hidden() -> None:
    findings = [found("AL001", 1), found("AL001", 2)]
    judged = judge(read("x += 1\ny += 1  # noqa: AL001\n"), findings)
    assert (judged.shown, judged.hidden) == ((findings[0],), (findings[1],))


def test_skip_file_hides_everything() -> None:
    findings = [found("AL001", 1), found("AL101", 5)]
    judged = judge(read("# aliaslint: skip-file\n"), findings)
    assert (judged.shown, judged.hidden) == ((), tuple(findings))


def test_names_that_hid_something_are_known() -> None:
    comments = read("x += 1  # noqa: AL001, AL101\n")
    judged = judge(comments, [found("AL101", 1)])
    assert judged.used == {comments[0].named[1].span}
