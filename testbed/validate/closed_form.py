"""Throughput of one saturated sender, and the durations behind it, from IEEE Std 802.11.

One sender and a channel without errors: every packet costs DIFS, the mean backoff (post-backoff included, since
the queue is never empty: 802.11-2012 9.3.3), the exchange and its SIFS. Nothing collides, so this is exact up
to the propagation delay (0.03 us per 10 m), which is left out.

Frame durations: DSSS and HR/DSSS 802.11-2012 16.2.2, 17.2.2 and 17.3.4 (PLCP preamble and header at their own rate,
then the MPDU in whole microseconds), OFDM 18.3.2 and 18.4.3 (16 us preamble, 4 us SIGNAL, 4 us symbols over 16 service
bits, MPDU, 6 tail bits), ERP-OFDM 19.3.2.4 (6 us signal extension, part of the frame's duration).
HT-mixed 802.11-2016 19.3.9.2 and 19.4.3, VHT 21.3.8.2 and 21.4.3: preamble by the number of streams, symbols of 4 us (3.6
with the short guard interval, rounded up to 4 us at the end); VHT counts 4 bytes of delimiter and one encoder per 2160 data
bits a symbol. Their data are QoS data (2 bytes more) after AIFS.
HE SU (802.11ax-2021 27.3.4, 27.4.3): 36 us and an HE-LTF a stream (2x, with a guard interval of 3.2 us 4x), symbols of 12.8 us
and the guard interval; data as of VHT, but without a tail where the code is LDPC (above 20 MHz, from MCS 10 on). No packet
extension.
S1G (802.11ah-2016 23.3.8, 23.4.3): preamble and SIG of 240 us, at 1 MHz 560 us, symbols of 40 us (36 with the short guard
interval) over 8 service bits; every frame is one of an MCS; MCS 10 sends each bit twice.
Control frames: RTS 20, CTS and ACK 14 bytes (8.3.1); CTS and ACK at the fastest basic rate that is not above that of the
frame they answer (802.11-2016 10.6.6.5.2). DIFS = SIFS + 2 slots, EIFS = SIFS + DIFS + ACK at the lowest basic rate (9.3.7).
"""

import math

from testbed.validate.radio import Radio

RTS_BYTES, ACK_BYTES = 20, 14
DSSS_RATES_BPS = (1_000_000, 2_000_000, 5_500_000, 11_000_000)
QOS_BYTES, DELIMITER_BYTES = 2, 4
SUBCARRIERS = {20: 52, 40: 108, 80: 234, 2: 52, 1: 24}  # data subcarriers: 802.11-2016 tables 19-6, 21-5, 802.11ah 23-4
# by MCS: bits a subcarrier, code rate, and the rate of the fastest non-HT answer in Mbit/s (tables 19-27, 21-30, 10-8; ax 27.5)
MODES = (
    (1, 1 / 2, 6), (2, 1 / 2, 12), (2, 3 / 4, 18), (4, 1 / 2, 24), (4, 3 / 4, 36), (6, 2 / 3, 48), (6, 3 / 4, 54), (6, 5 / 6, 54),
    (8, 3 / 4, 54), (8, 5 / 6, 54), (10, 3 / 4, 54), (10, 5 / 6, 54),
)  # fmt: skip
HE_SUBCARRIERS = {20: 234, 40: 468, 80: 980}  # 802.11ax 27.5: RUs of 242, 484 and 996 tones
HE_GUARD_US = {"long": 0.8, "double": 1.6, "quadruple": 3.2}
HE_LAST_CONVOLUTIONAL = 9  # highest MCS without LDPC, in 20 MHz
REPEATED = 10  # MCS of S1G at 1 MHz: MCS 0, each bit twice
S1G_PREAMBLE_US = {1: 560, 2: 240}
LIGHT_M_PER_US = 299.792458


def airtime_us(radio: Radio, mpdu_bytes: int, rate_bps: int) -> float:
    """Duration of one frame in microseconds."""
    if radio.modulation == "dsss" or rate_bps in DSSS_RATES_BPS:
        return 1e6 * radio.plcp_bits / radio.plcp_rate_bps + math.ceil(8 * mpdu_bytes * 1_000_000 / rate_bps)
    if radio.modulation == "s1g":
        return S1G_PREAMBLE_US[radio.width_mhz] + 40 * math.ceil(round((8 + 8 * mpdu_bytes + 6) / (rate_bps * 40e-6), 6))
    bits_per_symbol = rate_bps * 4e-6
    symbols = math.ceil((16 + 8 * mpdu_bytes + 6) / bits_per_symbol)
    return 16 + 4 + 4 * symbols + radio.signal_extension_us


