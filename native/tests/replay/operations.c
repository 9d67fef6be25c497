/* One operation of a program, from its line:
 *
 *   call NAME ARGUMENT...      a function of the driver or of NVML
 *   set NAME VALUE, unset NAME a variable of the environment
 *   meanwhile NAME VALUE       sets it while the driver waits in the next call, in another thread
 *   interrupt                  a signal while the driver waits in the next call
 *
 * An argument is a number, or one of
 *
 *   @TEXT      text                        ( A B )   a structure of these words
 *   $I.J.K+N   word K that operation I     [ A B ]   a place to write to, with these words in it before
 *              wrote to its place J, + N   & and %   a host function, and one for a stream, that note what they get
 *   ^I.J       place J of operation I
 *
 * What comes of it is also a line: the result, what was written, and what else a program can notice. */
#include "replay.h"

#include "cuda_min.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARGUMENTS = 14, WORDS = 1 << 16 };

extern char **environ;

struct reading {
    uint32_t number, outputs;
    uint64_t before[OUTPUTS][OUTPUT_WORDS];
};

/* Structures stay where they are, for calls that keep their addresses. */
static uint64_t words[WORDS];
static _Atomic size_t words_used;

static void complete(void *number)
{
    uint32_t at = atomic_fetch_add(&shared->completed, 1);
    if (at < sizeof shared->order / sizeof *shared->order)
        shared->order[at] = (uint32_t)(uintptr_t)number;
}

static void complete_in(CUstream stream, CUresult result, void *number)
{
    (void)stream;
    (void)result;
    complete(number);
}

static uint64_t read_argument(struct reading *r, const char *token, char **rest);

static uint64_t read_words(struct reading *r, char **rest, const char *end, uint64_t *to, size_t room)
{
    for (size_t count = 0; count < room; count++) {
        const char *token = strtok_r(NULL, " ", rest);
        if (token == NULL || strcmp(token, end) == 0)
            break;
        to[count] = read_argument(r, token, rest);
    }
    return (uint64_t)(uintptr_t)to;
}

static uint64_t read_output(struct reading *r, char **rest)
{
    uint32_t place = r->outputs++ % OUTPUTS;
    uint64_t *to = shared->outputs[r->number][place];
    read_words(r, rest, "]", to, OUTPUT_WORDS);
    memcpy(r->before[place], to, sizeof r->before[place]);
    return (uint64_t)(uintptr_t)to;
}

static uint64_t read_structure(struct reading *r, char **rest)
{
    enum { ROOM = 64 };
    size_t at = atomic_fetch_add(&words_used, ROOM);
    if (at + ROOM > WORDS)
        exit(4);
    return read_words(r, rest, ")", words + at, ROOM);
}

/* Words that were never written are zero. */
static uint64_t read_word(const char *token)
{
    unsigned operation = 0, place = 0, word = 0;
    unsigned long long more = 0;
    sscanf(token, "%u.%u.%u+%llu", &operation, &place, &word, &more);
    uint64_t value = shared->outputs[operation % OPERATIONS][place % OUTPUTS][word % OUTPUT_WORDS];
    return value == UNWRITTEN ? 0 : value + more;
}

static uint64_t read_argument(struct reading *r, const char *token, char **rest)
{
    unsigned operation = 0, place = 0;
    switch (token[0]) {
    case '@':
        return (uint64_t)(uintptr_t)strdup(token + 1);
    case '(':
        return read_structure(r, rest);
    case '[':
        return read_output(r, rest);
    case '$':
        return read_word(token + 1);
    case '^':
        sscanf(token + 1, "%u.%u", &operation, &place);
        return (uint64_t)(uintptr_t)shared->outputs[operation % OPERATIONS][place % OUTPUTS];
    case '&':
        return (uint64_t)(uintptr_t)complete;
    case '%':
        return (uint64_t)(uintptr_t)complete_in;
    default:
        return strtoull(token, NULL, 10);
    }
}

