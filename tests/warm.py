"""Runs dabnet's command line in a new process that has imported torch and Lightning already.

Their imports take seconds, and a test of a training that is killed and goes on starts several. So one process imports
them and waits; `start` lets it fork, and the fork does what `python -m dabnet ARGUMENTS` does, with an environment, a
folder and output of its own. Tests of what is imported, and of what Ctrl-C does meanwhile, start Python itself.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import resource
import runpy
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

WARM = ("dabnet.cli.demo", "dabnet.cli.study", "dabnet.cli.train", "dabnet.cli.tuning")
ROOT = Path(__file__).parents[1]


class Running:
    """A process that runs dabnet; what it has of `subprocess.Popen` does the same."""

    def __init__(self, status: socket.socket, output: IO[bytes], errors: IO[bytes]) -> None:
        self.pid = int(status.recv(64))
        self.returncode: int | None = None
        self._status, self._output, self._errors = status, output, errors

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait for its end, and return what it printed on standard output and as errors."""
        self._status.settimeout(timeout)
        self.returncode = int(self._status.recv(64))
        printed = []
        for file in (self._output, self._errors):
            file.seek(0)
            printed.append(file.read().decode())
            file.close()
        self._status.close()
        return printed[0], printed[1]


def start(
    *arguments: object, module: str = "dabnet", cwd: Path | None = None, limit: int | None = None, **environment: str
) -> Running:
    """Start `python -m MODULE ARGUMENTS`; no file may become larger than `limit` bytes."""
    task = {
        "argv": [module, *map(str, arguments)],
        "cwd": str(cwd or Path.cwd()),
        "environment": os.environ | environment,
        "limit": limit,
    }
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    output, errors = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
    with theirs:
        socket.send_fds(_server()[0], [json.dumps(task).encode()], [output.fileno(), errors.fileno(), theirs.fileno()])
    return Running(ours, output, errors)


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `python -m dabnet ARGUMENTS` to its end."""
    process = start(*arguments, **options)
    printed, errors = process.communicate(timeout=300)
    assert process.returncode is not None
    return subprocess.CompletedProcess([*map(str, arguments)], process.returncode, printed, errors)


@functools.cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Start the process that forks; it ends when this one does, since nobody can ask it then."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", "tests.warm", str(theirs.fileno())]
        process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])
    atexit.register(process.wait)
    atexit.register(ours.close)  # before that
    return ours, process


def _serve(requests: socket.socket) -> dict[str, Any]:
    """Fork for every request, and return its task in the fork; end when nobody is left to ask."""
    while True:
        message, files, _, _ = socket.recv_fds(requests, 1 << 20, 3)
        if not message:
            raise SystemExit
        if os.fork():  # the process that waits for the fork's end, and tells its code
            for file in files:
                os.close(file)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            continue
        output, errors, status = files
        requests.close()
        if pid := os.fork():
            os.write(status, str(pid).encode())
            os.write(status, str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
            os._exit(0)
        os.close(status)
        os.dup2(output, 1)
        os.dup2(errors, 2)
        task: dict[str, Any] = json.loads(message)
        return task


def main() -> None:
    """Import, wait, and be what was asked for."""
    for module in WARM:
        __import__(module)
    gc.freeze()  # so that forks do not copy what is there to stay
    task = _serve(socket.socket(fileno=int(sys.argv[1])))
    os.environ.clear()
    os.environ.update(task["environment"])
    os.chdir(task["cwd"])
    if task["limit"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (task["limit"], task["limit"]))
    sys.argv = task["argv"]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
