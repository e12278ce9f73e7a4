"""Pairing of captured frames with rows of the air log, in order."""

import numpy as np

from analysis.captures.air_packets import _in_step


def test_frames_and_rows_that_one_side_lost_have_no_partner():
    frames, rows = np.array([0, 10, 20, 40]), np.array([-50, 1, 21, 30, 41])
    frame, row = _in_step(frames, rows, earliest=-5, latest=5)
    assert list(zip(frames[frame].tolist(), rows[row].tolist(), strict=True)) == [(0, 1), (20, 21), (40, 41)]