def data_airtime_us(radio: Radio, ip_bytes: int) -> float:
    """Duration of a data frame in microseconds."""
    length = ip_bytes + radio.overhead_bytes
    if radio.mcs is None:
        return airtime_us(radio, length, radio.data_rate_bps)
    if radio.modulation == "he":
        return _he_airtime_us(radio, length + QOS_BYTES)
    streams = radio.streams + radio.mcs // 8 if radio.modulation == "ht" else radio.streams
    bits, code, _ = mode_of(radio)
    per_symbol = round(SUBCARRIERS[radio.width_mhz] * bits * code * streams)
    if radio.modulation == "s1g":
        per_symbol //= 2 if radio.mcs == REPEATED else 1
        symbols = math.ceil((8 + 8 * (length + QOS_BYTES) + 6) / per_symbol)
        whole = math.ceil(symbols * (36 if radio.short_guard else 40) / 40)
        return S1G_PREAMBLE_US[radio.width_mhz] + 40 * (streams - 1) + 40 * whole
    vht = radio.modulation == "vht"
    encoders = math.ceil(per_symbol / 2160) if vht else 1
    payload = 8 * (length + QOS_BYTES + (DELIMITER_BYTES if vht else 0))
    data_us = math.ceil((16 + payload + 6 * encoders) / per_symbol) * (3.6 if radio.short_guard else 4)
    preamble_us = 20 + 8 + 4 + 4 * streams + (4 if vht else 0)
    return preamble_us + 4 * math.ceil(round(data_us / 4, 6)) + radio.signal_extension_us


def _he_airtime_us(radio: Radio, mpdu_bytes: int) -> float:
    bits, code, _ = mode_of(radio)
    per_symbol = math.floor(round(HE_SUBCARRIERS[radio.width_mhz] * bits * code * radio.streams, 6))
    is_ldpc = radio.width_mhz > min(HE_SUBCARRIERS) or (radio.mcs or 0) > HE_LAST_CONVOLUTIONAL
    symbols = math.ceil((16 + 8 * (mpdu_bytes + DELIMITER_BYTES) + (0 if is_ldpc else 6)) / per_symbol)
    guard_us = HE_GUARD_US[radio.guard_interval]
    training_us = radio.streams * ((12.8 if radio.guard_interval == "quadruple" else 6.4) + guard_us)
    return 20 + 4 + 8 + 4 + training_us + symbols * (12.8 + guard_us)


def mode_of(radio: Radio) -> tuple[int, float, int]:
    """Bits a subcarrier, code rate and non-HT reference rate (Mbit/s) of the profile's MCS."""
    mcs = 0 if radio.mcs == REPEATED and radio.modulation == "s1g" else radio.mcs or 0
    return MODES[mcs % 8 if radio.modulation == "ht" else mcs]


def answered_rate_bps(radio: Radio) -> int:
    """The rate that limits that of the ACK of data."""
    if radio.modulation == "s1g":  # no non-HT frames: that of its own mode
        bits, code, _ = mode_of(radio)
        per_symbol = SUBCARRIERS[radio.width_mhz] * bits * code * radio.streams / (2 if radio.mcs == REPEATED else 1)
        return round(per_symbol * 1e6 / (36 if radio.short_guard else 40))
    return radio.data_rate_bps if radio.mcs is None else mode_of(radio)[2] * 1_000_000


def answer_us(radio: Radio, rate_bps: int) -> float:
    """Duration of the CTS or ACK to a frame sent at `rate_bps`, in microseconds; at this rate if all basic rates are faster."""
    return airtime_us(radio, ACK_BYTES, max((rate for rate in radio.basic_rates_bps if rate <= rate_bps), default=rate_bps))


def difs_us(radio: Radio) -> float:
    """DIFS in microseconds: SIFS and two slots (802.11-2012 9.3.7), or AIFS."""
    return radio.sifs_us + radio.aifsn * radio.slot_us


def eifs_us(radio: Radio) -> float:
    """EIFS in microseconds: SIFS, DIFS and an ACK at the lowest basic rate (802.11-2012 9.3.7)."""
    return radio.sifs_us + difs_us(radio) + airtime_us(radio, ACK_BYTES, radio.eifs_ack_rate_bps)


def success_us(radio: Radio, ip_bytes: int, rts: bool) -> float:
    """Microseconds from the first bit of an exchange to the end of the DIFS after it."""
    sifs = radio.sifs_us
    time = data_airtime_us(radio, ip_bytes) + sifs + answer_us(radio, answered_rate_bps(radio)) + difs_us(radio)
    if rts:
        time += airtime_us(radio, RTS_BYTES, radio.control_rate_bps) + sifs
        time += answer_us(radio, radio.control_rate_bps) + sifs
    return time


def mean_backoff_us(radio: Radio) -> float:
    """Mean backoff at the smallest window, uniform over 0..W-1, in microseconds."""
    return (radio.windows[0] - 1) / 2 * radio.slot_us


def single_sender_bps(radio: Radio, ip_bytes: int, rts: bool, distance_m: float = 0.0) -> float:
    """Throughput of one saturated sender in bit/s of IP packets; a profile with propagation delay counts it for `distance_m`."""
    frames = (4 if rts else 2) if radio.propagation_delay else 0
    away_us = frames * distance_m / LIGHT_M_PER_US
    return 8 * ip_bytes / (success_us(radio, ip_bytes, rts) + mean_backoff_us(radio) + away_us) * 1e6
