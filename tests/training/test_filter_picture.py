from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from dabnet.training.filter_picture import draw_weights


def test_the_picture_of_a_filter_is_drawn_whole(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).lognormal(size=300).astype(np.float32)
    path = tmp_path / "weights.png"
    draw_weights(weights, path, "a filter")
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB"))
    assert pixels.shape == (675, 1200, 3)
    for colour in ([0xC2, 0x41, 0x0C], [0x1D, 0x4E, 0xD8], [0xCB, 0xD5, 0xE1]):  # DAB, XNOR-Net, weights
        assert (pixels == colour).all(axis=-1).sum() > 200
    assert [file.name for file in tmp_path.iterdir()] == ["weights.png"]
