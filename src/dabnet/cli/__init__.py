"""The command line: one file per command. Only the command that was asked for is imported; the others cost nothing."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import NoReturn

from dabnet._lazy import load
from dabnet._text import printable
from dabnet.cli.interrupts import ended_by_interrupts
from dabnet.cli.streams import say
from dabnet.errors import DabnetError

COMMANDS = {
    "bench": "Compare a model's speed and size with other engines.",
    "classes": "List what a model knows.",
    "data": "Get data sets of sketches, prepare them, and look at them.",
    "demo": "Train three small networks, real and binary, and compare them.",
    "evaluate": "Test a trained network, and show what it confuses.",
    "export": "Pack a trained network into one small file.",
    "features": "Write what a packed model needs to learn more classes.",
    "leaderboard": "List binary methods by accuracy, with bytes and milliseconds.",
    "models": "List the models that ship, with their size and accuracy.",
    "page": "Write the page to draw on as files that need no server.",
    "paper": "Check the paper's claims with runs of our own.",
    "recipes": "List the trainings that go by name, or show one.",
    "recognize": "Tell what drawings show.",
    "serve": "Serve a page to draw on, and recognition over HTTP.",
    "study": "Train a table of runs, and compare them.",
    "summary": "Tell what each layer of a network is and costs.",
    "train": "Train a network by a recipe.",
    "verify": "Compare a packed model with its network.",
}
"""Each command and the line that --help says of it; its function, or its group of commands, has the same name, in a
module of that name."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command; what goes wrong for a reason that can be told becomes one sentence and exit code 2."""
    try:
        try:
            _run(sys.argv[1:] if arguments is None else arguments)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where a full disk can still be told
    except DabnetError as error:
        _fail(str(error), 2)
    except KeyboardInterrupt:
        _fail("stopped.", 130)
    except BrokenPipeError:  # whoever read has enough
        _give_up_output()
        raise SystemExit(1) from None
    except OSError as problem:
        _give_up_output()
        reason = problem.strerror or problem
        what = f"cannot use '{problem.filename}'" if problem.filename else "cannot write what there is to say"
        hint = "make room" if problem.errno == errno.ENOSPC else "see to that"
        _fail(f"{what} ({reason}): {hint}, and try again.", 2)


def _run(arguments: list[str]) -> None:
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if arguments[:1] == ["recognize"]:
        with ended_by_interrupts():
            plain = load("dabnet.cli.recognizing")
        if (settings := plain.read_plainly(arguments[1:])) is not None:
            raise SystemExit(plain.recognize_files(settings))
    with ended_by_interrupts():
        commands = load("dabnet.cli.commands")
    commands.run(arguments, COMMANDS)


def _fail(sentence: str, code: int) -> NoReturn:
    with suppress(OSError):
        say(f"dabnet: {printable(sentence)}", error=True)
    raise SystemExit(code) from None


def _give_up_output() -> None:
    """Let what is still to be written go nowhere, so that Python does not fail once more when it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
