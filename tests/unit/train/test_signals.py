"""Each in a process of its own: signals belong to processes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

START = """
import os, signal, sys, threading, time
from spottrain.train.clock import SystemClock
from spottrain.train.signals import StopSignal

def term(pid=None):
    os.kill(pid or os.getpid(), signal.SIGTERM)

def eventually(probe):
    deadline = time.monotonic() + 5
    while not probe() and time.monotonic() < deadline:
        time.sleep(0.01)
    return probe()

times = []
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", START + program],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def test_sigterm_is_seen_while_the_main_thread_is_stuck_in_native_code():
    """A mutex locked twice never returns, and no signal interrupts it: no Python handler will ever run."""
    done = run("""
import ctypes
stop = StopSignal(SystemClock(), lambda at: (print("seen", flush=True), os._exit(7)))
stop.install()
threading.Timer(0.2, term).start()
mutex = ctypes.create_string_buffer(64)
libc = ctypes.CDLL(None)
libc.pthread_mutex_lock(mutex)
libc.pthread_mutex_lock(mutex)
""")
    assert (done.stdout, done.returncode) == ("seen\n", 7)


def test_a_handler_that_was_there_before_is_still_called():
    done = run("""
signal.signal(signal.SIGTERM, lambda *_: print("theirs", flush=True))
stop = StopSignal(SystemClock(), times.append)
stop.install()
term()
print(eventually(lambda: stop.seen))
stop.uninstall()
term()
""")
    assert done.stdout == "theirs\nTrue\ntheirs\n"


def test_only_the_first_sigterm_counts_and_it_is_on_the_clock():
    done = run("""
stop = StopSignal(SystemClock(), times.append)
stop.install()
before = time.monotonic()
term(); eventually(lambda: stop.seen); term(); time.sleep(0.1)
print(len(times), before <= times[0] <= time.monotonic())
""")
    assert done.stdout == "1 True\n"


def test_other_signals_are_no_stop():
    done = run("""
signal.signal(signal.SIGUSR1, lambda *_: None)
stop = StopSignal(SystemClock(), times.append)
stop.install()
os.kill(os.getpid(), signal.SIGUSR1)
print(stop.wait(0.2))
""")
    assert done.stdout == "False\n"


def test_a_forked_child_ends_at_sigterm_and_does_not_stop_its_parent():
    """Data-loader workers are forked, and torch ends them with SIGTERM."""
    done = run("""
stop = StopSignal(SystemClock(), times.append)
stop.install()
child = os.fork()
if child == 0:
    time.sleep(30)
    os._exit(0)
time.sleep(0.2)
term(child)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), stop.wait(0.2))
""")
    assert done.stdout == f"{-signal.SIGTERM} False\n"


def test_what_wanted_to_be_woken_before_still_is():
    """asyncio learns of signals in the same way."""
    done = run("""
read, write = os.pipe()
os.set_blocking(write, False)
signal.set_wakeup_fd(write)
stop = StopSignal(SystemClock(), times.append)
stop.install()
term()
print(os.read(read, 1) == bytes([signal.SIGTERM]), eventually(lambda: stop.seen))
stop.uninstall()
print(signal.set_wakeup_fd(-1) == write)
""")
    assert done.stdout == "True True\nTrue\n"


def test_after_uninstall_sigterm_ends_the_process_again():
    done = run("""
stop = StopSignal(SystemClock(), times.append)
stop.install()
stop.uninstall()
term()
time.sleep(5)
""")
    assert done.returncode == -signal.SIGTERM


def test_another_thread_cannot_install_it():
    done = run("""
def other():
    try:
        StopSignal(SystemClock(), times.append).install()
    except Exception as error:
        print(type(error).__name__, error)
thread = threading.Thread(target=other); thread.start(); thread.join()
""")
    assert done.stdout == "ConfigError spottrain.session() must be entered in the program's main thread\n"


def as_pid_1(program: str) -> subprocess.CompletedProcess[str]:
    """In a PID namespace of its own, where SIGTERM has no default action. Needs root, as the lab does."""
    return subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


KILLED_BY_A_CHILD = (
    "import os, signal, time\n"
    "if os.fork() == 0:\n"
    "    os.kill(1, signal.SIGTERM)\n"
    "    os._exit(0)\n"
    "time.sleep(0.5)\n"
    "print('trains on')\n"
)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a PID namespace")
def test_b1_as_pid_1_an_early_sigterm_ends_the_process_from_the_import_on():
    deaf = as_pid_1(KILLED_BY_A_CHILD)
    assert deaf.stdout == "trains on\n"
    done = as_pid_1("import spottrain\n" + KILLED_BY_A_CHILD)
    assert (done.stdout, done.returncode) == ("", 128 + signal.SIGTERM)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a PID namespace")
def test_b1_as_pid_1_the_session_takes_over(tmp_path: Path):
    done = as_pid_1(
        "import os, signal, time, spottrain\n"
        f"with spottrain.session(uri='{tmp_path.as_uri()}') as run:\n"
        "    run.restore(lambda _: None)\n"
        "    os.kill(1, signal.SIGTERM)\n"
        "    time.sleep(0.2)\n"
        "    print(run.should_save(0), run.stopping)\n"
    )
    assert (done.stdout, done.returncode) == ("True True\n", 75)
