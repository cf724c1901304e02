"""Miniatures of data sets as they are published."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from dabnet.sketches.synthetic import draw_thing
from tests.sketches.drawings import encode, paint
from tests.sketches.test_quickdraw import pack, record

TU_BERLIN_CLASSES = ("apple", "car (sedan)", "clock")


def strokes(name: str, seed: int) -> list[list[tuple[int, int]]]:
    """Draw a thing on a grid of 256x256, as simplified Quick, Draw! drawings are."""
    thing = draw_thing(name, np.random.default_rng(seed))
    assert thing.points is not None
    low, high = thing.points.min(axis=0), thing.points.max(axis=0)
    scaled = [((stroke - low) / (high - low).max() * 255).round().astype(int) for stroke in thing.strokes]
    return [[(int(x), int(y)) for x, y in stroke] for stroke in scaled]


def svg(drawing: list[Any]) -> str:
    """Write strokes as TU-Berlin's SVGs have them."""
    paths = "".join(
        f'<path id="{number}" d="M{" L".join(f"{x} {y}" for x, y in stroke)} "/>'
        for number, stroke in enumerate(drawing)
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" '
        '"http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">\n<svg viewBox="0 0 800 800" version="1.1" '
        'xmlns="http://www.w3.org/2000/svg"><g fill="none" stroke="black"><g transform="translate(0,0) scale(3.125)">'
        f"{paths}</g></g></svg>"
    )


def tu_berlin(root: Path, each: int = 6, kind: str = "png") -> Path:
    """Make a folder per class of PNGs (of 300x300, not 1111x1111) or SVGs, numbered through all classes."""
    number = 0
    for name in TU_BERLIN_CLASSES:
        folder = root / kind / name
        folder.mkdir(parents=True)
        for _ in range(each):
            number += 1
            drawing = strokes(name.split()[0], number)
            path = folder / f"{number}.{kind}"
            if kind == "png":
                path.write_bytes(encode(paint(drawing, size=300, width=2, scale=1.0)))
            else:
                path.write_text(svg(drawing))
    (root / kind / "filelist.txt").write_text("apple/1.png\n")
    return root


def zip_folder(root: Path, target: Path) -> Path:
    """Pack a folder, as the archives are: directories have entries of their own."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*")):
            archive.write(path, path.relative_to(root))
        archive.writestr("__MACOSX/png/apple/._1.png", b"rubbish")
    return target


def sketchy(root: Path, photos: int = 10, test_list: bool = True) -> Path:
    """Make Sketchy's tree: several sketches per photo, each in more than one view."""
    for view in ("tx_000000000000", "tx_000000000010"):
        for name in ("apple", "fish"):
            folder = root / "256x256" / "sketch" / view / name
            folder.mkdir(parents=True)
            for photo in range(photos):
                for number in range(1, 4):
                    drawing = strokes(name, 100 * photo + number)
                    path = folder / f"n07739125_{photo}-{number}.png"
                    path.write_bytes(encode(paint(drawing, size=256, width=2, scale=0.8)))
    photo_folder = root / "256x256" / "photo" / "tx_000000000000" / "apple"
    photo_folder.mkdir(parents=True)
    (photo_folder / "n07739125_0.jpg").write_bytes(b"no sketch")
    if test_list:
        (root / "info").mkdir()
        (root / "info" / "testset.txt").write_text("apple/n07739125_3.jpg\nfish/n07739125_5.jpg\n")
    return root


def quickdraw(root: Path, each: int = 8) -> tuple[Path, Path, Path]:
    """Make the same drawings as ndjson, bin and npy files; gives the three folders."""
    folders = tuple(root / kind for kind in ("ndjson", "bin", "npy"))
    for folder in folders:
        folder.mkdir(parents=True)
    for name in ("cat", "hot air balloon", "sun"):
        drawings = [strokes({"hot air balloon": "umbrella"}.get(name, name), seed) for seed in range(each)]
        lines = [json.dumps(record(drawing, 10**15 + seed)) for seed, drawing in enumerate(drawings)]
        (folders[0] / f"{name}.ndjson").write_text("\n".join(lines) + "\n")
        (folders[1] / f"full_binary_{name}.bin").write_bytes(
            b"".join(pack(drawing, 10**15 + seed) for seed, drawing in enumerate(drawings))
        )
        images = [255 - np.asarray(paint(drawing, size=28, width=2, scale=0.085, at=3)) for drawing in drawings]
        np.save(folders[2] / f"{name}.npy", np.stack(images).reshape(-1, 784))
    return folders  # type: ignore[return-value]


def arrays(path: Path, each: int = 5) -> tuple[Path, Path]:
    """Make .npz files with images and with strokes; gives both."""
    names = ["apple", "fish"]
    drawings = [strokes(name, seed) for name in names for seed in range(each)]
    labels = np.repeat([0, 1], each).astype(np.int16)
    images = np.stack([255 - np.asarray(paint(drawing, size=256, width=1, scale=0.8)) for drawing in drawings])
    flat = np.array([point for drawing in drawings for stroke in drawing for point in stroke], dtype=np.uint8)
    ends = np.concatenate([np.eye(1, len(s), len(s) - 1, dtype=np.uint8)[0] for d in drawings for s in d])
    offsets = np.cumsum([0, *(sum(map(len, drawing)) for drawing in drawings)])
    common: dict[str, Any] = {"labels": labels, "class_names": np.array(names)}
    np.savez_compressed(path / "images.npz", images=images, fold3=np.arange(2 * each) % 3, ids=labels * 100, **common)
    np.savez_compressed(
        path / "strokes.npz", points=flat, end_of_stroke=ends, offsets=offsets, key_ids=labels + 7, **common
    )
    return path / "images.npz", path / "strokes.npz"
