"""The radio profile of a scenario: one of medium/radios by its name, or a file of the user's own by its path (formats/radio.md).

A run has a copy of it, RADIO_FILE, beside medium.json: its results stay complete if the file changes, and elsewhere.
"""

from pathlib import Path

RADIOS = Path(__file__).resolve().parents[1] / "medium" / "radios"
ENDING = ".toml"
RADIO_FILE = "radio.toml"  # in a run's folder


def names() -> list[str]:
    """The names of the profiles of medium/radios, in alphabetical order."""
    return sorted(path.stem for path in RADIOS.glob(f"*{ENDING}"))


def is_own(radio: str) -> bool:
    """Whether the value of `radio` in a checked scenario is the path of a user's file."""
    return "/" in radio


def path_of(radio: str) -> Path:
    """The file of a profile, by the value of `radio` in a checked scenario."""
    return Path(radio) if is_own(radio) else RADIOS / f"{radio}{ENDING}"


def name_of(radio: str) -> str:
    """The name of a profile for people: that of its file."""
    return path_of(radio).stem


def of_run(directory: Path, radio: str) -> Path:
    """The profile that the medium.json in `directory` names. Runs of earlier versions name one of medium/radios by its path on
    the host of the run: if that is no file here, this version's profile of that name."""
    recorded, ours = directory / radio, RADIOS / Path(radio).name
    return ours if is_own(radio) and not recorded.exists() and ours.is_file() else recorded
