"""pool: calls in processes of their own; one that fails, or kills its process, stops no other."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trainmon.pool import Failed, cores, spread
from trainmon_rules.errors import BadConfig

ROOT = Path(__file__).parents[2]


def square(number):
    if number == 3:
        raise BadConfig("three is refused")
    if number == 4:
        raise FileNotFoundError(2, "No such file or directory", "four")
    if number == 5:
        raise ZeroDivisionError("five")
    if number == 6:
        import a_module_that_nobody_has  # noqa: F401, PLC0415
    if number == 7:
        os._exit(9)
    return number * number


def hold(path):
    """Open a pipe that somebody reads, say so, and never end; without a path end at once."""
    if not path:
        return
    with Path(path).open("wb", buffering=0) as pipe:
        pipe.write(b"!")
        signal.pause()


def deaf(_):
    """Tell whether Ctrl-C is held back in this process."""
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def failed_of(found):
    return {number: result.why for number, result in found.items() if isinstance(result, Failed)}


def test_every_call_comes_back_and_a_failure_is_a_line():
    found = dict(spread(square, range(7), 2))
    assert sorted(found) == list(range(7))
    assert [found[n] for n in range(3)] == [0, 1, 4]
    assert failed_of(found) == {
        3: "three is refused",
        4: "four: no such file or directory",
        5: "internal error: ZeroDivisionError: five (TRAINMON_DEBUG=1 shows the traceback)",
        6: "a_module_that_nobody_has is not installed: pip install 'trainmon[reference]'",
    }


def test_a_process_that_dies_takes_only_its_own_call():
    found = dict(spread(square, [1, 7, 2, 7, 1, 2], 2))
    assert failed_of(found) == dict.fromkeys((1, 3), "its process died; was there enough memory?")
    assert [found[n] for n in (0, 2, 4, 5)] == [1, 4, 1, 4]


def test_workers_do_not_hear_ctrl_c_and_their_caller_does():
    assert dict(spread(deaf, [0, 1], 2)) == {0: True, 1: True}
    assert not deaf(None)


def test_nothing_to_do_is_done():
    assert list(spread(square, [], 4)) == []
    assert cores() >= 1


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_the_process_that_started_them(tmp_path, how):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    imports = "from trainmon.pool import spread; from tests.monitor.test_pool import hold"
    code = f"{imports}; list(spread(hold, ['', {str(fifo)!r}], 2))"
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        with fifo.open("rb", buffering=0) as pipe:
            assert pipe.read(1) == b"!"
            os.killpg(process.pid, how) if how == signal.SIGINT else process.send_signal(how)
            assert select.select([pipe], [], [], 60)[0], "the worker lives on"
            assert pipe.read(1) == b""
        said = process.communicate(timeout=60)[1].decode()
    assert said.count("Traceback") == (1 if how == signal.SIGINT else 0)  # the caller's own, none of the worker's
    assert process.returncode == -how
