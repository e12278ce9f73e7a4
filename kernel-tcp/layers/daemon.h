/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The notes of a station's own routing daemon. */
#ifndef DAEMON_H
#define DAEMON_H

#include "layers/state.h"

#define DAEMON_RETRY_NS 1000000000ULL

void daemon_connect(struct listener *listener);
/* Reads notes and gives them to the connections of the station. */
void daemon_read(struct agent *agent, struct listener *listener);

#endif
