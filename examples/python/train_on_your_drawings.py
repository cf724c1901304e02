"""Teaches the model that ships two classes of your own, beside those that it knows, and asks it for one of them.

    python train_on_your_drawings.py [FOLDER]

The drawings are made up here, so that it runs anywhere: draw your own, save them as PNG, SVG or JSON (the page of
`dabnet serve` has buttons for it), and put them into a folder with a subfolder per class.
"""

import json
import math
import random
import subprocess
import sys
from pathlib import Path

import dabnet

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "my_drawings")
random.seed(0)


def spring(turns: int) -> list[list[tuple[float, float]]]:
    """Draw a coil from left to right, in an unsteady hand."""
    angles = [i / 8 for i in range(int(turns * math.tau * 8))]
    return [[(8 * a + 30 * math.cos(a) + random.gauss(0, 1), 30 * math.sin(a) + random.gauss(0, 1)) for a in angles]]


def crossing(lines: int) -> list[list[tuple[float, float]]]:
    """Draw lines one way, and as many the other way, as for noughts and crosses."""
    positions = [100 * (i + 1) / (lines + 1) + random.gauss(0, 3) for i in range(lines)]
    return [[(at, 0), (at + random.gauss(0, 4), 100)] for at in positions] + [[(0, at), (100, at)] for at in positions]


for number in range(20):
    for name, strokes in (("spring", spring(random.randint(3, 6))), ("grid", crossing(random.randint(2, 3)))):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / f"{number}.json").write_text(json.dumps(strokes))

run = folder.with_name(f"{folder.name}-run")
command = f"{sys.executable} -m dabnet train --from default --add {folder} -o {run} --json"
done = subprocess.run(command.split(), check=True, capture_output=True, text=True)
print(json.dumps(json.loads(done.stdout), indent=2))

recognizer = dabnet.Recognizer.load(run / "model.safetensors")
print(f"It knows {len(recognizer.labels)} things now.")
for label, probability in recognizer.recognize(spring(5), top=3):
    print(f"{label:12} {probability:.0%}")
