/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MPFLOW_STOP_H
#define MPFLOW_STOP_H

#define STOPPED	"stopped by a signal"

int stop_open(void);

#endif
