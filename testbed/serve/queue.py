"""The queue: one job at a time, as a child process, in the order of the requests. It is bounded, and survives a restart."""

import os
import shutil
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from record.errors import DiskFullError, RunFileError
from record.folder_lock import lock
from testbed.campaigns.progress_json import event_of
from testbed.errors import ManetError, shortened
from testbed.runs.child import RunChild
from testbed.serve.events import ENDED, Events
from testbed.serve.job import Job, State, now
from testbed.serve.request import Plan

MAX_QUEUED = 16
STOP_DEADLINE_S = 60.0  # above the time in which a run ends in order (testbed/runs/isolation.py)
MAX_ERROR = 1000  # characters
IN_USE = "another `manet serve` uses it; give another folder, or end that one"


class Child(Protocol):
    """A started run, as testbed.runs.child.RunChild."""

    def wait(self, timeout_s: float | None = None) -> int | None:
        """The exit status at its end."""

    def stop(self) -> None:
        """Ask it to end in order."""

    def last_lines(self, count: int = 5) -> list[str]:
        """The last lines that it printed."""


Start = Callable[[Job, Callable[[str], None]], Child]


class QueueFull(ManetError):
    """No further request is taken for now."""


class NoRoom(ManetError):
    """The folder takes no further job: its disk is full, or it cannot be written."""


class NoJob(ManetError):
    """There is no job of this number."""


class WrongState(ManetError):
    """The job is in a state in which this is impossible."""


def start_child(job: Job, on_line: Callable[[str], None]) -> Child:
    """`manet run` in a process of its own."""
    return RunChild(job.argv(), job.folder, on_line)


