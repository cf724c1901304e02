"""`dabnet recognize`: its arguments. What it does is in `recognizing.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dabnet.cli.recognizing import DEFAULTS, NOT_SURE, SHEET_DRAWINGS, Settings, recognize_files


def recognize(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="PNG, JPEG, WebP, GIF, BMP, TIFF, SVG or JSON files; .ndjson files, a drawing per line; folders; "
            "- for standard input.",
        ),
    ],
    model: Annotated[str, typer.Option(help="A packed model, or a name that 'dabnet models' lists.")] = DEFAULTS.model,
    top: Annotated[int, typer.Option(help="Guesses for each drawing.", min=1)] = DEFAULTS.top,
    min_confidence: Annotated[
        float, typer.Option(help=f"Answer '{NOT_SURE}' if no guess is as likely as this.", min=0, max=1)
    ] = DEFAULTS.min_confidence,
    sheet: Annotated[
        Path | None,
        typer.Option(help=f"Draw the first {SHEET_DRAWINGS} as the network sees them, pictures beside: a PNG file."),
    ] = None,
    threads: Annotated[
        int, typer.Option(help="Threads that read drawings and run the model.", min=1)
    ] = DEFAULTS.threads,
    max_work: Annotated[
        float, typer.Option(help="Billions of multiply-adds that the model may take for a drawing.", min=0)
    ] = DEFAULTS.max_work,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per drawing, and nothing else.")] = False,
) -> None:
    """Tell what drawings show: dark lines on light or light on dark, photographed or drawn as strokes.

    A file that cannot be read is reported, and the others are recognized; the exit code is 1 then.

    dabnet recognize cup.png photo.jpg strokes.json

    dabnet recognize folder/ --sheet guesses.png

    dabnet recognize cats.ndjson --json > cats.guesses.ndjson

    curl -s https://example.org/drawing.svg | dabnet recognize -
    """
    raise typer.Exit(recognize_files(Settings(files, model, top, min_confidence, sheet, threads, max_work, as_json)))
