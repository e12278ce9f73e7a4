// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * reno-f - Dyer and Boppana, "A Comparison of TCP Performance over Three Routing
 * Protocols for Mobile Ad Hoc Networks", MobiHoc 2001, section 3 (fixed RTO).
 *
 * After the second timeout in a row the agent retransmits in the kernel's place, at once
 * and then every RTO, which no longer doubles (stand_by.c). It ignores notices.
 */
#include "layer_table.h"

const struct layer reno_f_layer = { .mechanisms = MECHANISM_FIXED_RTO };
