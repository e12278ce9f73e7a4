// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * lcd - RFC 6069 (TCP-LCD), which Linux does by itself (tcp_ld_RTO_revert(),
 * net/ipv4/tcp_ipv4.c): nothing is loaded for it.
 */
#include "layer_table.h"

const struct layer lcd_layer = {};
