"""Where the checkout is, and the programs of ours in it that a run starts."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Programs:
    """The programs of ours that a run starts, as setup.sh builds them."""

    medium: Path = ROOT / "target" / "release" / "manet-medium"
    kernel_tcp: Path = ROOT / ".build" / "kernel-tcp" / "manet-tcp"
    daemons: Path = ROOT / "target" / "release"  # the folder of the routing daemons

    def daemon(self, protocol: str) -> Path:
        """Our daemon of this routing protocol."""
        return self.daemons / f"manet-{protocol}"

    def as_arguments(self) -> dict[str, str]:
        return {"medium": str(self.medium), "kernel_tcp": str(self.kernel_tcp), "daemons": str(self.daemons)}

    @classmethod
    def from_arguments(cls, paths: dict[str, str]) -> "Programs":
        return cls(**{name: Path(path) for name, path in paths.items()})


BUILT = Programs()
