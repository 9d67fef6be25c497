/* The order of a program. Each line of the input is an operation, after the numbers of its process and its thread. The
 * first two processes exist from the start; `fork N` makes process N, `exit` and `kill` end the one that makes them.
 * Each line of the output is what came of an operation, and what the GPU holds after it. */
#include "replay.h"

#include "simgpu_ledger.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { FIRST = 2, LOOK_MS = 5, PATIENCE_LOOKS = 2000, EACH_NS = 20000 };
#define SWEEP_NS UINT64_C(1000000000) /* after which the driver has seen that a process has ended */

struct shared *shared;
_Atomic uint32_t signals;
static struct { uint32_t process, thread; } who[OPERATIONS];
static int orders[PROCESSES][THREADS][2], answers[PROCESSES][2];
static uint32_t own; /* the number of this process */
static bool exists[THREADS];

static void handle(int signal)
{
    (void)signal;
    atomic_fetch_add(&signals, 1);
}

static void run_orders(uint32_t thread);

static void *run_thread(void *thread)
{
    run_orders((uint32_t)(uintptr_t)thread);
    return NULL;
}

static void become(uint32_t number)
{
    own = number;
    memset(exists, 0, sizeof exists);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run_orders(0);
}

static void make_process(uint32_t operation, uint32_t number)
{
    pid_t child = fork();
    if (child == 0)
        become(number);
    atomic_store(&shared->pids[number], child);
    snprintf(shared->lines[operation], LINE, "%d", child > 0);
}

static void make(uint32_t operation)
{
    uint32_t number = 0;
    makes_call = true;
    if (sscanf(shared->lines[operation], "fork %u", &number) == 1)
        make_process(operation, number % PROCESSES);
    else if (strncmp(shared->lines[operation], "exit", 4) == 0)
        exit(0);
    else if (strncmp(shared->lines[operation], "kill", 4) == 0)
        raise(SIGKILL);
    else
        operation_make(operation);
    makes_call = false;
}

static void pass_on(uint32_t thread, uint32_t operation)
{
    pthread_t made;
    if (!exists[thread])
        exists[thread] = pthread_create(&made, NULL, run_thread, (void *)(uintptr_t)thread) == 0;
    if (!exists[thread] || write(orders[own][thread][1], &operation, sizeof operation) < 0)
        _exit(5);
}

/* Thread 0 passes on the orders of the others. */
static void run_orders(uint32_t thread)
{
    uint32_t operation;
    while (read(orders[own][thread][0], &operation, sizeof operation) == sizeof operation) {
        if (who[operation].thread != thread) {
            pass_on(who[operation].thread, operation);
            continue;
        }
        make(operation);
        if (write(answers[own][1], &operation, sizeof operation) < 0)
            _exit(5);
    }
    _exit(0);
}

static bool is_alive(pid_t process)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    bool read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    const char *end = strrchr(text, ')');
    return read && end != NULL && end[2] != 'Z' && end[2] != 'X';
}

static void order(uint32_t operation)
{
    uint32_t process = who[operation].process, answer;
    char *line = shared->lines[operation];
    pid_t pid = atomic_load(&shared->pids[process]);
    struct pollfd waits = {.fd = answers[process][0], .events = POLLIN};
    if (pid == 0) {
        snprintf(line, LINE, "gone");
        return;
    }
    atomic_fetch_add(&shared->passed_ns, EACH_NS);
    if (write(orders[process][0][1], &operation, sizeof operation) < 0)
        exit(5);
    for (int looks = 0; looks < PATIENCE_LOOKS; looks++) {
        if (poll(&waits, 1, LOOK_MS) > 0 && read(waits.fd, &answer, sizeof answer) == sizeof answer)
            return;
        if (!is_alive(pid)) {
            atomic_store(&shared->pids[process], 0);
            atomic_fetch_add(&shared->passed_ns, SWEEP_NS);
            snprintf(line, LINE, "ended");
            return;
        }
    }
    kill(pid, SIGKILL);
    atomic_store(&shared->pids[process], 0);
    snprintf(line, LINE, "hung");
}

static uint32_t read_program(void)
{
    uint32_t count = 0;
    while (count < OPERATIONS &&
           scanf("%u %u %2047[^\n]", &who[count].process, &who[count].thread, shared->lines[count]) == 3) {
        who[count].process %= PROCESSES;
        who[count].thread %= THREADS;
        count++;
    }
    return count;
}

static void begin(void)
{
    for (int process = 0; process < PROCESSES; process++) {
        for (int thread = 0; thread < THREADS; thread++)
            if (pipe(orders[process][thread]) != 0)
                exit(5);
        if (pipe(answers[process]) != 0)
            exit(5);
    }
    const struct sigaction action = {.sa_handler = handle};
    sigaction(SIGUSR1, &action, NULL);
    for (uint32_t process = 0; process < FIRST; process++) {
        pid_t child = fork();
        if (child == 0)
            become(process);
        atomic_store(&shared->pids[process], child);
    }
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 5;
    memset(shared->outputs, UNWRITTEN & 0xff, sizeof shared->outputs);
    const struct simgpu_header *machine = ledger_map();
    uint32_t count = read_program();
    begin();
    for (uint32_t i = 0; i < count; i++) {
        order(i);
        printf("%s\n held=%zu\n", shared->lines[i], ledger_mib_of_living(machine, is_alive));
    }
    printf("order");
    for (uint32_t i = 0; i < atomic_load(&shared->completed) && i < sizeof shared->order / sizeof *shared->order; i++)
        printf(" %u", shared->order[i]);
    puts("");
    fflush(stdout);
    for (uint32_t process = 0; process < PROCESSES; process++)
        if (atomic_load(&shared->pids[process]) != 0)
            kill(atomic_load(&shared->pids[process]), SIGKILL);
    while (wait(NULL) > 0) {
    }
    return 0;
}
