/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MPFLOW_FLOW_H
#define MPFLOW_FLOW_H

#include "fail.h"
#include "json.h"
#include "options.h"

enum exit_code send_run(struct options *o, struct json *j);
enum exit_code recv_run(struct options *o, struct json *j);

#endif
