"""air.pcapng as a stock tshark computes it: the space before each frame, and the time that it takes."""

import csv
import json
import shutil
import subprocess

import pytest

from tests.medium.medium import MEDIUM, ROOT

pytestmark = [
    pytest.mark.skipif(not MEDIUM.exists(), reason="the medium is not built (./setup.sh)"),
    pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed (./setup.sh)"),
]


@pytest.mark.parametrize(
    ("radio", "space_us", "extension_us"),
    [
        ("ns2-dsss-2m", 10, 0),  # aSIFSTime of DSSS
        ("dot11b-11m", 10, 0),
        ("dot11a-54m", 16, 0),
        ("dot11g-54m", 16, 6),  # 10 us after the signal extension, which is silence to Wireshark
    ],
)
def test_tshark_shows_sifs_and_the_time_on_the_air(tmp_path, radio, space_us, extension_us):
    traffic = [
        {"from": "sta1", "to": "sta2", "kind": "cbr", "bytes": size, "rate_bps": 1e5, "start_s": start_s, "stop_s": start_s + 0.1}
        for size, start_s in ((1500, 0.0), (41, 0.2), (100, 0.4))
    ]
    config = {
        "format": "manet-medium/1",
        "radio": str(ROOT / "medium" / "radios" / f"{radio}.toml"),
        "stations": [{"name": f"sta{n}", "mac": f"02:00:00:00:00:0{n}", "position": [50 * n, 0, 0]} for n in (1, 2)],
        "traffic": traffic,
        "outputs": {"air_log": "air.csv", "air_pcapng": "air.pcapng"},
        "duration_s": 0.6,
    }
    (tmp_path / "sim.json").write_text(json.dumps(config))
    subprocess.run([str(MEDIUM), "sim", "sim.json"], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    command = ["tshark", "-n", "-r", str(tmp_path / "air.pcapng"), "-T", "fields"]
    command += ["-e", "wlan_radio.ifs", "-e", "wlan_radio.duration"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    with (tmp_path / "air.csv").open() as file:
        sent = [row for row in csv.DictReader(file) if row["event"] == "tx"]
    assert {row["frame"] for row in sent} == {"rts", "cts", "data", "ack"}
    assert len(sent) == len(done.stdout.splitlines()) > 50
    for row, line in zip(sent, done.stdout.splitlines(), strict=True):
        ifs, duration = line.split("\t")
        assert int(duration) == int(row["airtime_ns"]) / 1000 - extension_us, row
        if row["frame"] != "rts":
            assert int(ifs) == space_us, row


def truth(shown: str) -> bool:
    """A truth value as tshark 4.0 shows it (`1`) or tshark 4.4 (`True`)."""
    return {"1": True, "True": True, "0": False, "False": False}[shown]


@pytest.mark.parametrize(
    ("radio", "overrides", "mcs_field"),
    [
        ("dot11n-ht20", {}, "wlan_radio.11n.mcs_index"),
        ("dot11ac-vht80", {}, "wlan_radio.11ac.mcs"),
        ("dot11ax-he80", {"mcs": 11, "streams": 2, "guard_interval": "double"}, "radiotap.he.data_3.data_mcs"),
    ],
)
def test_tshark_shows_the_mpdus_of_an_a_mpdu(tmp_path, radio, overrides, mcs_field):
    config = {
        "format": "manet-medium/1",
        "radio": str(ROOT / "medium" / "radios" / f"{radio}.toml"),
        "radio_overrides": overrides,
        "queue": {"packets": 100},
        "stations": [{"name": f"sta{n}", "mac": f"02:00:00:00:00:0{n}", "position": [10 * n, 0, 0]} for n in (1, 2)],
        "traffic": [{"from": "sta1", "to": "sta2", "kind": "saturated", "bytes": 1500}],
        "outputs": {"air_log": "air.csv", "air_pcapng": "air.pcapng"},
        "duration_s": 0.05,
    }
    (tmp_path / "sim.json").write_text(json.dumps(config))
    subprocess.run([str(MEDIUM), "sim", "sim.json"], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    fields = [
        "wlan.fc.type_subtype", "radiotap.ampdu.reference", "radiotap.ampdu.flags.lastknown", "radiotap.ampdu.flags.last",
        "wlan_radio.a_mpdu_aggregate_id", "wlan_radio.data_rate", "wlan_radio.snr", mcs_field,
    ]  # fmt: skip
    command = ["tshark", "-n", "-r", str(tmp_path / "air.pcapng"), "-T", "fields"]
    done = subprocess.run(
        [*command, *(word for name in fields for word in ("-e", name))], capture_output=True, text=True, check=True, timeout=60
    )
    assert "Malformed" not in done.stdout
    with (tmp_path / "air.csv").open() as file:
        sent = [row for row in csv.DictReader(file) if row["event"] == "tx"]
    ppdus = 0
    for row, line in zip(sent, done.stdout.splitlines(), strict=True):
        _kind, reference, last_known, last, aggregate, mbps, snr_db, mcs = line.split("\t")
        # signal and noise are whole dBm
        assert float(snr_db) == pytest.approx(float(row["sinr_db"]), abs=1.1), row
        if not row["aggregate"]:
            assert (reference, aggregate) == ("", ""), row
            continue
        place, of = row["aggregate"].split("/")
        ppdus += place == "1"
        assert reference == aggregate == str(ppdus), row
        assert (truth(last_known), truth(last)) == (True, place == of), row
        assert f"-mcs{int(mcs, 0)}-" in row["mode"], row
        assert float(mbps) == pytest.approx(int(row["rate_bps"]) / 1e6, rel=0.01), row
    assert ppdus > 5


def test_tshark_shows_width_guard_interval_and_streams_of_802_11ax(tmp_path):
    config = {
        "format": "manet-medium/1",
        "radio": str(ROOT / "medium" / "radios" / "dot11ax-he20.toml"),
        "radio_overrides": {"width_mhz": 40, "guard_interval": "quadruple", "streams": 2, "mcs": 10, "aggregation": False},
        "stations": [{"name": f"sta{n}", "mac": f"02:00:00:00:00:0{n}", "position": [10 * n, 0, 0]} for n in (1, 2)],
        "traffic": [{"from": "sta1", "to": "sta2", "kind": "saturated", "bytes": 1500}],
        "outputs": {"air_log": "air.csv", "air_pcapng": "air.pcapng"},
        "duration_s": 0.01,
    }
    (tmp_path / "sim.json").write_text(json.dumps(config))
    subprocess.run([str(MEDIUM), "sim", "sim.json"], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    fields = (
        "data_1.ppdu_format", "data_3.data_mcs", "data_5.data_bw_ru_allocation", "data_5.gi", "data_5.ltf_symbol_size",
        "data_6.nsts",
    )  # fmt: skip
    command = ["tshark", "-n", "-r", str(tmp_path / "air.pcapng"), "-Y", "radiotap.he.data_1", "-T", "fields"]
    command += [word for name in fields for word in ("-e", f"radiotap.he.{name}")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    shown = {tuple(int(value, 0) for value in line.split("\t")) for line in done.stdout.splitlines()}
    # radiotap.org, "HE": SU; MCS 10; 40 MHz; 3.2 us; 4x; two space-time streams
    assert shown == {(0, 10, 1, 2, 3, 2)}
    with (tmp_path / "air.csv").open() as file:
        sent = [row["mode"] for row in csv.DictReader(file) if row["event"] == "tx"]
    assert set(sent) == {"he-mcs10-40-2ss-gi3.2", ""}
