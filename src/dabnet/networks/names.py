"""The names of the networks, for those that do not import torch; `catalog` has the networks themselves."""

NAMES = ("sketch_a_net", "resnet18", "googlenet")
