"""Theorem 1: a network with binary weights that multiplies its inputs, how small its error is, and its neurons.

A gate multiplies b numbers with 2^b neurons, one for each choice of signs s (Lin, Tegmark and Rolnick, 2017):

    1 / (2^b sigma^(b)(0))  sum over s of  s_1 ... s_b sigma(s_1 y_1 + ... + s_b y_b)  =  y_1 ... y_b + O(y^(b+2))

where sigma^(b)(0) is the activation's b-th derivative at 0, which must not vanish. (The terms of degree b + 1 cancel.)
For k layers the n inputs are divided into groups of b_1, the products of these into groups of b_2, and so on, with
b_1 ... b_k = n. Every weight is +c or -c, with one c a layer, between what is connected at all. The neurons are

    sum over i of  2^(b_i) n / (b_1 ... b_i),   which the theorem says is O(n^((k-1)/k) 2^(n^(1/k)))

The error of inputs of size t falls with t^(n+2), as a difference of numbers near 1: float64 has too few digits to see
it. So everything is computed with as many digits as it takes, by `decimal`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dabnet.errors import InputError, check_choice, check_number
from paper.figures import GREY, LINE_COLOURS, new_figure, tidy
from paper.finding import Finding, Table

MOST_INPUTS, MOST_LAYERS = 12, 6
HALVINGS = range(2, 9)
"""Inputs are shrunk to about 2^-2 ... 2^-8."""


class Activation(NamedTuple):
    """A function of one number, and its derivatives at 0."""

    evaluate: Callable[[Decimal], Decimal]
    derivative: Callable[[int], Decimal]


def _sigmoid(x: Decimal) -> Decimal:
    return 1 / (1 + (-x - Decimal("0.5")).exp())


def _sigmoid_derivative(order: int) -> Decimal:
    """Derive sigmoid(x + 0.5) at 0: a polynomial in s = sigmoid, and each derivation multiplies by s' = s - s²."""
    powers = [0, 1]  # the polynomial's coefficients: s itself
    for _ in range(order):
        derived = [power * factor for power, factor in enumerate(powers)][1:]
        powers = [a - b for a, b in zip([0, *derived, 0], [0, 0, *derived], strict=True)]
    s = _sigmoid(Decimal(0))
    return sum((factor * s**power for power, factor in enumerate(powers)), Decimal(0))


ACTIVATIONS = {
    "exp": Activation(Decimal.exp, lambda _: Decimal(1)),
    "sigmoid": Activation(_sigmoid, _sigmoid_derivative),
}
"""exp(x), and sigmoid(x + 0.5): without the shift its even derivatives vanish, as tanh's do."""


class Layer(NamedTuple):
    """Neurons, each with its connections to the layer before, (index, +1 or -1), and the magnitude of all weights."""

    neurons: list[list[tuple[int, int]]]
    magnitude: Decimal


def build_product(groups: Sequence[int], activation: Activation) -> list[Layer]:
    """Build the network that multiplies prod(groups) inputs; its last layer is the output, which is no neuron.

    >>> [len(layer.neurons) for layer in build_product([3, 2], ACTIVATIONS["exp"])]
    [16, 4, 1]
    """
    layers: list[Layer] = []
    numbers = [[(index, 1)] for index in range(math.prod(groups))]  # what is to be multiplied, as sums of neurons
    magnitude = Decimal(1)
    for size in groups:
        neurons: list[list[tuple[int, int]]] = []
        products = []
        for start in range(0, len(numbers), size):
            members = numbers[start : start + size]
            gate = []
            for signs in product((1, -1), repeat=size):
                gate.append((len(neurons), math.prod(signs)))
                pairs = zip(signs, members, strict=True)
                neurons.append([(index, outer * inner) for outer, member in pairs for index, inner in member])
            products.append(gate)
        layers.append(Layer(neurons, magnitude))
        numbers, magnitude = products, 1 / (2**size * activation.derivative(size))
    return [*layers, Layer(numbers, magnitude)]


