"""Table 3: recognizers on TU-Berlin. The paper's rows as it cites them, and what was trained here beside its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paper.finding import Finding, Table
from paper.published import ACCURACY, NETWORKS, OTHER_RECOGNIZERS, OURS, VARIANTS
from paper.runs import summarize

if TYPE_CHECKING:
    from paper.runs import Scale

DATA = "tuberlin"


def find_table3(scale: Scale) -> Finding:
    """Set the DAB-Nets of the paper, and ours, beside the recognizers that the paper cites."""
    cited = [(name, f"{top1:.1f}") for name, top1 in OTHER_RECOGNIZERS.items()]
    here: dict[str, dict[str, Any]] = {}
    rows = []
    for variant in ("wbin-dab", "fbin-dab"):
        for network, name in (NETWORKS | OURS).items():
            recipe = scale.recipe(DATA, network, variant)
            if not recipe.exists():
                continue
            runs = scale.find(DATA, network, variant)
            accuracy = summarize(runs)
            printed = ACCURACY[DATA].get(network, {}).get(variant)
            here[recipe.stem] = {"paper": printed, "here": accuracy and accuracy.mean, "runs": len(runs)}
            whose = " (ours)" if network in OURS else ""
            rows.append(
                (
                    f"{name}, {VARIANTS[variant]}{whose}",
                    "-" if accuracy is None else str(accuracy),
                    "-" if printed is None else f"{printed:.1f}",
                )
            )
    missing = [name for name, each in here.items() if each["here"] is None]
    remarks = [
        "Here: full scale."
        if scale.name == "full"
        else "Here: small scale. The paper's networks have full width, see 224 pixels, train for hundreds of epochs.",
        "That a binary network beats AlexNet and people, as the paper says, can be tested at full scale only.",
        "The paper also claims savings of energy: not measured.",
    ]
    if missing:
        remarks.append(f"Missing: {', '.join(missing)}; dabnet paper table2 says how to train them.")
    return Finding(
        "table3" if scale.name == "small" else f"table3-{scale.name}",
        "Table 3: recognizers on TU-Berlin",
        {"scale": scale.name, "cited_by_the_paper": OTHER_RECOGNIZERS, "dab": here, "missing": missing},
        [
            Table("Top-1 in percent, TU-Berlin: DAB-Nets", ("network", "here", "paper"), rows),
            Table("As the paper cites them; not measured here", ("recognizer", "paper"), cited),
        ],
        remarks,
    )