class Queue:
    """The jobs of a folder. Its methods are safe from any thread; `close` ends the run under way."""

    def __init__(self, folder: Path, start: Start = start_child, max_queued: int = MAX_QUEUED) -> None:
        """Raises UsageError if the folder cannot be used, or another server uses it."""
        self.folder, self._start, self._max_queued = folder.resolve(), start, max_queued
        self._lock_descriptor = lock(self.folder, IN_USE, "give another folder")
        self._changed = threading.Condition()
        self.over = threading.Event()
        self._waiting: list[Job] = []
        self._under_way: Job | None = None
        self._child: Child | None = None  # of the job under way, once it has started
        self._stopped: set[str] = set()
        self.progress: dict[str, dict[str, Any]] = {}  # of the job that runs: the last stage of each run
        self._jobs = {job.id: job for job in _recorded(self.folder)}
        self._events = {job.id: Events(job.folder / "events.jsonl") for job in self._jobs.values()}
        for job in self._jobs.values():
            if job.is_open:
                self._end(job, "interrupted", error="the server ended before the run did")
        self._thread = threading.Thread(target=self._work, name="queue", daemon=True)
        self._thread.start()

    def submit(self, plan: Plan) -> Job:
        """Accept a run. Raises QueueFull and NoRoom."""
        with self._changed:
            if len(self._waiting) >= self._max_queued or self.over.is_set():
                raise QueueFull(f"{len(self._waiting)} runs wait already; try again when one has ended, or remove one")
            try:
                job, events = self._entered(self._new_folder(), plan)
            except (OSError, DiskFullError) as problem:
                raise NoRoom(f"the run cannot be recorded: {_words(problem)}") from None
            self._jobs[job.id], self._events[job.id] = job, events
            self._waiting.append(job)
            self._changed.notify()
            return job

    def _entered(self, folder: Path, plan: Plan) -> tuple[Job, Events]:
        """The job in its new folder, which is removed again if it cannot be written."""
        job = Job(folder, plan.name, plan.request, plan.runs, plan.target, plan.options, plan.text is not None, queued=now())
        try:
            if plan.text is not None:
                (folder / plan.target).write_text(plan.text)
            job.save()
            events = Events(folder / "events.jsonl")
            events.append("queued", place=len(self._waiting) + (self._under_way is not None), runs=job.runs)
        except (OSError, DiskFullError):
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return job, events

    def stop(self, number: str) -> Job:
        """Take a waiting job out of the queue, or ask the running one to end in order; results are kept. Raises NoJob and
        WrongState."""
        with self._changed:
            job = self.job(number)
            if not job.is_open:
                raise WrongState(f"run {job.id}: is {job.state} already; its results are kept")
            self._stopped.add(job.id)
            if job in self._waiting:
                self._waiting.remove(job)
                self._end(job, "stopped")
            elif self._child is not None and self._under_way is job:
                self._child.stop()
            return job

    def job(self, number: str) -> Job:
        """The job of this number. Raises NoJob."""
        job = self._jobs.get(number)
        if job is None:
            raise NoJob(f"run {shortened(number)}: there is no such run; GET /api/runs lists them")
        return job

    def jobs(self, before: int | None, limit: int) -> list[Job]:
        """The newest `limit` jobs, with numbers below `before`."""
        numbers = sorted((number for number in map(int, self._jobs) if before is None or number < before), reverse=True)
        return [self._jobs[str(number)] for number in numbers[:limit]]

    def events(self, number: str) -> Events:
        """The events of a job. Raises NoJob."""
        return self._events[self.job(number).id]

    def end_streams(self) -> None:
        """Let all streams of events end, since the server does. Safe in a signal handler's thread."""
        self.over.set()
        for events in list(self._events.values()):
            events.wake()

    def close(self) -> None:
        """End the run under way in order and wait for it; it and those that wait are `interrupted`."""
        self.end_streams()
        with self._changed:
            if self._child is not None:
                self._child.stop()
            self._changed.notify()
        self._thread.join(STOP_DEADLINE_S)
        with self._changed:
            for job in self._waiting:
                self._end(job, "interrupted", error="the server ended before the run began")
            self._waiting.clear()
        os.close(self._lock_descriptor)

    # --- the thread of the queue ----------------------------------------------------------------------------------

    def _work(self) -> None:
        while (job := self._next()) is not None:
            self._carry_out(job)

    def _next(self) -> Job | None:
        """The next job; None at the end of the server."""
        with self._changed:
            while not self._waiting and not self.over.is_set():
                self._changed.wait()
            if self.over.is_set():
                return None
            job = self._under_way = self._waiting.pop(0)
            job.state, job.started = "running", now()
            self.progress = {}
            return job

    def _carry_out(self, job: Job) -> None:
        try:
            with self._changed:
                job.save()
                self._events[job.id].append("started")
            child = self._start(job, lambda line: self._on_line(job, line))
        except (ManetError, OSError, DiskFullError) as problem:
            with self._changed:
                self._under_way = None
                self._end(job, "failed", error=_words(problem))
            return
        with self._changed:
            self._child = child
            if job.id in self._stopped or self.over.is_set():  # while it started
                child.stop()
        status = child.wait()
        with self._changed:
            self._under_way = self._child = None
            self._record(job, child, status)

    def _record(self, job: Job, child: Child, status: int | None) -> None:
        job.exit_status = status
        lines = child.last_lines(1)
        error = shortened(lines[0], MAX_ERROR) if status != 0 and lines else None
        if job.id in self._stopped:
            self._end(job, "stopped")
        elif self.over.is_set():
            self._end(job, "interrupted", error="the server ended before the run did")
        elif (job.folder / "stdout").exists() and (job.folder / "stdout").stat().st_size:
            self._end(job, "complete", error=error)
        else:
            self._end(job, "failed", error=error or f"manet run ended with status {status}")

    def _on_line(self, job: Job, line: str) -> None:
        """A line of the child: progress becomes an event, other text a note."""
        message = event_of(line) or {"event": "note", "text": shortened(line, MAX_ERROR)}
        if message["event"] == "stage":
            self.progress = {**self.progress, message["run"]: message}
        elif message["event"] == "run":
            self.progress = {run: stage for run, stage in self.progress.items() if run != message["run"]}
        with suppress(OSError):  # a full disk: the run says so itself
            self._events[job.id].append(**message)

    def _end(self, job: Job, state: State, error: str | None = None) -> None:
        job.state, job.ended, job.error = state, now(), error
        verdicts = (job.answer() or {}).get("verdicts")
        try:
            job.save()
            self._events[job.id].append(ENDED, state=state, exit_status=job.exit_status, error=error, verdicts=verdicts)
        except (OSError, DiskFullError) as problem:  # the queue goes on; after a restart the job is `interrupted`
            print(f"manet serve: run {job.id}: {_words(problem)}", file=sys.stderr, flush=True)
            self._events[job.id].wake()

    def _new_folder(self) -> Path:
        number = max(map(int, self._jobs), default=0)
        while True:
            number += 1
            with suppress(FileExistsError):
                (self.folder / str(number)).mkdir()
                return self.folder / str(number)


def _recorded(folder: Path) -> list[Job]:
    """The jobs in the folder; a line for each that cannot be read, which is left out and left alone."""
    jobs = []
    for path in sorted(folder.iterdir()):
        try:
            job = Job.load(path)
        except RunFileError as problem:
            print(f"manet serve: {problem}; left out: correct the file, or move the folder away", file=sys.stderr, flush=True)
            continue
        if job is not None:
            jobs.append(job)
    return jobs


def _words(problem: Exception) -> str:
    """One line for an error; of the system: the file and why."""
    if isinstance(problem, OSError) and problem.strerror:
        return f"{problem.filename}: {problem.strerror}" if problem.filename else problem.strerror
    return str(problem)
