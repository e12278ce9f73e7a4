"""The medium's program: it alone has the rules of a radio that span several keys, and the ranges that follow from a profile.

`manet-medium reach` refuses a profile that contradicts itself; here the loader asks it, before anything is started.
"""

import json
import re
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

MEDIUM = Path(__file__).resolve().parents[1] / "target" / "release" / "manet-medium"
KEPT = 1024  # answers; a server or an editor asks as long as it runs
_KEY = re.compile(r'key "(?:radio\.)?([\w.]+)": (.+)')


class MediumRefusal(Exception):
    """The medium's program refuses a question; the text is its one line."""


@lru_cache(maxsize=KEPT)
def reach(question: str) -> str:
    """The answer to a question to `manet-medium reach` (medium/src/phy/reach.rs). Raises MediumRefusal, OSError without the
    program."""
    done = subprocess.run([MEDIUM, "reach"], input=question, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MediumRefusal(done.stderr.strip().removeprefix("manet-medium: "))
    return done.stdout


def radio_mistake(radio: Mapping[str, Any]) -> tuple[tuple[str, ...], str] | None:
    """Path of the key and error of a profile, overrides applied, whose values do not fit each other; None: they do. Where the
    medium is not built nothing is known, and a run says that it must be."""
    try:
        reach(json.dumps({"radio": radio}, default=str))
    except OSError:
        return None
    except MediumRefusal as refused:
        found = _KEY.fullmatch(str(refused))
        return (tuple(found[1].split(".")), found[2]) if found else ((), str(refused))
    return None
