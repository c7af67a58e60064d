"""Many independent calls in processes of their own: a failing one doesn't stop the others, Ctrl-C ends all.

A worker is a fresh process with one thread for numbers, so what it computes depends neither on what it did before nor
on how many there are. It dies with the process that started it, however that ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection
from typing import TypeVar

from trainmon_rules.debug import debugging
from trainmon_rules.errors import TrainmonError

T = TypeVar("T")
R = TypeVar("R")

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Failed:
    """A call that gave no result, and why, in a line."""

    why: str


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(call: Callable[[T], R], tasks: Sequence[T], jobs: int) -> Generator[tuple[int, R | Failed], None, None]:
    """Call a function for each task in worker processes; yield a task's number with what came of it, as they come.

    Where a worker dies (out of memory, say), the calls that were under way are made again, one by one, so that only
    the one that kills its worker fails.

    Parameters
    ----------
    call : callable
        A function of a module.
    tasks : sequence
        Its arguments; they and the results are pickled.
    jobs : int
        Workers at a time.
    """
    waiting, suspects = deque(range(len(tasks))), deque[int]()
    while waiting or suspects:
        alone = bool(suspects)
        queue, size = (suspects, 1) if alone else (waiting, jobs)
        running: dict[Future[R | Failed], int] = {}
        with _workers(min(size, len(queue))) as pool:
            try:
                while queue or running:
                    while queue and len(running) < size:
                        running[_submitted(pool, call, tasks[queue[0]])] = queue[0]
                        queue.popleft()
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        result = future.result()
                        yield running.pop(future), result
            except BrokenProcessPool:
                if not alone:
                    suspects.extend(sorted(running.values()))
                else:
                    for number in running.values():
                        yield number, Failed("its process died; was there enough memory?")


@contextmanager
def _workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Give a pool; end its processes at once if the body is left by an exception."""
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin)
    try:
        yield pool
    except BaseException:
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _submitted(pool: ProcessPoolExecutor, call: Callable[[T], R], task: T) -> Future[R | Failed]:
    """Hand a task to a pool; a worker that starts for it never hears Ctrl-C, which is ours to act on."""
    if not hasattr(signal, "pthread_sigmask"):
        return pool.submit(_guarded, call, task)
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(_guarded, call, task)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


# ---------------------------------------------------------------------- in a worker
def _begin() -> None:
    os.environ.update(dict.fromkeys(THREADS, "1"))
    warnings.simplefilter("ignore")
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _guarded(call: Callable[[T], R], task: T) -> R | Failed:
    """Return what the call returns, or why it failed."""
    try:
        return call(task)
    except TrainmonError as error:
        return Failed(str(error))
    except ModuleNotFoundError as error:
        return Failed(f"{error.name} is not installed: pip install 'trainmon[reference]'")
    except OSError as error:
        return Failed(f"{error.filename or 'a file'}: {(error.strerror or str(error)).lower()}")
    except Exception as error:  # noqa: BLE001 - the others go on; it is said in a line
        if debugging():
            traceback.print_exc(file=sys.stderr)
        return Failed(f"internal error: {type(error).__name__}: {error} (TRAINMON_DEBUG=1 shows the traceback)")
