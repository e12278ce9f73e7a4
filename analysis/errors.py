"""What a reader of run directories raises: one line that names the file and the remedy."""

from pathlib import Path


class AnalysisError(Exception):
    """A run directory cannot be analysed as it is."""


class CaptureError(AnalysisError):
    """A capture file is missing, foreign or cut short."""


class RunFileError(AnalysisError):
    """Another file of the run directory is missing or not in its format."""


class DiskFullError(AnalysisError):
    """No room for a results file; what was there before is unchanged. Who knows the command adds how to go on."""

    def __init__(self, path: Path, again: str = "") -> None:
        text = f"{path}: disk full; free space elsewhere on this disk (no result must be deleted)"
        super().__init__(f"{text}, then {again}" if again else text)
        self.path = path
