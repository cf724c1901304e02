"""`dabnet page`: the page to draw on, with the network in it, as files for any web server or as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dabnet._files import write_beside
from dabnet.errors import InputError
from dabnet.runtime.recognizer import MIN_CONFIDENCE, Recognizer
from dabnet.web.page import page_files, single_page, write_folder


def page(
    output: Annotated[Path, typer.Option("--output", "-o", help="A folder that is new or empty; or an .html file.")],
    single: Annotated[bool, typer.Option("--single", help="Write one HTML file that opens without a server.")] = False,
    model: Annotated[str, typer.Option(help="A packed model, or a name that 'dabnet models' lists.")] = "default",
    min_confidence: Annotated[
        float, typer.Option(help="The probability from which on an answer is called sure.", min=0, max=1)
    ] = MIN_CONFIDENCE,
) -> None:
    """Write the page that 'dabnet serve' serves, with the network in it: it needs no server of dabnet's.

    dabnet page -o site/

    dabnet page --single -o pad.html

    A folder goes to any web server that serves files. One file opens from a disk or a memory stick. Whoever gets the
    page gets the model with it; what they draw stays on their machine.
    """
    session = Recognizer.load(model).session
    if single:
        if output.suffix.lower() not in (".html", ".htm"):
            raise InputError(f"'{output}' is no name for one file: end it in .html, or leave --single out.")
        content = single_page(min_confidence, session.data)
        write_beside(output, content)
        typer.echo(f"{output}: {len(content) / 1e6:.1f} MB. Open it in a browser.")
        return
    if output.suffix.lower() in (".html", ".htm"):
        raise InputError(f"'{output}' is a name for one file: add --single, or give a folder.")
    contents = page_files(min_confidence, session.data)
    write_folder(output, contents)
    size = sum(map(len, contents.values())) / 1e6
    typer.echo(
        f"{output}: {len(contents)} files, {size:.1f} MB. To try it: python3 -m http.server --directory '{output}'"
    )
