"""Changes of a station's transmit power and antenna during a run, by the medium's control socket (formats/sockets.md).

Each change is a row of `radios.csv` in the run's folder: `t_ns` (model time), station, and its values from then on. A run that
has this file has no single range of its radios.
"""

from pathlib import Path

from record.run import RADIO_CHANGES
from scenarios.radios import OF_A_STATION
from testbed.stages.control import MediumControl
from testbed.stages.medium import Medium


def change(control: Medium | MediumControl, directory: Path, station: str, **values: float) -> dict[str, float]:
    """Set `tx_power_w`, `antenna_gain_db` or `antenna_height_m` of a station from now on; returns all three. RunError if the
    medium refuses."""
    answer = control.ask("radio", station=station, **values)
    now_ns = control.ask("status")["model_ns"]
    path = directory / RADIO_CHANGES
    if not path.exists():
        path.write_text(",".join(("t_ns", "station", *OF_A_STATION)) + "\n")
    with path.open("a") as file:
        file.write(",".join(str(value) for value in (now_ns, station, *(answer[key] for key in OF_A_STATION))) + "\n")
    return {key: answer[key] for key in OF_A_STATION}
