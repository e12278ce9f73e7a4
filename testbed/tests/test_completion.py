"""Completion at the shell, by bash itself with the function that argcomplete registers for `manet`."""

import subprocess
import sys
from pathlib import Path

import pytest

from testbed.programs import ROOT

# what bash does at TAB: it calls the function of the command, with the words and the cursor behind the last
SCRIPT = """
source <({register} manet) || exit
COMP_LINE="$*" COMP_POINT=${{#COMP_LINE}} COMP_TYPE=9 COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_python_argcomplete ./manet "${{@: -1}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completions(*words: str) -> list[str]:
    """What bash offers for the last of the words."""
    register = Path(sys.executable).with_name("register-python-argcomplete")
    argv = ["bash", "-c", SCRIPT.format(register=register), "bash", "./manet", *words]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["cam"], ["campaign"]),
        (["campaign", "hv", "--max"], ["--max-pairs"]),
        (["run", "hv-fig1"], ["hv-fig1", "hv-fig10", "hv-fig12"]),
        (["run", "chain5", "--set", "rto_"], ["rto_min="]),
        (["run", "chain5", "--set", "mobility.pau"], ["mobility.pause="]),
        (["run", "chain5", "--clock", "v"], ["virtual"]),
    ],
)
def test_verbs_names_and_keys_are_completed(words, found):
    assert set(found) <= set(completions(*words))
    assert all(word.startswith(words[-1]) for word in completions(*words))
