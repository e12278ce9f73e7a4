"""`manet view`: how long a large recorded run takes to open and to scrub in headless Chromium, and the memory of both sides.

The runs are simulated: 30 stations, 900 and 4,700 s, 30 flows of datagrams over one hop, some two and ten million rows of
air.csv. Opening ends when the strip of the whole run and the first frames are drawn; a scrub is a new value of the slider, and
ends with the frames and charts of that instant.
"""

import json
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from testbed.errors import RunError
from testbed.programs import BUILT, ROOT
from tests.bench import Table

STATIONS = 30
SECONDS = (900, 4_700)
SCRUBS = 25
MAX_OPEN_S = 60
RATE_BPS = 60_000


def measure() -> Table:
    columns = ["rows of air.csv", "open s", "scrub ms, median", "scrub ms, largest", "server MB", "frames in the page"]
    table = Table(f"Recorded runs of {STATIONS} stations in the view", columns, "opens in 3 s, scrubs in 200 ms")
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        table.rows.append(["Chromium or Playwright is absent: ./setup.sh --pages", "-", "-", "-", "-", "-"])
        return table
    from testbed.view.tests.serving import view

    for seconds in SECONDS:
        with tempfile.TemporaryDirectory(prefix="manet-bench-view-") as folder:
            run = Path(folder)
            rows = _simulate(run, seconds)
            with view(run) as served, sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                table.rows.append([rows, *_cells(browser, served)])
                browser.close()
    return table


def _cells(browser, served) -> list:
    """The measured cells of a row of the table."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    began = time.monotonic()
    page.goto(served.url)
    while not page.evaluate("window.manetView?.settled() && window.manetView.hasFrames()"):  # the page forbids wait_for_function
        if time.monotonic() - began > MAX_OPEN_S:
            raise RunError(f"the page shows no frames after {MAX_OPEN_S} s")
        time.sleep(0.01)
    opened_s = time.monotonic() - began
    scrubs_ms = [_scrub(page, (number * 377_123) % 1_000_000) for number in range(SCRUBS)]
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    server_mb = int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024
    kept = page.evaluate("window.manetView.framesKept()")
    return [round(opened_s, 2), round(statistics.median(scrubs_ms)), round(max(scrubs_ms)), round(server_mb), kept]


def _scrub(page, value: int) -> float:
    """Milliseconds, in the page, from a new value of the slider to the frames of its window."""
    return page.evaluate(
        """value => new Promise((resolve) => {
          const began = performance.now(), slider = document.getElementById("slider");
          slider.value = String(value);
          slider.dispatchEvent(new Event("input"));
          const look = () => (window.manetView.hasFrames() ? resolve(performance.now() - began) : setTimeout(look, 2));
          requestAnimationFrame(look);
        })""",
        value,
    )


def _simulate(run: Path, seconds: int) -> int:
    """Write a run directory with a simulated air log of `seconds`; returns the number of its rows."""
    names = [f"sta{number}" for number in range(1, STATIONS + 1)]
    stations = [
        {"name": name, "mac": f"02:00:00:00:00:{number:02x}", "position": [(number * 389) % 1000, (number * 211) % 600, 0]}
        for number, name in enumerate(names, start=1)
    ]
    traffic = [
        {"from": a, "to": b, "kind": "cbr", "bytes": 552, "rate_bps": RATE_BPS}
        for a, b in zip(names, names[1:] + names[:1], strict=True)
    ]
    config = {
        "format": "manet-medium/1", "seed": 1, "radio": str(ROOT / "medium/radios/ns2-dsss-2m.toml"), "stations": stations,
        "traffic": traffic, "duration_s": seconds, "outputs": {"air_log": "air.csv", "verdict": "verdict.json"},
    }  # fmt: skip
    (run / "medium.json").write_text(json.dumps(config))
    subprocess.run([BUILT.medium, "sim", run / "medium.json"], check=True, capture_output=True)
    scenario = {"topology": "chain", "nodes": STATIONS, "flows": [], "wires": [], "radio": "ns2-dsss-2m", "routing": "none"}
    (run / "scenario.json").write_text(json.dumps(scenario))
    (run / "run.json").write_text(json.dumps({"format": "manet-run/1", "status": "complete", "epoch_ns": 0}))
    with (run / "air.csv").open("rb") as file:
        return sum(1 for _ in file) - 1
