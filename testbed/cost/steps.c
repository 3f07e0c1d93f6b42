// SPDX-License-Identifier: GPL-2.0
/* cost-steps SYMBOLS OUT.json LINUX COMMAND...: count the instructions that a kernel of User Mode Linux spends.
 *
 * COMMAND starts LINUX, which is one process: each call of an entry of SYMBOLS is carried out one instruction at a time,
 * from its first one to its return. The program in that kernel switches that on and off by calls of the marker with 1001
 * and 1000 as second argument. Nothing else is slowed down, and virtual time sees no difference.
 *
 * SYMBOLS has lines `ADDRESS WORD NAME` in ascending order; WORD is entry, marker or text.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS		200000
#define STEPS_MAX	200000000ULL	/* of a call: more is no return */
#define BREAK		0xccUL
#define MARK_OFF	1000
#define MARK_ON		1001

struct symbol {
	uint64_t address;
	uint64_t steps;
	long code;			/* what was at an entry before the breakpoint */
	bool stops;
	char name[60];
};

struct call {
	uint32_t entry;
	uint64_t steps;
};

static struct symbol *symbols;
static size_t count, marker = SIZE_MAX;
static struct call calls[CALLS];
static size_t called;
static bool counting;
static pid_t pid;

static _Noreturn __attribute__((format(printf, 1, 2))) void fail(const char *format, ...)
{
	va_list words;

	va_start(words, format);
	fprintf(stderr, "cost-steps: ");
	vfprintf(stderr, format, words);
	fprintf(stderr, "\n");
	exit(2);
}

static void read_symbols(const char *file)
{
	FILE *in = fopen(file, "r");
	char word[8];
	size_t room = 0;

	if (!in)
		fail("%s: %s", file, strerror(errno));
	for (;; count++) {
		if (count == room) {
			room += 4096;
			symbols = realloc(symbols, room * sizeof(*symbols));
			if (!symbols)
				fail("no memory");
		}
		memset(&symbols[count], 0, sizeof(*symbols));
		if (fscanf(in, "%lx %7s %59s%*[^\n]", &symbols[count].address, word, symbols[count].name) != 3)
			break;
		symbols[count].stops = !strcmp(word, "entry");
		if (!strcmp(word, "marker"))
			marker = count;
	}
	fclose(in);
	if (marker == SIZE_MAX)
		fail("%s: no marker among %zu symbols", file, count);
}

static size_t symbol_of(uint64_t address)
{
	static size_t last;
	size_t low = 0, high = count;

	if (symbols[last].address <= address && (last + 1 == count || address < symbols[last + 1].address))
		return last;
	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (symbols[middle].address <= address)
			low = middle;
		else
			high = middle;
	}
	return last = low;
}

static void set_break(struct symbol *s)
{
	errno = 0;
	s->code = ptrace(PTRACE_PEEKTEXT, pid, s->address, NULL);
	if (errno || ptrace(PTRACE_POKETEXT, pid, s->address, (s->code & ~0xffL) | BREAK))
		fail("breakpoint at %s: %s", s->name, strerror(errno));
}

static void clear_break(struct symbol *s)
{
	if (ptrace(PTRACE_POKETEXT, pid, s->address, s->code))
		fail("breakpoint at %s: %s", s->name, strerror(errno));
}

static void each_entry(void (*act)(struct symbol *s))
{
	for (size_t i = 0; i < count; i++)
		if (symbols[i].stops)
			act(&symbols[i]);
}

/* Returns false when the process is gone. */
static bool wait_stop(int *status)
{
	while (waitpid(pid, status, __WALL) < 0)
		if (errno != EINTR)
			fail("waitpid: %s", strerror(errno));
	return WIFSTOPPED(*status);
}

static struct user_regs_struct registers(void)
{
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &r))
		fail("registers: %s", strerror(errno));
	return r;
}

