/* Replays programs of driver calls, one call at a time, and writes down all that a program can notice of each. */
#ifndef REPLAY_H
#define REPLAY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROCESSES = 6, THREADS = 3, OPERATIONS = 96, OUTPUTS = 8, OUTPUT_WORDS = 128, LINE = 2048 };

/* What a place that a call writes to has before, where the program says nothing else. */
#define UNWRITTEN UINT64_C(0xa5a5a5a5a5a5a5a5)

/* What all processes share. */
struct shared {
    _Atomic uint64_t passed_ns;     /* since the start, in virtual time */
    _Atomic pid_t pids[PROCESSES];  /* 0: there is no such process yet, or no longer */
    _Atomic uint32_t completed;     /* how many host functions have run */
    uint32_t order[OPERATIONS * 4]; /* by which operation each was submitted */
    uint64_t outputs[OPERATIONS][OUTPUTS][OUTPUT_WORDS];
    char lines[OPERATIONS][LINE];
};
extern struct shared *shared;
extern _Atomic uint32_t signals; /* how many this process has handled */

/* The clock. Time passes only where the thread that makes a call waits. */
extern __thread bool makes_call;
/* A thread that the calling thread waits for in an operation; others that sleep wake when it waits too. */
void clock_watch(pid_t thread);
/* Until no other thread of the process runs. */
void clock_settle(void);
/* Sets a variable when the driver next waits in a call, in another thread. */
void clock_set_meanwhile(const char *name, const char *value);
/* Does it now if the driver has not waited. */
void clock_do_meanwhile(void);
/* Handles a signal when the driver next waits in a call. */
void clock_raise_meanwhile(void);

/* Makes operation `number` as its line says, in this thread, and writes down what came of it. */
void operation_make(uint32_t number);

#endif
