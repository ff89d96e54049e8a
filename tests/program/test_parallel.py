"""Units are interpreted by several processes, and what they find does not tell by how many."""

from __future__ import annotations

import os
import pickle
import signal
import time
from pathlib import Path

import pytest

from aliaslint.analysis import AnalysisOptions, analyse
from aliaslint.flow import transfer
from aliaslint.flow.context import Events
from aliaslint.flow.values import Refs
from aliaslint.parallel import MAX_JOBS, processors, spread
from aliaslint.source.files import SourceFile, read

FIXTURES = Path(__file__).parents[2] / "fixtures"


def flagged() -> list[SourceFile]:
    files = [read(path) for path in sorted(FIXTURES.glob("AL[12]*/flag/*.py"))]
    return [source for source in files if isinstance(source, SourceFile)]


@pytest.mark.parametrize("jobs", [2, 5])
def test_any_number_of_processes_finds_the_same(jobs: int) -> None:
    files = flagged()
    assert len(files) > 50
    alone = analyse(files, AnalysisOptions())
    assert len(alone.findings) > 50
    assert analyse(files, AnalysisOptions(), jobs=jobs) == alone


def test_the_order_of_files_changes_no_finding() -> None:
    files = flagged()
    there = analyse(files, AnalysisOptions()).findings
    back = analyse(files[::-1], AnalysisOptions()).findings
    assert [(f.code, f.path, f.span) for f in back] == [(f.code, f.path, f.span) for f in there]


def test_processors_are_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(3)), raising=False)
    assert (processors(), processors(most=2), processors(most=None)) == (3, 2, 3)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    assert (processors(), processors(most=None)) == (MAX_JOBS, 64)


def test_processors_where_nothing_tells_which_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert (processors(), processors(most=None)) == (MAX_JOBS, 64)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert processors(most=None) == 1


@pytest.mark.parametrize("jobs", [1, 2, 7, 100])
def test_answers_come_in_order(jobs: int) -> None:
    assert spread(lambda n: b"%d" % n, [3, 1, 2] * 9, jobs) == [b"%d" % n for n in range(27)]


def test_large_answers_come_whole() -> None:
    assert [len(a) for a in spread(lambda n: b"x" * 1_000_000 * n, [1] * 5, 3)] == [
        1_000_000 * n for n in range(5)
    ]


def test_what_a_process_dies_of_is_done_again() -> None:
    here = os.getpid()

    def work(number: int) -> bytes:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return b"%d" % number

    assert spread(work, [1] * 6, 3) == [b"%d" % n for n in range(6)]


def test_an_exception_reaches_the_caller() -> None:
    def work(number: int) -> bytes:
        if number == 3:
            raise RecursionError("too deep")
        return b""

    with pytest.raises(RecursionError, match="too deep"):
        spread(work, [1] * 6, 3)


def test_no_process_outlives_an_interruption() -> None:
    here = os.getpid()

    def work(number: int) -> bytes:
        if os.getpid() == here:
            raise KeyboardInterrupt
        signal.pause()
        return b""

    with pytest.raises(KeyboardInterrupt):
        spread(work, [1] * 6, 3)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_bytes_of_another_making_are_refused() -> None:
    with pytest.raises(pickle.UnpicklingError, match="no part of events"):
        transfer.load(pickle.dumps(os.system), Refs())
    with pytest.raises(pickle.UnpicklingError):
        transfer.load(transfer.dump(Events())[:-5], Refs())


def test_several_processes_take_part() -> None:
    def work(number: int) -> bytes:
        time.sleep(0.05)
        return b"%d" % os.getpid()

    assert len(set(spread(work, [1] * 12, 3))) == 3
