"""The colours of fates and flows in page.css: any two can be told apart, with normal sight and with each colour blindness.

Distances are Euclidean in OKLab, times 100 (B. Ottosson, 2020). Dichromacy as in G. M. Machado, M. M. Oliveira and L. A. F.
Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency", IEEE TVCG 15(6), 2009, severity 1.0.
Contrast as in WCAG 2.2, 1.4.11.
"""

import itertools
import re

import numpy as np
import pytest

from testbed.view.app import PAGE

FATES = ("delivered", "collision", "hidden", "weak", "error", "busy", "nav", "broadcast")
FLOWS = tuple(f"flow{number}" for number in range(1, 7))
SIGHT = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_CONES = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
TO_LAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]
MIN_DISTANCE, MIN_CONTRAST = 15.0, 3.0


def palette(theme: str) -> dict[str, str]:
    """The colours of a theme by name."""
    text = (PAGE / "page.css").read_text()
    block = re.search(
        r":root(\[data-theme=\"dark\"\])? \{(?P<dark>[^}]*)\}",
        text[text.index(':root[data-theme="dark"]') if theme == "dark" else 0 :],
    )
    assert block is not None
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{3,6});", block["dark"]))


def linear(colour: str) -> np.ndarray:
    """Linear sRGB of #rgb or #rrggbb."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    values = np.array([int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def oklab(values: np.ndarray) -> np.ndarray:
    return 100 * np.array(TO_LAB) @ np.cbrt(np.array(TO_CONES) @ values)


def distance(one: str, other: str, sight: str) -> float:
    seen = [oklab(np.clip(np.array(SIGHT[sight]) @ linear(colour), 0, 1)) for colour in (one, other)]
    return float(np.linalg.norm(seen[0] - seen[1]))


def contrast(one: str, other: str) -> float:
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def test_distances_and_contrasts_are_those_of_known_colours():
    assert distance("#000", "#fff", "normal") == pytest.approx(100, abs=0.1)
    assert distance("#ff0000", "#00ff00", "normal") > 3 * distance("#b50000", "#5a4a00", "deuteranopia")
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("names", [FATES, FLOWS], ids=["fates", "flows"])
def test_any_two_colours_can_be_told_apart(theme, sight, names):
    colours = palette(theme)
    near = {
        pair: found for pair in itertools.combinations(names, 2)
        if (found := distance(colours[pair[0]], colours[pair[1]], sight)) < MIN_DISTANCE
    }  # fmt: skip
    assert near == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_colour_stands_out_from_the_ground(theme):
    colours = palette(theme)
    faint = {
        (name, ground): found for name in FATES + FLOWS for ground in ("panel", "back")
        if (found := contrast(colours[name], colours[ground])) < MIN_CONTRAST
    }  # fmt: skip
    assert faint == {}
