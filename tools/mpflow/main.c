// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "fail.h"
#include "flow.h"
#include "json.h"
#include "options.h"

int64_t clock_offset_ns;

int main(int argc, char **argv)
{
	struct json json = { .out = stdout };
	struct options options;
	enum exit_code code;

	options_parse(argc, argv, &options);
	clock_offset_ns = options.clock_offset_us * 1000;
	code = options.role == ROLE_SEND ? send_run(&options, &json) : recv_run(&options, &json);
	free(options.bind.item);
	free(options.to.item);
	free(options.primary.item);
	if (fclose(stdout) != 0)
		fail(EXIT_TRANSFER, "cannot write the result to stdout");
	return code;
}