/* One instruction; signals on the way are delivered. */
static void step(void)
{
	int status, signal = 0;

	do {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, (void *)(long)signal) || !wait_stop(&status))
			fail("the kernel ended within a call");
		signal = WSTOPSIG(status);
	} while (signal != SIGTRAP);
}

/* The process stands at the first instruction of entry I, no breakpoint is set. */
static void carry_out(size_t i)
{
	uint64_t stack = registers().rsp, steps = 0;
	uint64_t back = (uint64_t)ptrace(PTRACE_PEEKDATA, pid, stack, NULL);

	if (called == CALLS)
		fail("more than %d calls", CALLS);
	for (;;) {
		uint64_t at = (uint64_t)ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, rip), NULL);

		if (at == back &&
		    (uint64_t)ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, rsp), NULL) == stack + 8)
			break;
		symbols[symbol_of(at)].steps++;
		if (++steps > STEPS_MAX)
			fail("%s does not return", symbols[i].name);
		step();
	}
	calls[called++] = (struct call){ (uint32_t)i, steps };
}

static void mark(bool on)
{
	if (on != counting)
		each_entry(on ? set_break : clear_break);
	counting = on;
}

/* At a breakpoint: the instruction after it is next, and the one under it has not been done. */
static void stopped(void)
{
	struct user_regs_struct r = registers();
	size_t i = symbol_of(r.rip - 1);

	if (symbols[i].address != r.rip - 1 || (i != marker && !(counting && symbols[i].stops)))
		fail("a breakpoint of nobody at %llx", r.rip - 1);
	r.rip--;
	if (ptrace(PTRACE_SETREGS, pid, NULL, &r))
		fail("registers: %s", strerror(errno));
	if (i == marker) {
		clear_break(&symbols[i]);
		step();
		set_break(&symbols[i]);
		if (r.rsi == MARK_ON || r.rsi == MARK_OFF)
			mark(r.rsi == MARK_ON);
		return;
	}
	each_entry(clear_break);
	carry_out(i);
	each_entry(set_break);
}

static void write_all(const char *file)
{
	FILE *out = fopen(file, "w");
	const char *comma = "";

	if (!out)
		fail("%s: %s", file, strerror(errno));
	fprintf(out, "{\"calls\": [");
	for (size_t i = 0; i < called; i++, comma = ", ")
		fprintf(out, "%s[\"%s\", %lu]", comma, symbols[calls[i].entry].name, calls[i].steps);
	fprintf(out, "],\n\"functions\": [");
	comma = "";
	for (size_t i = 0; i < count; i++) {
		if (!symbols[i].steps)
			continue;
		fprintf(out, "%s[\"%s\", %lu]", comma, symbols[i].name, symbols[i].steps);
		comma = ", ";
	}
	fprintf(out, "]}\n");
	if (fclose(out))
		fail("%s: %s", file, strerror(errno));
}

static bool runs(const char *program)
{
	char link[32], found[4096];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	length = readlink(link, found, sizeof(found) - 1);
	if (length < 0)
		return false;
	found[length] = 0;
	return !strcmp(found, program);
}

int main(int argc, char **argv)
{
	bool armed = false;
	int status;

	if (argc < 5)
		fail("usage: cost-steps SYMBOLS OUT.json LINUX COMMAND...");
	read_symbols(argv[1]);
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		execvp(argv[4], argv + 4);
		fail("%s: %s", argv[4], strerror(errno));
	}
	if (pid < 0 || !wait_stop(&status))
		fail("fork: %s", strerror(errno));
	ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
	for (int signal = 0;;) {
		if (ptrace(PTRACE_CONT, pid, NULL, (void *)(long)signal) || !wait_stop(&status))
			break;
		signal = 0;
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
			counting = false;
			armed = runs(argv[3]);
			if (armed)
				set_break(&symbols[marker]);
		} else if (WSTOPSIG(status) == SIGTRAP && armed) {
			stopped();
		} else {
			signal = WSTOPSIG(status);
		}
	}
	write_all(argv[2]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
