"""The figures of experiments: those of analysis/figures by their names, a user's own by the path of its file; whether one fits.

An own figure is a program. It is executed for the experiment that names it (`manet run`, `manet campaign`) and where a command
names it, but never because a folder of results does: results may come from elsewhere.
"""

import ast
import importlib
import importlib.util
import re
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from record.errors import RunFileError
from scenarios.keys import is_path
from testbed.programs import ROOT

FIGURES = ROOT / "analysis" / "figures"
ENDING = ".py"


def figures() -> list[str]:
    """The figures that can be drawn; read as text, because importing them takes as long as matplotlib."""
    return [path.stem for path in sorted(FIGURES.glob(f"*{ENDING}")) if _draws(path.read_text(encoding="utf-8"))]


def is_own(figure: str) -> bool:
    """Whether it is the path of a user's own file."""
    return is_path(figure, ENDING)


def axes_of(figure: str) -> tuple[str, ...]:
    """The axes that a figure is over (its AXES), which an experiment must have; read as text, too."""
    tree = ast.parse(_file_of(figure).read_text(encoding="utf-8"))
    stated = (node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "AXES")
    return next((ast.literal_eval(value) for value in stated), ())


def misfit(experiment: str, figure: str, axes: Iterable[str]) -> str | None:
    """The reason why the figure cannot show an experiment with these axes, in one line; None if it can."""
    if is_own(figure):
        if (wrong := _problem_of(Path(figure))) is not None:
            return wrong
    elif figure not in figures():
        return f'no such figure "{figure}"; there are {", ".join(figures())}; your own is the path of a file, ./my-figure.py'
    missing = [axis for axis in axes_of(figure) if axis not in axes]
    if not missing:
        return None
    has = f"has {', '.join(axes)}" if axes else "has none"
    text = f'figure "{figure}" is over the axis {" and ".join(missing)}, but experiment {experiment} {has}; '
    return text + "add it to [axes], name another figure, or none for the general one"


def module_of(figure: str) -> ModuleType:
    """The module that draws the figure. RunFileError for an own one that cannot be executed."""
    if not is_own(figure):
        return importlib.import_module(f"analysis.figures.{figure}")
    path = Path(figure)
    spec = importlib.util.spec_from_file_location(f"own_figure_{path.stem.replace('-', '_')}", path)
    assert spec is not None and spec.loader is not None, "a file that ends with .py has a loader"
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as problem:  # whatever the user's program raises
        raise RunFileError(f"{figure}: {_one_line(problem)}; correct the file") from problem
    return module


def drawn(figure: str, module: ModuleType, directory: Path) -> list[Path]:
    """The files that the figure wrote for a folder of results; what an own one raises is a RunFileError that names its line."""
    if not is_own(figure):
        return [Path(path) for path in module.draw(directory)]
    try:
        return [Path(path) for path in module.draw(directory)]
    except Exception as problem:  # whatever the user's program raises
        raise RunFileError(f"{figure}: {_place(problem, figure)}{_one_line(problem)}; correct the file") from problem


def _problem_of(path: Path) -> str | None:
    try:
        text = path.read_text(encoding="utf-8")
        ast.parse(text)
    except OSError as problem:
        return f'there is no figure "{path}" ({problem.strerror}); give the path of a Python file, relative to this file'
    except (SyntaxError, ValueError) as problem:
        return f'figure "{path}" is not Python: {_one_line(problem)}; correct the file'
    return None if _draws(text) else f'figure "{path}" has no function draw(out_dir); add one (docs/extend.md)'


def _draws(text: str) -> bool:
    return re.search(r"^def draw\(", text, re.MULTILINE) is not None


def _file_of(figure: str) -> Path:
    return Path(figure) if is_own(figure) else FIGURES / f"{figure}{ENDING}"


def _one_line(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}"


def _place(problem: BaseException, figure: str) -> str:
    """`line 12: `, the last line of the figure's own file that the exception passed."""
    line, trace = 0, problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == figure:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"line {line}: " if line else ""