def run_network(layers: Sequence[Layer], inputs: Sequence[Decimal], activation: Activation) -> Decimal:
    """Return the network's output."""
    values = list(inputs)
    for layer in layers:
        sums = [layer.magnitude * sum(sign * values[index] for index, sign in neuron) for neuron in layer.neurons]
        values = sums if layer is layers[-1] else [activation.evaluate(x) for x in sums]
    return values[0]


def count_neurons(groups: Sequence[int]) -> int:
    """Count the neurons for these sizes of groups, by the formula.

    >>> count_neurons([6]), count_neurons([3, 2]), count_neurons([3, 2, 1])
    (64, 20, 22)
    """
    left, count = math.prod(groups), 0
    for size in groups:
        left //= size
        count += left * 2**size
    return count


def best_groups(n: int, layers: int) -> tuple[int, ...]:
    """Find the sizes of groups, with product n, that take the fewest neurons; of several, those that begin largest.

    >>> best_groups(6, 2), best_groups(12, 3), best_groups(7, 2)
    ((3, 2), (3, 2, 2), (7, 1))
    """
    return min(_factorizations(n, layers), key=lambda groups: (count_neurons(groups), [-size for size in groups]))


def _factorizations(n: int, factors: int) -> Iterator[tuple[int, ...]]:
    if factors == 1:
        yield (n,)
        return
    for first in range(1, n + 1):
        if n % first == 0:
            yield from ((first, *rest) for rest in _factorizations(n // first, factors - 1))


def bound(n: int, layers: int) -> float:
    """Return the theorem's n^((k-1)/k) 2^(n^(1/k)), whose multiple bounds the neurons."""
    return float(n ** ((layers - 1) / layers) * 2 ** (n ** (1 / layers)))


@dataclass(frozen=True)
class Measured:
    """A network that was built and run on ever smaller inputs."""

    groups: tuple[int, ...]
    neurons: int
    errors: list[float]
    """How far the output is from the product, for each size of `HALVINGS`."""
    orders: list[float]
    """Between each size and its half: the power of the size with which the error falls."""
    rounding: float
    """How much the smallest error changes, relatively, if everything is computed with twice the digits."""

    @property
    def order(self) -> float:
        """The order of the error: at the smallest inputs."""
        return self.orders[-1]


def measure(groups: Sequence[int], activation: Activation, seed: int = 0) -> Measured:
    """Build the network, shrink its inputs by halves, and see with which power the error falls."""
    n = math.prod(groups)
    numerators = np.random.default_rng(seed).integers(512, 1024, n).tolist()  # inputs of 0.5 to 1, exact in decimal
    digits = 30 + math.ceil((n + 4) * HALVINGS[-1] * math.log10(2))  # those that cancel, and 30 more

    def find_error(halvings: int, digits: int) -> Decimal:
        with localcontext(prec=digits):
            layers = build_product(groups, activation)
            inputs = [Decimal(numerator) / 1024 / 2**halvings for numerator in numerators]
            return abs(run_network(layers, inputs, activation) - math.prod(inputs, start=Decimal(1)))

    found = [find_error(halvings, digits) for halvings in HALVINGS]
    exact = find_error(HALVINGS[-1], 2 * digits)
    return Measured(
        groups=tuple(groups),
        neurons=sum(len(layer.neurons) for layer in build_product(groups, activation)[:-1]),
        errors=[float(error) for error in found],
        orders=[float((error / half).ln() / Decimal(2).ln()) for error, half in pairwise(found)],
        rounding=float(abs(found[-1] - exact) / exact),
    )


def find_theorem1(n: int, layers: Sequence[int], activation: str = "exp", seed: int = 0) -> Finding:
    """Build, measure and count the networks for n inputs with each number of layers."""
    check_choice("kind of activation", activation, tuple(ACTIVATIONS))
    check_number("the number of inputs", n, (2, MOST_INPUTS))
    for count in layers:
        check_number("the number of layers", count, (1, MOST_LAYERS))
    if not layers:
        raise InputError("give at least one number of layers, such as --layers 1 2 3.")
    found = {k: measure(best_groups(n, k), ACTIVATIONS[activation], seed) for k in dict.fromkeys(layers)}
    table = Table(
        f"Networks with binary weights that multiply {n} numbers",
        ("hidden layers", "groups", "neurons", "n^((k-1)/k) 2^(n^(1/k))", "order of the error", f"at least {n + 1}"),
        [
            (
                str(k),
                " x ".join(map(str, each.groups)),
                str(each.neurons),
                f"{bound(n, k):.1f}",
                f"{each.order:.4f}",
                "yes" if each.order >= n + 1 else "NO",
            )
            for k, each in found.items()
        ],
    )
    perfect = [(base**k, k, count_neurons([base] * k) / bound(base**k, k)) for k in found for base in range(2, 9)]
    worst = max(ratio for _, _, ratio in perfect)
    figures = {
        "n": n,
        "activation": activation,
        "input_sizes": [2.0**-halvings for halvings in HALVINGS],
        "networks": {
            str(k): {
                "groups": list(each.groups),
                "neurons": each.neurons,
                "bound": bound(n, k),
                "order": each.order,
                "orders": each.orders,
                "errors": each.errors,
                "rounding": each.rounding,
            }
            for k, each in found.items()
        },
        "most_times_the_bound": worst,
    }
    return Finding(
        "theorem1",
        "Theorem 1: binary weights can multiply",
        figures,
        [table],
        [
            f"Inputs of 2^-{HALVINGS[0]} to 2^-{HALVINGS[-1]}: each halving divides the error by 2^{n + 2}, one power "
            "more than the theorem asks for, since only terms odd in every input are left. The activation is "
            f"{activation}.",
            f"Where n is a k-th power, the neurons are at most {worst:.2f} times the theorem's expression (k of this "
            "table, groups of up to 8).",
            f"With twice the digits the smallest error changes by {max(each.rounding for each in found.values()):.0e} "
            "of itself: rounding plays no part.",
        ],
        _draw(n, found),
        seed,
    )


def _draw(n: int, found: dict[int, Measured]) -> Figure:
    figure = new_figure(11, 4.5)
    left, right = figure.subplots(1, 2)
    sizes = [2.0**-halvings for halvings in HALVINGS]
    for number, (k, each) in enumerate(found.items()):
        label = f"{_name(k)}, groups {' x '.join(map(str, each.groups))}: order {each.order:.2f}"
        size = 13 - 3 * number  # one inside the other: the errors are nearly the same
        left.loglog(
            sizes, each.errors, "o", color=LINE_COLOURS[number], fillstyle="none", markersize=size, markeredgewidth=1.8,
            label=label,
        )  # fmt: skip
    start = 4 * max(each.errors[0] for each in found.values())
    for order, style in ((n + 1, ":"), (n + 2, "-")):
        label = f"order {order}" + (", which the theorem asks for" if order == n + 1 else "")
        line = [start * (size / sizes[0]) ** order for size in sizes]
        left.loglog(sizes, line, style, color=GREY, label=label)
    left.set_xscale("log", base=2)
    left.set(xlabel="size of the inputs", ylabel="error", title=f"Error of a product of {n} inputs")
    left.legend(frameon=False, fontsize=8.5, loc="upper left")

    counts = range(2, 28)
    for (k, each), colour in zip(found.items(), LINE_COLOURS, strict=False):
        right.semilogy(counts, [bound(m, k) for m in counts], "-", color=colour, alpha=0.4, linewidth=1.5)
        # Where groups of one have to fill up, as for primes, a layer does nothing.
        whole = [m for m in counts if min(best_groups(m, k)) > 1]
        label = f"{_name(k)}: {each.neurons} neurons for n = {n}"
        right.semilogy(whole, [count_neurons(best_groups(m, k)) for m in whole], "o", color=colour, label=label)
        right.semilogy(n, each.neurons, "o", color=colour, fillstyle="none", markersize=11, markeredgewidth=1.8)
    right.plot([], [], "-", color=GREY, label="$n^{(k-1)/k}\\,2^{n^{1/k}}$")
    right.set(xlabel="inputs n", ylabel="neurons", title="Neurons of k layers, and the theorem's expression")
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    right.legend(frameon=False, fontsize=8.5, loc="upper left")
    for axes in (left, right):
        tidy(axes)
    return figure


def _name(layers: int) -> str:
    return f"{layers} layer{'s' if layers > 1 else ''}"
