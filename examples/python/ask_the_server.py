"""Asks `dabnet serve` what drawings show, with Python's own library only.

    python ask_the_server.py http://127.0.0.1:8000 FILE...

A file holds strokes as JSON, an SVG or a picture. A server that is busy answers 503, and is asked again.
"""

import json
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

TYPES = {".json": "application/json", ".svg": "image/svg+xml"}


def recognize(server: str, path: Path, top: int = 3) -> list[dict[str, object]]:
    """Return the likeliest labels, each with its probability."""
    kind = TYPES.get(path.suffix, "application/octet-stream")
    request = urllib.request.Request(f"{server}/v1/recognize?top={top}", path.read_bytes(), {"content-type": kind})
    for wait in (0.1, 0.5, 2.0, None):
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)["guesses"]
        except urllib.error.HTTPError as problem:
            if problem.code != 503 or wait is None:
                sys.exit(f"{path}: {json.load(problem)['error']}")
            time.sleep(wait)
    raise AssertionError


for name in sys.argv[2:]:
    guesses = recognize(sys.argv[1].rstrip("/"), Path(name))
    print(name + ":", ", ".join(f"{each['label']} {each['probability']:.0%}" for each in guesses))
