"""A root file system made of programs of this machine: small, and without a download."""

import re
import shutil
import subprocess
from pathlib import Path

USERS = "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33::/:/bin/false\nnobody:x:65534:65534::/:/bin/false\n"
GROUPS = "root:x:0:\nwww-data:x:33:\nnogroup:x:65534:\n"


def made_of(folder: Path, *programs: str) -> Path:
    """Copy the programs, and the libraries that they load, below `folder`; /bin/sh is always there. Returns the folder."""
    for name in ("bin", "usr/bin", "usr/sbin", "etc", "tmp", "run", "root", "var/log/nginx", "var/lib/nginx"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "etc/passwd").write_text(USERS)
    (folder / "etc/group").write_text(GROUPS)
    for program in ("sh", *programs):
        found = shutil.which(program)
        assert found is not None, f"{program} is not installed"
        real = Path(found).resolve()
        _copy(real, folder)
        link = folder / "usr/bin" / program
        if not link.exists():
            link.symlink_to(real)
        printed = subprocess.run(["ldd", real], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(/\S+)", printed):
            _copy(Path(library), folder)
    (folder / "bin/sh").unlink(missing_ok=True)
    (folder / "bin/sh").symlink_to("/usr/bin/sh")
    return folder


def _copy(path: Path, folder: Path) -> None:
    target = folder / path.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy2(path, target)
