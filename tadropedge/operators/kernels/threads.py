"""Threads for compiled kernels: a pool of our own, since numba's do not survive a fork, or calls from two threads.

Kernels release the interpreter's lock, so threads of Python are enough. The calling thread takes pieces of the work as
any other does, so that nothing waits for a thread that another call keeps busy. Whoever has nothing to do sleeps: a
machine that others use, too, is not slowed down by waiting.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from queue import SimpleQueue
from threading import Lock, Thread, local
from typing import Any

import torch

ENOUGH = 2**18  # multiply-adds that are worth a thread, which takes some 40 µs to wake up
PIECES = 4  # of work for each thread: whoever is done early takes another


def run(kernel: Callable[..., None], size: int, work: float, *arguments: Any) -> None:
    """``kernel(begin, end, *arguments)`` for all of ``range(size)``, in pieces; ``work`` counts multiply-adds."""
    threads = min(getattr(_here, "threads", 0) or torch.get_num_threads(), int(work) // ENOUGH, size)
    if threads <= 1:
        kernel(0, size, *arguments)
        return
    job = _Job(kernel, size, -(-size // (PIECES * threads)), arguments)
    _pool.help(job, threads - 1)
    job.work()
    job.wait()


@contextmanager
def for_kernels() -> Iterator[None]:
    """Within the block torch itself computes on one thread, and kernels on as many as torch had.

    Torch's threads spin while they wait, which costs more than they gain where signals are small.
    """
    before = torch.get_num_threads()
    outside, _here.threads = getattr(_here, "threads", 0), getattr(_here, "threads", 0) or before
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _here.threads = outside


_here = local()  # each thread of Python has a number of threads of its own


class _Job:
    """A kernel's work, from which threads take pieces."""

    def __init__(self, kernel: Callable[..., None], size: int, step: int, arguments: tuple[Any, ...]) -> None:
        self.kernel, self.size, self.step, self.arguments = kernel, size, step, arguments
        self.begins, self.done = count(0, step), count(1)  # one step of count() is atomic
        self.pieces = -(-size // step)
        self.error: BaseException | None = None
        self.ended = Lock()
        self.ended.acquire()

    def work(self) -> None:
        """Take pieces until there are none; whoever does the last one says so."""
        for begin in self.begins:
            if begin >= self.size:
                return
            try:
                self.kernel(begin, min(begin + self.step, self.size), *self.arguments)
            except BaseException as error:  # raised again where the call came from
                self.error = error
            if next(self.done) == self.pieces:
                self.ended.release()

    def wait(self) -> None:
        """Wait for the pieces that others are doing."""
        with self.ended:
            if self.error is not None:
                raise self.error


class _Pool:
    """Threads that wait for jobs; they are started when they are first needed."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[_Job] = SimpleQueue()
        self.size, self.lock = 0, Lock()

    def help(self, job: _Job, threads: int) -> None:
        """Let so many threads take pieces of a job."""
        if self.size < threads:
            with self.lock:
                while self.size < threads:
                    Thread(target=self._serve, name="tadropedge", daemon=True).start()
                    self.size += 1
        for _ in range(threads):
            self.jobs.put(job)

    def _serve(self) -> None:
        while True:
            job = self.jobs.get()
            job.work()
            del job  # and with it the tensors that it holds


_pool = _Pool()


def _forget() -> None:
    """A forked process has none of the threads of its parent."""
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
