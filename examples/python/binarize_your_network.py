"""Makes a network of your own binary, trains it, packs it, and runs it without torch.

    python binarize_your_network.py [FILE]

It learns twenty everyday things, drawn by a program, in a few seconds: put your own network and data in their place.
"""

import sys

import numpy as np
import torch
from torch import nn

import dabnet
from dabnet.sketches import synthetic_sketches

torch.manual_seed(0)
path = sys.argv[1] if len(sys.argv) > 1 else "things.safetensors"
images, labels, names = synthetic_sketches(count=1200, size=32)
inputs = torch.from_numpy(images).float().div(255).unsqueeze(1)  # (count, 1, 32, 32), ink is 1
targets = torch.from_numpy(labels)
held_back = 200

net = nn.Sequential(
    nn.Conv2d(1, 32, 5, stride=2, padding=2), nn.BatchNorm2d(32),
    nn.Conv2d(32, 64, 3, padding=1), nn.MaxPool2d(2), nn.BatchNorm2d(64),
    nn.Conv2d(64, 128, 3, padding=1), nn.MaxPool2d(2), nn.BatchNorm2d(128), nn.ReLU(),
    nn.Flatten(), nn.Linear(128 * 16, len(names)),
)  # fmt: skip
converted = dabnet.binarize_(net, weights="dab", activations="sign", skip=["10"])
print("binary:", ", ".join(converted))
for layer, reason in converted.left_alone.items():
    print(f"real: {layer}, {reason}")

optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
for epoch in range(3):
    net.train()
    for batch in torch.randperm(len(inputs) - held_back).split(50):
        loss = nn.functional.cross_entropy(net(inputs[batch]), targets[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dabnet.constrain_(net)  # after every step: weights are centred and clamped
    net.eval()
    with torch.no_grad():
        right = (net(inputs[-held_back:]).argmax(dim=1) == targets[-held_back:]).float().mean()
    print(f"epoch {epoch}: {right:.0%} of {held_back} drawings that were held back")

dabnet.export(net, path, input_size=(1, 32, 32), labels=names)
session = dabnet.runtime.Session(path, threads=1)  # needs no torch
logits = session.run(inputs[-held_back:].numpy())
agree = np.mean(logits.argmax(axis=1) == net(inputs[-held_back:]).argmax(dim=1).numpy())
real = sum(parameter.numel() for parameter in net.parameters()) * 4
print(f"{path}: {len(session.data):,} bytes instead of {real:,}; {agree:.0%} of the answers are torch's")
