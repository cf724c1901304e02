"""`dabnet recognize`: its arguments. What it does is in `recognizing.py`, and with -o in `recognizing_many.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dabnet.cli.engines import LOCAL
from dabnet.cli.recognizing import DEFAULTS, NOT_SURE, SHEET_DRAWINGS, Settings, recognize_files
from dabnet.cli.recognizing_many import DRAWINGS_PER_PARTITION, ManySettings, recognize_many
from dabnet.errors import InputError


def recognize(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="PNG, JPEG, WebP, GIF, BMP, TIFF, SVG or JSON files; .ndjson files, a drawing per line; folders; "
            "- for standard input. With -o: .parquet and .ndjson files, or folders of them.",
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
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A folder for Parquet files of answers; what is there is not done again."),
    ] = None,
    engine: Annotated[str, typer.Option(help="What runs -o: 'local', all cores of this machine, or 'ray'.")] = LOCAL,
    address: Annotated[
        str | None, typer.Option(help="The Ray cluster, HOST:PORT; left out, Ray is started on this machine.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes that recognize for -o; left out, one per core.", min=1)
    ] = None,
    partition: Annotated[
        int, typer.Option(help="Drawings per file that -o writes, about.", min=1, max=1_000_000)
    ] = DRAWINGS_PER_PARTITION,
) -> None:
    """Tell what drawings show: dark lines on light or light on dark, photographed or drawn as strokes.

    A file that cannot be read is reported, and the others are recognized; the exit code is 1 then.

    dabnet recognize cup.png photo.jpg strokes.json

    dabnet recognize folder/ --sheet guesses.png

    dabnet recognize cats.ndjson --json > cats.guesses.ndjson

    curl -s https://example.org/drawing.svg | dabnet recognize -

    dabnet recognize drawings/*.parquet -o guesses/ --engine ray --address head:6379
    """
    if output is not None:
        if sheet is not None or min_confidence != DEFAULTS.min_confidence or threads != DEFAULTS.threads:
            raise InputError("--sheet, --min-confidence and --threads do not go with -o: leave them out.")
        many = ManySettings(files, output, model, top, engine, address, workers, partition, max_work, as_json)
        recognize_many(many)
        return
    if engine != LOCAL or address is not None or workers is not None or partition != DRAWINGS_PER_PARTITION:
        raise InputError("--engine, --address, --workers and --partition are for files of answers: add -o FOLDER.")
    raise typer.Exit(recognize_files(Settings(files, model, top, min_confidence, sheet, threads, max_work, as_json)))
