"""Throughput of one saturated sender, and the durations behind it, from IEEE Std 802.11.

One sender and a channel without errors: every packet costs DIFS, the mean backoff (post-backoff included, since
the queue is never empty: 802.11-2012 9.3.3), the exchange and its SIFS. Nothing collides, so this is exact up
to the propagation delay (0.03 us per 10 m), which is left out.

Frame durations: DSSS and HR/DSSS 802.11-2012 16.2.2, 17.2.2 and 17.3.4 (PLCP preamble and header at their own rate,
then the MPDU in whole microseconds), OFDM 18.3.2 and 18.4.3 (16 us preamble, 4 us SIGNAL, 4 us symbols over 16 service
bits, MPDU, 6 tail bits), ERP-OFDM 19.3.2.4 (6 us signal extension, part of the frame's duration).
Control frames: RTS 20, CTS and ACK 14 bytes (8.3.1); CTS and ACK at the fastest basic rate that is not above that of the
frame they answer (802.11-2016 10.6.6.5.2). DIFS = SIFS + 2 slots, EIFS = SIFS + DIFS + ACK at the lowest basic rate (9.3.7).
"""

import math

from testbed.validate.radio import Radio

RTS_BYTES, ACK_BYTES = 20, 14


def airtime_us(radio: Radio, mpdu_bytes: int, rate_bps: int) -> float:
    """Duration of one frame in microseconds."""
    if radio.modulation == "dsss":
        return 1e6 * radio.plcp_bits / radio.plcp_rate_bps + math.ceil(8 * mpdu_bytes * 1_000_000 / rate_bps)
    bits_per_symbol = rate_bps * 4e-6
    symbols = math.ceil((16 + 8 * mpdu_bytes + 6) / bits_per_symbol)
    return 16 + 4 + 4 * symbols + radio.signal_extension_us


def answer_us(radio: Radio, rate_bps: int) -> float:
    """Duration of the CTS or ACK to a frame sent at `rate_bps`, in microseconds."""
    return airtime_us(radio, ACK_BYTES, max(rate for rate in radio.basic_rates_bps if rate <= rate_bps))


def difs_us(radio: Radio) -> float:
    """DIFS in microseconds: SIFS and two slots (802.11-2012 9.3.7)."""
    return radio.sifs_us + 2 * radio.slot_us


def eifs_us(radio: Radio) -> float:
    """EIFS in microseconds: SIFS, DIFS and an ACK at the lowest basic rate (802.11-2012 9.3.7)."""
    return radio.sifs_us + difs_us(radio) + airtime_us(radio, ACK_BYTES, radio.eifs_ack_rate_bps)


def success_us(radio: Radio, ip_bytes: int, rts: bool) -> float:
    """Microseconds from the first bit of an exchange to the end of the DIFS after it."""
    sifs = radio.sifs_us
    data = airtime_us(radio, ip_bytes + radio.overhead_bytes, radio.data_rate_bps)
    time = data + sifs + answer_us(radio, radio.data_rate_bps) + difs_us(radio)
    if rts:
        time += airtime_us(radio, RTS_BYTES, radio.control_rate_bps) + sifs
        time += answer_us(radio, radio.control_rate_bps) + sifs
    return time


def mean_backoff_us(radio: Radio) -> float:
    """Mean backoff at the smallest window, uniform over 0..W-1, in microseconds."""
    return (radio.windows[0] - 1) / 2 * radio.slot_us


def single_sender_bps(radio: Radio, ip_bytes: int, rts: bool) -> float:
    """Throughput of one saturated sender in bit/s of IP packets."""
    return 8 * ip_bytes / (success_us(radio, ip_bytes, rts) + mean_backoff_us(radio)) * 1e6
