"""The worker process: reads tasks as JSON lines, runs each, answers with one JSON line each.

Where the backend survives a fork (the CPU on Linux) each task runs in a forked child, so that a
crash or a hang costs one task and nothing is imported twice. Elsewhere the parent starts one
worker a task (`--inline`).
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import selectors
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

POLL = 0.02
UNWRITTEN = 74  # The exit status of a task that had no place for its result.


def main() -> None:
    parent_ends_us()
    sys.stdout = sys.stderr  # What a model prints must not come between the answers.
    setup = json.loads(read_line())
    worker = Worker(setup)
    if setup["inline"]:
        task = json.loads(read_line())
        limit_memory(task["memory"])
        worker.run(task)
        answer(task, "", time.process_time())
        return
    worker.serve()


def read_line() -> bytes:
    """One line of input, byte by byte: what follows it must stay in the pipe."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            sys.exit(0)
        line += byte
    return line


class Worker:
    """Holds the imported tree; `setup` names the package, its folder, its text and semantics.

    `beside` are other packages whose caches it uses, which get the same semantics.
    """

    def __init__(self, setup: Mapping[str, Any]) -> None:
        from aliaslint.verify.worker import package
        from aliaslint.verify.worker.semantics import Force

        self.setup = setup
        self.folder = Path(setup["folder"])
        replaced = {Path(path): text.encode("latin-1") for path, text in setup["replaced"].items()}
        forces = setup["forces"]
        if forces is not None:
            forces = {Path(p): [Force(*item) for item in items] for p, items in forces.items()}
        package.install(setup["package"], self.folder, replaced, forces)
        for name, folder in setup["beside"].items():
            package.install(name, Path(folder), {}, None if forces is None else {})
        if setup["rope"]:
            put_rope(setup["rope"])
        self.running: dict[int, tuple[Mapping[str, Any], float]] = {}

    def run(self, task: Mapping[str, Any]) -> None:
        """Run one task in this process."""
        import mlx.core as mx

        from aliaslint.verify.worker import contract, preflight
        from aliaslint.verify.worker import task as tasks

        try:
            if task["device"]:
                mx.set_default_device(getattr(mx, task["device"]))
            if task["kind"] == "architecture":
                result = tasks.run_architecture(task, self.folder)
            elif task["kind"] == "contract":
                result = contract.run_contract(task, self.folder)
            else:
                result = preflight.run_preflight()
        except Exception as error:
            result = {"status": "error", "reason": tasks.describe(error, self.folder)}
        try:
            tasks.write_result(task, result)
        except OSError:  # A full disk takes no words either: the status has to say it.
            os._exit(UNWRITTEN)

    def serve(self) -> None:
        selector = selectors.DefaultSelector()
        selector.register(0, selectors.EVENT_READ)
        buffer = b""
        while True:
            if selector.select(POLL if self.running else None):
                data = os.read(0, 1 << 16)
                if not data:
                    break
                *lines, buffer = (buffer + data).split(b"\n")
                for line in lines:
                    self.start(json.loads(line))
            self.reap()
        for pid in self.running:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def start(self, task: Mapping[str, Any]) -> None:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                parent_ends_us()
                limit_memory(task["memory"])
                os.dup2(os.open(complaints(task), os.O_WRONLY | os.O_CREAT), 2)
                self.run(task)
                code = 0
            finally:
                os._exit(code)
        self.running[pid] = (task, time.monotonic() + task["timeout"])

    def reap(self) -> None:
        for pid, (task, deadline) in list(self.running.items()):
            done, status, usage = os.wait4(pid, os.WNOHANG)
            late = time.monotonic() > deadline
            if not done and late:
                os.kill(pid, signal.SIGKILL)
                _, status, usage = os.wait4(pid, 0)
            if done or late:
                del self.running[pid]
                problem = ending(status, late and not done, task["timeout"])
                words = last_words(complaints(task))
                answer(task, problem and problem + words, usage.ru_utime)


def put_rope(name: str) -> None:
    """Put a kernel of `rope_kernels` in the place of MLX's own."""
    import mlx.core as mx

    from aliaslint.verify import rope_kernels

    mx.fast.rope = getattr(rope_kernels, name)


def complaints(task: Mapping[str, Any]) -> str:
    """The file that takes the standard error of a task."""
    return f"{task['result']}.stderr"


def last_words(name: str) -> str:
    """The last line of a file, which is removed, behind a colon; "" if there is none."""
    path = Path(name)
    if not path.exists():
        return ""
    lines = path.read_text("utf-8", "replace").split("\n")
    path.unlink()
    return next((f": {line.strip()[:200]}" for line in reversed(lines) if line.strip()), "")


def ending(status: int, late: bool, timeout: float) -> str:
    """Why a child ended, or "" if it ended well."""
    if late:
        return f"took longer than {timeout:g} s"
    if os.WIFSIGNALED(status):
        return f"the process was ended by {signal.Signals(os.WTERMSIG(status)).name}"
    code = os.WEXITSTATUS(status)
    return said_by(code) if code else ""


def said_by(code: int) -> str:
    """What an exit status other than 0 means."""
    if code == UNWRITTEN:
        return "its result could not be written: the folder for temporary files may be full"
    return f"the process ended with status {code}"


def answer(task: Mapping[str, Any], problem: str, seconds: float) -> None:
    line = json.dumps({"id": task["id"], "problem": problem, "seconds": round(seconds, 3)})
    os.write(1, line.encode() + b"\n")


def limit_memory(gigabytes: float) -> None:
    """Make allocations beyond the limit fail in this process (Linux; elsewhere no limit)."""
    if sys.platform == "linux" and gigabytes:
        amount = int(gigabytes * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (amount, amount))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def parent_ends_us() -> None:
    """On Linux, have the kernel end this process when its parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


if __name__ == "__main__":
    main()
