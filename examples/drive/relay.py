"""Keep a relay half-way between two stations, whose positions and signal the run tells: docs/drive.md.

./manet run examples/drive/relay.toml
./manet view --control                              # in another terminal; prints an address
.venv/bin/python examples/drive/relay.py ADDRESS
"""

import json
import sys

from websockets.sync.client import connect

FIRST, RELAY, LAST = "sta1", "sta2", "sta3"


def drive(address):
    """Follow the run of the view at `address` to its end; each time the ends have moved, move the relay between them."""
    url = address.replace("http://", "ws://").replace("/?", "/api/positions?") + "&rate=2&links=1"
    with connect(url) as run:
        for line in run:
            state = json.loads(line)
            if "error" in state:
                sys.exit(state["error"])
            if "end" in state:
                return
            for link in state.get("links", ()):
                if RELAY in (link["from"], link["to"]):
                    print(f"{state['t_s']:6.1f} s  {link['from']} -> {link['to']}  {link['rssi_dbm']:.0f} dBm")
            first, last = state["positions"][FIRST], state["positions"][LAST]
            middle = [round((a + b) / 2, 1) for a, b in zip(first[:2], last[:2], strict=True)]
            if middle != state["positions"][RELAY][:2]:
                run.send(json.dumps({"station": RELAY, "position": middle}))


if __name__ == "__main__":
    drive(sys.argv[1])
