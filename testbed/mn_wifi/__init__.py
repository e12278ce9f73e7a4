"""Mininet-WiFi's script API on this testbed: `mn_wifi` and its modules, as an ad hoc script imports them (docs/mininet-wifi.md).

Two ways to run a script. `./manet script FILE.py` changes nothing in it: there `mn_wifi` is this package. Or the first of the
script's mn_wifi imports names this package, `from testbed.mn_wifi.net import Mininet_wifi`; the others then resolve to it,
too, and a script that Python was started with is handed to `./manet script`, for its network lives in a run of its own
(testbed/runs/isolation.py). That happens before the script has done anything.

Written for the API alone: none of Mininet-WiFi's code is used, and it need not be installed. Modules and names without a
counterpart here can be imported, and are refused where they are used.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

NAME = "mn_wifi"
IN_A_RUN = "MANET_SCRIPT_RUN"  # set in the run that executes a script
MANET = Path(__file__).resolve().parents[2] / "manet"


class OurModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """`mn_wifi` is this package, `mn_wifi.x` its module x: the same objects under both names."""

    def __init__(self) -> None:
        self._own_spec: dict[str, importlib.machinery.ModuleSpec | None] = {}

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        """A spec for `mn_wifi` and its modules; None for all others."""
        if fullname.split(".")[0] != NAME:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=not _is_ours(fullname))

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Import our module of this name; for one that is unsupported, a module whose names are refused where they are used."""
        if not _is_ours(spec.name):
            from testbed.mn_wifi.arguments import refuse_others  # needs Mininet, which hand_over() does not

            module = ModuleType(spec.name)
            module.__getattr__ = refuse_others(spec.name, {}, "is not supported; docs/mininet-wifi.md lists what is")  # type: ignore[method-assign]
            return module
        module = importlib.import_module(__name__ + spec.name.removeprefix(NAME))
        self._own_spec[module.__name__] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Ours has been executed under its own name, which it keeps."""
        module.__spec__ = self._own_spec.get(module.__name__, module.__spec__)


def _is_ours(fullname: str) -> bool:
    own = fullname.removeprefix(NAME)[1:]
    return not own or (Path(__file__).parent / f"{own}.py").is_file()


def install() -> None:
    """From here on `import mn_wifi...` means this package, whether or not Mininet-WiFi is installed."""
    if not any(isinstance(finder, OurModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, OurModules())


def hand_over() -> None:
    """Hand over to `./manet script` if this import is the first of the script that Python was started with."""
    main = sys.modules["__main__"]
    script = getattr(main, "__file__", None)
    if IN_A_RUN in os.environ or script is None or main.__spec__ is not None or _importer() is not main.__dict__:
        return
    sys.stdout.flush()
    os.execv(MANET, [str(MANET), "script", script, *sys.argv[1:]])


def _importer() -> dict[str, Any] | None:
    """The names of the module whose import statement this is."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (frame.f_code.co_filename.startswith("<frozen") or frame.f_globals is globals()):
        frame = frame.f_back
    return None if frame is None else frame.f_globals


install()
hand_over()
