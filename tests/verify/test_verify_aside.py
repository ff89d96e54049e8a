"""Work beside the main thread: its outcome, its error, and how deep it may recurse."""

from __future__ import annotations

import threading

import pytest

from aliaslint.verify.aside import Aside


def test_outcome() -> None:
    assert Aside(lambda: 3).result() == 3


def test_error_is_raised_where_the_outcome_is_asked_for() -> None:
    def work() -> None:
        raise ValueError("why")

    with pytest.raises(ValueError, match="why"):
        Aside(work).result()


def test_work_is_done_when_it_has_ended() -> None:
    gate = threading.Event()
    work = Aside(gate.wait)
    assert not work.done
    gate.set()
    assert (work.result(), work.done) == (True, True)


def test_interpreter_ends_without_waiting() -> None:
    gate = threading.Event()
    work = Aside(gate.wait)
    assert work._thread.daemon
    gate.set()
    work.result()


def test_stack_of_other_threads_stays_as_it_was() -> None:
    before = threading.stack_size()
    Aside(lambda: None).result()
    assert threading.stack_size() == before
