"""Part `kernels`: a scenario in virtual time under each kernel of `manet vm list` that is in the cache."""

import subprocess
import sys
from pathlib import Path

from testbed.guests.kernels import Cache, known_kernels
from testbed.nightly.campaign import MANET, of_folder
from testbed.nightly.figure import Part
from testbed.programs import ROOT

SCENARIO, DURATION_S = "chain5", 10


def figures(history: Path, night: str) -> Part:
    """The throughput under each kernel. Skipped without a kernel; `manet vm fetch` downloads them."""
    cache = Cache()
    there = {name: unpacked for name, kernel in known_kernels().items() if (unpacked := cache.cached(kernel))}
    if not there:
        return Part(skipped="no kernel for guests is installed; `./setup.sh --guests` installs them")
    part = Part()
    for name, unpacked in there.items():
        out = history / night / "kernels" / name
        options = ["--set", f"duration={DURATION_S}", "--clock", "virtual", "--kernel", name, "--out", str(out)]
        done = subprocess.run([*MANET, "run", SCENARIO, *options], cwd=ROOT, stdout=sys.stderr, check=False)
        if done.returncode != 0:
            part.failures.append(
                f"kernels/{name}: `manet run {SCENARIO} --clock virtual --kernel {name}` ended with {done.returncode}"
            )
        part.figures += of_folder(out, history, f"kernels/{name}", unpacked.release).figures
    return part
