"""The measured links of one run (formats/links.md): a scenario's file, in whatever format, as the medium reads it."""

from pathlib import Path

from mobility import measured
from mobility.measured import LinksError
from scenarios.propagation import LINKS_FILE
from testbed.errors import UsageError
from testbed.stages.site import Site


def write_links(site: Site) -> None:
    """Write links.csv of the run, if its propagation is a trace."""
    file = site.scenario.propagation.file
    if file is None:
        return
    try:
        links = measured.read(Path(file), list(site.scenario.radio_numbers()))
    except LinksError as problem:
        raise UsageError(str(problem)) from None
    (site.directory / LINKS_FILE).write_text(measured.write(links))
