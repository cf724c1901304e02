"""What the paper prints: its tables, in percent and times, to stand beside what is measured here."""

from __future__ import annotations

COMPRESSION = {
    "Finetuned SVD 2": 2.6,
    "Circulant CNN 2": 3.6,
    "Adaptive Fastfood-16": 3.7,
    "Collins et al.": 4.0,
    "Zhou et al.": 4.3,
    "ACDC": 6.3,
    "Network Pruning": 9.1,
    "Deep Compression": 9.1,
    "GreBdec": 10.2,
    "Srinivas et al.": 10.3,
    "Guo et al.": 17.9,
    "Binarization": 32.0,
}
"""Table 1: times smaller, as the paper cites them from the literature; the last is its own "about 32"."""

NETWORKS = {"sketch-a-net": "Sketch-A-Net", "resnet18": "ResNet-18", "googlenet": "GoogLeNet"}
"""The paper's networks, as they are called in the names of recipes, and in the paper."""

OURS = {"resnet18-shortcuts": "ResNet-18 with shortcuts"}
"""Our own, beside the paper's: a shortcut leads around every convolution."""

CHANGED = {
    "resnet18-ste": "ResNet-18, straight-through gradient",
    "resnet18-exact": "ResNet-18, exact gradient",
    "resnet18-uncentred": "ResNet-18, weights not centred",
}
"""The paper's network with one of the paper's choices changed."""

NAMES = NETWORKS | OURS | CHANGED
"""All that Table 2 shows."""

VARIANTS = {
    "fprec": "FPrec",
    "wbin-bwn": "WBin BWN",
    "fbin-xnor": "FBin XNOR-Net",
    "wbin-dab": "WBin DAB-Net",
    "fbin-dab": "FBin DAB-Net",
}

DATA_SETS = {"tuberlin": "TU-Berlin", "sketchy": "Sketchy"}

ACCURACY = {
    "tuberlin": {
        "sketch-a-net": {"fprec": 72.9, "wbin-bwn": 73.0, "fbin-xnor": 59.6, "wbin-dab": 72.4, "fbin-dab": 60.4},
        "resnet18": {"fprec": 74.1, "wbin-bwn": 73.4, "fbin-xnor": 68.8, "wbin-dab": 73.5, "fbin-dab": 71.3},
        "googlenet": {"fprec": 75.0, "wbin-bwn": 74.8, "fbin-xnor": 72.2, "wbin-dab": 75.7, "fbin-dab": 73.7},
    },
    "sketchy": {
        "sketch-a-net": {"fprec": 85.9, "wbin-bwn": 85.6, "fbin-xnor": 68.6, "wbin-dab": 84.0, "fbin-dab": 70.6},
        "resnet18": {"fprec": 88.7, "wbin-bwn": 89.3, "fbin-xnor": 82.8, "wbin-dab": 88.8, "fbin-dab": 84.2},
        "googlenet": {"fprec": 90.0, "wbin-bwn": 89.8, "fbin-xnor": 86.8, "wbin-dab": 90.1, "fbin-dab": 87.4},
    },
}
"""Table 2: top-1 with ten crops."""

OTHER_RECOGNIZERS = {
    "AlexNet-SVM": 67.1,
    "AlexNet-Sketch": 68.6,
    "Sketch-A-Net SC": 72.2,
    "Humans": 73.1,
    "Sketch-A-Net-2 (more data, an ensemble)": 77.0,
}
"""Table 3: top-1 on TU-Berlin, as the paper cites them; its own rows are those of Table 2."""

SETTLED_K_SHARE = 0.35
"""Figure 4: where DAB-Net's K/n settles."""
