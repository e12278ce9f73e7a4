"""What the running kernel can load."""

import subprocess
from pathlib import Path


def has_module(name: str) -> bool:
    """Loaded, built in, or there to be loaded."""
    if Path(f"/sys/module/{name}").exists():
        return True
    try:
        return subprocess.run(["modinfo", name], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
