# SPDX-License-Identifier: Apache-2.0
"""A photograph as the network was trained to see it."""

from pathlib import Path

import numpy as np

SIZE = 224
SHARE = 0.875  # of the shorter side that is looked at


def read(path: Path) -> np.ndarray:
    """The middle of a photograph: (224, 224, 3) floats from -1 to 1."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("photo: the package pillow is missing; run `pip install pillow`") from error
    with Image.open(path) as file:
        image = file.convert("RGB")
    side = round(SHARE * min(image.size))
    left, top = ((length - side) // 2 for length in image.size)
    middle = image.crop((left, top, left + side, top + side))
    pixels = np.asarray(middle.resize((SIZE, SIZE), Image.Resampling.BICUBIC), np.float32)
    return (pixels - 127) / 128
