/* A program whose threads change the environment while others initialize the driver, first and again.
 *
 * The program keeps a list of what the environment must be. It compares that with `environ` and with the environment of
 * children. Arguments: variables set before, how ("change", "clear" or "assign"), threads that initialize, calls of
 * each. Prints "ok", or the first difference. */
#include "facade_calls.h"

#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ASSIGNMENTS = 4096, NAME = 32, INITIALIZERS = 8, PUT = 8, ROUNDS = 64, CHILD_EACH = 8 };

static char *expected[MAX_ASSIGNMENTS]; /* assignments */
static size_t count;
static atomic_int begun, left;
static int calls_of_each;
/* As any program needs for threads that walk through `environ` or start children while others set variables. */
static pthread_mutex_t walking = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char *what, const char *name)
{
    printf("%s: %s\n", what, name);
    exit(1);
}

static size_t find(const char *assignment, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(expected[i], assignment, length) == 0 && expected[i][length] == '=')
            return i;
    return count;
}

static void expect(const char *name, const char *value)
{
    char *assignment;
    if (asprintf(&assignment, "%s=%s", name, value) < 0)
        exit(2);
    size_t at = find(name, strlen(name));
    free(at < count ? expected[at] : NULL);
    expected[at] = assignment;
    count += at == count;
}

static void expect_none(const char *name)
{
    size_t at = find(name, strlen(name));
    if (at < count) {
        free(expected[at]);
        expected[at] = expected[--count];
    }
}

/* The variables of the other thread, whose moment is not known. */
static int is_of_another(const char *assignment)
{
    return strncmp(assignment, "OTHER", 5) == 0;
}

static void compare(char **found, const char *where)
{
    size_t seen = 0;
    for (; found != NULL && *found != NULL; found++) {
        if (is_of_another(*found))
            continue;
        size_t at = find(*found, strcspn(*found, "="));
        if (at == count || strcmp(expected[at], *found) != 0)
            fail(where, *found);
        seen++;
    }
    if (seen != count)
        fail(where, "variables are missing");
}

/* The environment of a child by posix_spawn, or by fork and exec. */
static void check_child(int spawns)
{
    static char text[1 << 20], *found[MAX_ASSIGNMENTS];
    char *arguments[] = {(char *)"env", (char *)"-0", NULL}; /* which needs none of the program's libraries */
    int ends[2], status;
    pid_t child;
    size_t length = 0, used = 0;
    posix_spawn_file_actions_t actions;
    if (pipe(ends) != 0 || posix_spawn_file_actions_init(&actions) != 0)
        exit(2);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    if (spawns && posix_spawn(&child, "/usr/bin/env", &actions, NULL, arguments, environ) != 0)
        exit(2);
    if (!spawns && (child = fork()) == 0) {
        dup2(ends[1], 1);
        execv("/usr/bin/env", arguments);
        _exit(127);
    }
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], text + length, sizeof text - length)) > 0;)
        length += (size_t)got;
    close(ends[0]);
    waitpid(child, &status, 0);
    for (char *at = text; at < text + length && used < MAX_ASSIGNMENTS - 1; at += strlen(at) + 1)
        found[used++] = at;
    found[used] = NULL;
    if (status != 0)
        fail("a child", "failed");
    compare(found, spawns ? "a spawned child" : "a forked child");
}

static void *initialize(void *unused)
{
    (void)unused;
    begun = 1;
    for (int i = 0; i < calls_of_each; i++)
        NEED(CALL(cuInit)(0));
    left--;
    return NULL;
}

static void *set_others(void *unused)
{
    (void)unused;
    char name[NAME], value[NAME];
    for (int i = 0; left > 0 || i < ROUNDS; i++) {
        snprintf(name, sizeof name, "OTHER%d", i % 50);
        snprintf(value, sizeof value, "%d", i);
        pthread_mutex_lock(&walking);
        setenv(name, value, 1);
        if (i % 3 == 0)
            unsetenv(name);
        else if (getenv(name) == NULL || strcmp(getenv(name), value) != 0)
            fail("another thread", name);
        pthread_mutex_unlock(&walking);
        usleep(200);
    }
    return NULL;
}

