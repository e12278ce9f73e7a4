"""What a reader of run directories raises: one line that names the file and the remedy."""


class AnalysisError(Exception):
    """A run directory cannot be analysed as it is."""


class CaptureError(AnalysisError):
    """A capture file is missing, foreign or cut short."""


class RunFileError(AnalysisError):
    """Another file of the run directory is missing or not in its format."""
