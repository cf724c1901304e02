"""Where commands print; nothing in what they print is obeyed, be it markup or orders to a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from dabnet._text import printable

if TYPE_CHECKING:
    from rich.status import Status


class PlainConsole(Console):
    """A console that prints strangers' words as they are spelt."""

    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__(quiet=quiet, markup=False, emoji=False, highlight=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Escape all that is not shown, but for line breaks."""
        return super().render_str("\n".join(map(printable, text.split("\n"))), **options)

    def status(self, status: Any, **options: Any) -> Status:
        """Show what is going on; a spinner would look for markup."""
        return super().status(Text(printable(status)), **options)
