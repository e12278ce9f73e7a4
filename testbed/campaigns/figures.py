"""The figures of analysis/figures: their names, and whether one fits an experiment."""

import ast
import re
from collections.abc import Iterable

from testbed.programs import ROOT

FIGURES = ROOT / "analysis" / "figures"


def figures() -> list[str]:
    """The figures that can be drawn; read as text, because importing them takes as long as matplotlib."""
    modules = sorted(FIGURES.glob("*.py"))
    return [path.stem for path in modules if re.search(r"^def draw\(", path.read_text(encoding="utf-8"), re.MULTILINE)]


def axes_of(figure: str) -> tuple[str, ...]:
    """The axes that a figure is over (its AXES), which an experiment must have; read as text, too."""
    tree = ast.parse((FIGURES / f"{figure}.py").read_text(encoding="utf-8"))
    stated = (node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "AXES")
    return next((ast.literal_eval(value) for value in stated), ())


def misfit(experiment: str, figure: str, axes: Iterable[str]) -> str | None:
    """The reason why the figure cannot show an experiment with these axes, in one line; None if it can."""
    if figure not in figures():
        return f'no such figure "{figure}"; there are {", ".join(figures())}'
    missing = [axis for axis in axes_of(figure) if axis not in axes]
    if not missing:
        return None
    has = f"has {', '.join(axes)}" if axes else "has none"
    text = f'figure "{figure}" is over the axis {" and ".join(missing)}, but experiment {experiment} {has}; '
    return text + "add it to [axes], name another figure, or none for the general one"