typedef int (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                        uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static void *find(const char *name)
{
    const char *library = strncmp(name, "nvml", 4) == 0 ? "libnvidia-ml.so.1" : "libcuda.so.1";
    void *found = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    return found == NULL ? NULL : dlsym(found, name);
}

/* Three functions take a structure by value. */
static int call(const char *name, const uint64_t a[ARGUMENTS])
{
    void *to = find(name);
    CUipcMemHandle memory;
    CUipcEventHandle event;
    errno = 0;
    if (to == NULL)
        return -1;
    if (strncmp(name, "cuIpcOpenMemHandle", 18) == 0) {
        memcpy(&memory, (const void *)(uintptr_t)a[1], sizeof memory);
        return ((int (*)(CUdeviceptr *, CUipcMemHandle, unsigned))to)((CUdeviceptr *)(uintptr_t)a[0], memory,
                                                                      (unsigned)a[2]);
    }
    if (strcmp(name, "cuIpcOpenEventHandle") == 0) {
        memcpy(&event, (const void *)(uintptr_t)a[1], sizeof event);
        return ((int (*)(CUevent *, CUipcEventHandle))to)((CUevent *)(uintptr_t)a[0], event);
    }
    return ((function)to)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13]);
}

static int make(struct reading *r, char *line)
{
    char *rest = NULL;
    uint64_t arguments[ARGUMENTS] = {0};
    const char *what = strtok_r(line, " ", &rest), *name = strtok_r(NULL, " ", &rest);
    if (strcmp(what, "call") == 0) {
        read_words(r, &rest, ";", arguments, ARGUMENTS);
        return call(name, arguments);
    }
    const char *value = strtok_r(NULL, " ", &rest);
    if (strcmp(what, "set") == 0)
        return setenv(name, value, 1);
    if (strcmp(what, "unset") == 0)
        return unsetenv(name);
    if (strcmp(what, "meanwhile") == 0)
        clock_set_meanwhile(name, value);
    if (strcmp(what, "interrupt") == 0)
        clock_raise_meanwhile();
    return 0;
}

/* Of all variables but those by which the facade comes into the process. */
static uint32_t sum_environment(void)
{
    static const char *const others[] = {"LD_", "LAMINA_", "SIMGPU_"};
    uint32_t sum = 0;
    for (char **each = environ; *each != NULL; each++) {
        uint32_t one = 5381;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            if (strncmp(*each, others[i], strlen(others[i])) == 0)
                one = 0;
        for (const char *at = *each; one != 0 && *at != 0; at++)
            one = one * 33 + (unsigned char)*at;
        sum += one;
    }
    return sum;
}

static uint64_t blocked_signals(void)
{
    sigset_t set;
    uint64_t mask = 0;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    for (int i = 1; i < 64; i++)
        mask |= (uint64_t)(sigismember(&set, i) == 1) << i;
    return mask;
}

static int next_descriptor(void)
{
    int file = open("/dev/null", O_RDONLY);
    close(file);
    return file;
}

void operation_make(uint32_t number)
{
    static __thread struct reading r;
    char line[LINE], *to = shared->lines[number];
    r.number = number;
    r.outputs = 0;
    memcpy(line, to, LINE);
    clock_watch(gettid());
    const int result = make(&r, line), error = errno;
    clock_watch(0);
    if (strncmp(to, "call ", 5) == 0)
        clock_do_meanwhile();
    clock_settle();
    size_t used =
        (size_t)snprintf(to, LINE, "%d errno=%d signals=%u mask=%lx environment=%x descriptor=%d |", result, error,
                         atomic_load(&signals), blocked_signals(), sum_environment(), next_descriptor());
    for (uint32_t place = 0; place < r.outputs && place < OUTPUTS; place++)
        for (uint32_t word = 0; word < OUTPUT_WORDS && used < LINE - 64; word++)
            if (shared->outputs[number][place][word] != r.before[place][word])
                used += (size_t)snprintf(to + used, LINE - used, " %u.%u=%lx", place, word,
                                         shared->outputs[number][place][word]);
}
