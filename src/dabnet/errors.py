"""What can go wrong, each with one sentence that says what was wrong with which input and what to do."""


class DabnetError(Exception):
    """Any error that dabnet raises on purpose; the command line prints it without a traceback."""


class InputError(DabnetError, ValueError):
    """An argument, a file or a setting that cannot be used as it is."""


class MissingExtraError(DabnetError, ImportError):
    """A library that only some of dabnet needs, and that is not installed."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"this needs {library}, which is not installed: pip install 'dabnet[{extra}]'.")


class NonFiniteError(InputError):
    """A weight that is NaN or infinite, where there must be a number."""
