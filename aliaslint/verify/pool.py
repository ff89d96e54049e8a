"""Worker processes, one a tree: hands out tasks, gathers answers, leaves nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from aliaslint.verify.worker.main import last_words, said_by

SOURCE_ROOT = Path(__file__).resolve().parents[2]
GRACE = 20.0
PATIENCE = 2.0
NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of one task: `problem` is "" where it ended well; CPU seconds that it took."""

    task: Mapping[str, Any]
    problem: str
    seconds: float


@dataclass
class _Worker:
    """One process; `tree` names what it has imported, `setup` is its first line of input."""

    tree: str
    setup: Mapping[str, Any]
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    open_tasks: dict[int, tuple[Mapping[str, Any], float]] = field(default_factory=dict)
    buffer: bytes = b""
    complaints: Path | None = None

    def start(self, folder: Path) -> subprocess.Popen[bytes]:
        self.complaints = folder / f"{id(self)}.stderr"
        with self.complaints.open("wb") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "aliaslint.verify.worker.main"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                env={**self.environment, **self.setup.get("environment", {})},
                cwd=folder,
                start_new_session=True,
            )
        self.buffer = b""
        self.send(self.setup)
        return self.process

    def send(self, line: Mapping[str, Any]) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(line).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # The process has ended; reading from it says so, and why is in its answer.

    def _endings(self) -> Iterator[Callable[[], object]]:
        """First the gentle way, in which the process ends and reaps its own children."""
        process = self.process
        assert process is not None
        if process.stdin is not None:
            yield process.stdin.close
        yield lambda: process.wait(PATIENCE)
        yield lambda: os.killpg(process.pid, signal.SIGKILL)

    def kill(self) -> None:
        if self.process is None:
            return
        for end in self._endings():
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                end()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None


class Pool:
    """Runs tasks in the workers of several trees, at most `jobs` at a time over all of them.

    With `inline` each task gets a process of its own; without, each tree has one process that
    forks a child a task. `folder` is where the processes stand. A tree's setup may add to their
    environment, under "environment".
    """

    def __init__(
        self,
        setups: Mapping[str, Mapping[str, Any]],
        jobs: int,
        environment: Mapping[str, str],
        folder: Path,
        inline: bool,
    ) -> None:
        self.setups = setups
        self.jobs = max(1, jobs)
        self.environment = environment
        self.folder = folder
        self.inline = inline
        self.live: list[_Worker] = []
        self.selector = selectors.DefaultSelector()

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self.live:
            worker.kill()
        self.selector.close()

    def run(
        self, tasks: Sequence[Mapping[str, Any]], wanted: Callable[[Mapping[str, Any]], bool]
    ) -> Iterator[Answer]:
        """Yield the answers as they come; every task gets exactly one.

        A task that is no longer wanted when its turn comes is answered without being run.
        """
        waiting = deque(tasks)
        running = 0
        while waiting or running:
            while waiting and running < self.jobs:
                task = waiting.popleft()
                if not wanted(task):
                    yield Answer(task, NOT_RUN, 0.0)
                    continue
                self._give(task)
                running += 1
            if not running:
                continue
            for answer in self._answers():
                running -= 1
                yield answer

    def _give(self, task: Mapping[str, Any]) -> None:
        worker = None
        if not self.inline:
            worker = next((w for w in self.live if w.tree == task["tree"]), None)
        worker = worker or self._start(task["tree"])
        grace = 0.0 if self.inline else GRACE
        worker.open_tasks[task["id"]] = (task, time.monotonic() + task["timeout"] + grace)
        worker.send(task)

    def _start(self, tree: str) -> _Worker:
        setup = {**self.setups[tree], "inline": self.inline}
        worker = _Worker(tree, setup, self.environment)
        process = worker.start(self.folder)
        assert process.stdout is not None
        self.selector.register(process.stdout, selectors.EVENT_READ, worker)
        self.live.append(worker)
        return worker

    def _answers(self) -> list[Answer]:
        found: list[Answer] = []
        for key, _ in self.selector.select(0.5):
            worker: _Worker = key.data
            data = os.read(key.fd, 1 << 16)
            if not data:
                found += self._end(worker, "")
                continue
            *lines, worker.buffer = (worker.buffer + data).split(b"\n")
            found += [_answer(worker, json.loads(line)) for line in lines]
            if self.inline and not worker.open_tasks:
                self._end(worker, "")
        for worker in list(self.live):
            for task, end in worker.open_tasks.values():
                if time.monotonic() > end:
                    found += self._end(worker, f"took longer than {task['timeout']:g} s")
                    break
        return found

    def _end(self, worker: _Worker, problem: str) -> list[Answer]:
        """End a worker; its open tasks are answered, and the next task starts another."""
        assert worker.process is not None
        assert worker.process.stdout is not None
        self.selector.unregister(worker.process.stdout)
        self.live.remove(worker)
        problem = problem or _ending(worker.process) + last_words(str(worker.complaints))
        worker.kill()
        answers = [Answer(task, problem, 0.0) for task, _ in worker.open_tasks.values()]
        worker.open_tasks.clear()
        return answers


def _ending(process: subprocess.Popen[bytes]) -> str:
    """How a process ended that has closed its output."""
    try:
        code = process.wait(5)
    except subprocess.TimeoutExpired:
        return "the process closed its output"
    if code < 0:
        return f"the process was ended by {signal.Signals(-code).name}"
    return said_by(code)


def child_environment(compile_on: bool) -> dict[str, str]:
    """The environment of workers: exact float32 products, and no compilation in the sweep."""
    environment = dict(os.environ)
    paths = [str(SOURCE_ROOT), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    environment |= {"MLX_ENABLE_TF32": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("MLX_DISABLE_COMPILE", None)
    return environment if compile_on else environment | {"MLX_DISABLE_COMPILE": "1"}


def _answer(worker: _Worker, line: Mapping[str, Any]) -> Answer:
    task, _ = worker.open_tasks.pop(line["id"])
    return Answer(task, line["problem"], line["seconds"])
