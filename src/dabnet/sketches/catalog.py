"""The public sketch data sets that dabnet can get, or can say how to get."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from dabnet.errors import InputError, check_choice, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class RemoteFile:
    """A file to fetch; its length and checksums are None where none is published."""

    url: str
    name: str
    sha256: str | None = None
    md5: str | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class DataSet:
    """A published data set: what it holds, whom to thank, and where it is."""

    name: str
    title: str
    drawings: int
    classes: int
    licence: str
    citation: str
    home: str
    published: str
    """The form and size that it comes in."""
    files: tuple[RemoteFile, ...] = ()
    class_url: str | None = None
    """The address of one class's file, with {} for the class's name, if there is a file per class."""
    instructions: str | None = None
    """What to do by hand, if no program can fetch it."""

    def files_for(self, classes: Sequence[str] = ()) -> tuple[RemoteFile, ...]:
        """Return the files to fetch: all, or those of the classes chosen if there is a file per class.

        >>> [file.name for file in CATALOG["tuberlin"].files_for()]
        ['sketches_png.zip']
        >>> CATALOG["quickdraw"].files_for(["hot dog"])[0].url
        'https://storage.googleapis.com/quickdraw_dataset/full/simplified/hot%20dog.ndjson'
        """
        if self.class_url is None:
            if classes:
                raise InputError(f"{self.name} comes as a whole: get it without naming classes.")
            return self.files
        if not classes:
            raise InputError(f"name the classes of {self.name} to get, such as 'cat': it is {self.published}.")
        known = quickdraw_classes()
        if unknown := next((name for name in classes if name not in known), None):
            raise InputError(f"'{unknown}' is not a class of {self.name}: see {self.home}.{suggest(unknown, known)}")
        chosen = dict.fromkeys(classes)
        return tuple(RemoteFile(self.class_url.format(quote(name)), f"{name}.ndjson") for name in chosen)


def find_data_set(name: str) -> DataSet:
    """Return the data set of that name.

    >>> find_data_set("sketchy").drawings
    75471
    """
    check_choice("data set that dabnet knows", name, list(CATALOG))
    return CATALOG[name]


@functools.cache
def quickdraw_classes() -> tuple[str, ...]:
    """List the classes of Quick, Draw!, as its files are named.

    >>> len(quickdraw_classes()), quickdraw_classes()[:2]
    (345, ('The Eiffel Tower', 'The Great Wall of China'))
    """
    return tuple(Path(__file__).with_name("quickdraw_classes.txt").read_text(encoding="utf-8").splitlines())


# No SHA-256 of these archives is known to be published, and none is made up: `download` gives back the one it finds.
# The MD5s of the TU-Berlin archives are what unrelated projects that fetch them check: torchsketch and dm_nevis the
# PNGs', torchsketch and sketchkit the SVGs'. Quick, Draw!'s server sends each file's MD5, and `download` checks it.
_TU_BERLIN = "https://cybertron.cg.tu-berlin.de/eitz/projects/classifysketch/"
_EITZ = "Eitz, Hays, Alexa, 'How Do Humans Sketch Objects?', ACM Transactions on Graphics 31(4), 2012"

CATALOG = {
    entry.name: entry
    for entry in (
        DataSet(
            name="tuberlin",
            title="TU-Berlin sketches",
            drawings=20_000,
            classes=250,
            licence="CC BY 4.0",
            citation=_EITZ,
            home=_TU_BERLIN,
            published="a zip of PNGs of 1111x1111 pixels, a folder per class, about 525 MB",
            files=(
                RemoteFile(_TU_BERLIN + "sketches_png.zip", "sketches_png.zip", md5="023123df86a928a5273e3ba11990d8fd"),
            ),
        ),
        DataSet(
            name="tuberlin-svg",
            title="TU-Berlin sketches, as strokes",
            drawings=20_000,
            classes=250,
            licence="CC BY 4.0",
            citation=_EITZ,
            home=_TU_BERLIN,
            published="a zip of SVGs, a folder per class, about 50 MB",
            files=(
                RemoteFile(_TU_BERLIN + "sketches_svg.zip", "sketches_svg.zip", md5="aa7d8ae9c8bf5f5cb6d28cee9741737c"),
            ),
        ),
        DataSet(
            name="sketchy",
            title="The Sketchy Database",
            drawings=75_471,
            classes=125,
            licence="see its home page",
            citation=(
                "Sangkloy, Burnell, Ham, Hays, 'The Sketchy Database: Learning to Retrieve Badly Drawn Bunnies', "
                "ACM Transactions on Graphics 35(4), 2016"
            ),
            home="https://sketchy.eye.gatech.edu/",
            published="a 7z archive on Google Drive of PNGs of 256x256 pixels, a folder per class",
            instructions=(
                "The Sketchy Database is on Google Drive, where only a browser can fetch it: "
                "1. open https://sketchy.eye.gatech.edu/ and download rendered_256x256.7z; "
                "2. unpack it, for example with: 7z x rendered_256x256.7z; "
                "3. run: dabnet data prepare FOLDER, with the folder that it was unpacked to."
            ),
        ),
        DataSet(
            name="quickdraw",
            title="Quick, Draw!",
            drawings=50_426_266,
            classes=345,
            licence="CC BY 4.0",
            citation="The Quick, Draw! Dataset, made available by Google, Inc.",
            home="https://github.com/googlecreativelab/quickdraw-dataset",
            published="a file of strokes per class (ndjson, simplified), about 22 GB in all",
            class_url="https://storage.googleapis.com/quickdraw_dataset/full/simplified/{}.ndjson",
        ),
    )
}
"""Each data set by its name."""
