"""The folder of the checkout, its Python path, and our own programs in it that a run starts."""

import os
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def python_path() -> str:
    """PYTHONPATH of a program that imports this checkout, and what the caller's PYTHONPATH has."""
    return os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))


@dataclass(frozen=True)
class Programs:
    """Our own programs that a run starts. The defaults are those that setup.sh builds."""

    medium: Path = ROOT / "target" / "release" / "manet-medium"
    kernel_tcp: Path = ROOT / ".build" / "kernel-tcp" / "manet-tcp"
    daemons: Path = ROOT / "target" / "release"  # the folder of the routing daemons
    capture: Path = ROOT / "target" / "release" / "manet-capture"

    def daemon(self, protocol: str) -> Path:
        """Our daemon of this routing protocol."""
        return self.daemons / f"manet-{protocol}"

    def as_arguments(self) -> dict[str, str]:
        """The paths as text, for another process."""
        return {name: str(path) for name, path in vars(self).items()}

    @classmethod
    def from_arguments(cls, paths: dict[str, str]) -> "Programs":
        """The programs that `as_arguments` has described."""
        return cls(**{name: Path(path) for name, path in paths.items()})


BUILT = Programs()
