"""The folder of the testbed, how it came there, its Python path, and our own programs in it that a run starts."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "package.toml"  # in ROOT of an installed package (debian/rules): name, version, commit
SYSTEM_FOLDERS = tuple(map(Path, ("/bin", "/boot", "/dev", "/etc", "/lib", "/proc", "/run", "/sbin", "/sys", "/usr")))


@dataclass(frozen=True)
class Installation:
    """Where the testbed is: in a checkout, which ./setup.sh builds and which keeps its results, or in an installed package, to
    whose folder nothing is written. `package` is the name of the package, None for a checkout."""

    root: Path
    package: str | None = None
    commit: str | None = None  # of a package: that of its sources

    @classmethod
    def at(cls, root: Path) -> "Installation":
        """The installation in this folder: a package has the file PACKAGE."""
        if not (root / PACKAGE).exists():
            return cls(root)
        import tomllib

        fields = tomllib.loads((root / PACKAGE).read_text(encoding="utf-8"))
        return cls(root, fields["package"], fields.get("commit") or None)

    @property
    def command(self) -> str:
        """The command as users type it."""
        return "./manet" if self.package is None else "manet"

    def reworded(self, text: str) -> str:
        """Help or a message with the commands of this installation. All are written for a checkout; a package has no setup.sh: it
        is installed again, and the options of setup.sh need a checkout."""
        if self.package is None:
            return text
        text = re.sub(r"\./setup\.sh (--\w+)", r"`./setup.sh \1` in a checkout", text.replace("./manet", self.command))
        return re.sub(r"(?<!`)\./setup\.sh", f"apt-get install --reinstall {self.package}", text)

    def results(self) -> Path:
        """The folder of results: `results` of the checkout, as a relative path if that is the current folder. Of a package, and
        of a checkout that this user may not write to, `results` of the current folder; ~/manet-results if that is one of the
        system's or cannot be written."""
        here = Path.cwd()
        own = self.root / "results"
        if self.package is None and os.access(own if own.exists() else self.root, os.W_OK):
            return Path("results") if here == self.root else own
        of_system = here == Path("/") or any(here.is_relative_to(folder) for folder in SYSTEM_FOLDERS)
        return Path.home() / "manet-results" if of_system or not os.access(here, os.W_OK) else Path("results")

    def cache(self, name: str) -> Path:
        """A folder for files that can be made again: in `.build` of the checkout; of a package in the user's cache."""
        if self.package is None:
            return self.root / ".build" / name
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "manet" / name


INSTALLATION = Installation.at(ROOT)


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