/* What a program may do with its environment in a round. */
static void change(int round, int before, char put[PUT][2 * NAME])
{
    char name[NAME], value[NAME];
    snprintf(value, sizeof value, "%d", round);
    snprintf(name, sizeof name, "SET%d", round % 40);
    setenv(name, value, 1);
    expect(name, value);
    snprintf(name, sizeof name, "PUT%d", round % PUT);
    snprintf(put[round % PUT], sizeof put[0], "%s=%d", name, round);
    putenv(put[round % PUT]);
    expect(name, value);
    if (before == 0)
        return;
    snprintf(name, sizeof name, "BEFORE%d", round % before);
    if (round / before % 2 == 0) {
        unsetenv(name);
        expect_none(name);
    } else {
        setenv(name, value, 0);
        expect(name, value);
    }
}

static void clear(void)
{
    clearenv();
    while (count > 0)
        free(expected[--count]);
    setenv("CLEARED", "1", 1);
    expect("CLEARED", "1");
}

/* Makes an array of the caller the environment. */
static void assign(char **array)
{
    for (size_t i = 0; i < count; i++)
        array[i] = strdup(expected[i]);
    array[count] = NULL;
    environ = array;
}

/* Until the driver has opened its machine and, soon afterwards, read its own variables: no program may change the
 * environment while a library reads it. */
static void wait_for_the_driver(const char *machine)
{
    for (int open = 0; !open;) {
        char line[4096];
        FILE *maps = fopen("/proc/self/maps", "re");
        while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
            open |= strstr(line, machine) != NULL;
        if (maps == NULL || fclose(maps) != 0)
            exit(2);
    }
    usleep(20000);
}

static void go_through(const char *how, int before)
{
    char put[PUT][2 * NAME], *own[MAX_ASSIGNMENTS];
    for (int round = 0; left > 0 || round < ROUNDS; round++) {
        int assigned = strcmp(how, "assign") == 0 && round % 16 == 7;
        pthread_mutex_lock(&walking);
        if (strcmp(how, "clear") == 0 && round % 16 == 7)
            clear();
        change(round, before, put);
        if (assigned)
            assign(own);
        if (round % CHILD_EACH == 0 && round < ROUNDS)
            check_child(round / CHILD_EACH % 2);
        compare(environ, "the program");
        if (assigned && environ != own)
            fail("the program", "environ is another array");
        pthread_mutex_unlock(&walking);
        usleep(100);
    }
    pthread_mutex_lock(&walking);
    compare(environ, "the program at last");
    check_child(1);
    pthread_mutex_unlock(&walking);
    environ = NULL; /* as the arrays end here */
}

int main(int argument_count, char **arguments)
{
    pthread_t threads[INITIALIZERS], other;
    char name[NAME];
    if (argument_count != 5 || atoi(arguments[3]) > INITIALIZERS)
        return 2;
    char *machine = strdup(getenv("SIMGPU_MACHINE"));
    calls_find("linked");
    for (char **each = environ; *each != NULL; each++)
        expected[count++] = strdup(*each);
    for (int i = 0; i < atoi(arguments[1]); i++) {
        snprintf(name, sizeof name, "BEFORE%d", i);
        setenv(name, "before", 1);
        expect(name, "before");
    }
    left = atoi(arguments[3]);
    calls_of_each = atoi(arguments[4]);
    int initializers = left, changes = strcmp(arguments[2], "change") == 0;
    for (int i = 0; i < initializers; i++)
        pthread_create(&threads[i], NULL, initialize, NULL);
    wait_for_the_driver(machine);
    if (changes)
        pthread_create(&other, NULL, set_others, NULL);
    go_through(arguments[2], atoi(arguments[1]));
    for (int i = 0; i < initializers; i++)
        pthread_join(threads[i], NULL);
    if (changes)
        pthread_join(other, NULL);
    puts("ok");
    return 0;
}
