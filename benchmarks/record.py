"""What every measurement does: time things in turn, and keep the figures in a dated file."""

from __future__ import annotations

import datetime
import json
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dabnet.comparing.leaderboard import processor

if TYPE_CHECKING:
    from collections.abc import Callable

RESULTS = Path(__file__).parent / "results"


def best_of(repeats: int, **contestants: Callable[[], object]) -> dict[str, float]:
    """Return each contestant's least time in seconds; they take turns, so that a slow moment hits all of them."""
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(repeats):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def write_results(name: str, figures: dict[str, Any]) -> Path:
    """Write figures to results/DATE-NAME.json, with the machine they come from."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    path = RESULTS / f"{today}-{name}.json"
    RESULTS.mkdir(exist_ok=True)
    figures = {"date": today, "processor": processor(), "python": platform.python_version(), **figures}
    path.write_text(json.dumps(figures, indent=2) + "\n")
    return path
