/* Threads that charge, discharge, join and clear at once, for ThreadSanitizer; at the end everything adds up.
 * Argument: rounds. */
#include "memory/blocks.h"
#include "shared/account.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, LIMIT = 1000000 };

static struct lamina_limits limits = {.device_count = 1};
static struct account account;
static struct identity self, dead;
static int rounds;

static void *work(void *argument)
{
    uint64_t thread = (uint64_t)(uintptr_t)argument, held = 0;
    struct lamina_slot *slot = account_slot(&account, 0);
    struct block block, replaced;
    for (int round = 0; round < rounds; round++) {
        uint64_t bytes = 1 + (uint64_t)(round * 7919) % (LIMIT / 3);
        if (account_charge(&account, slot, 0, LAMINA_DATA, bytes) == 0) {
            held += bytes;
            block = (struct block){.key = thread << 32 | (uint64_t)round << 9, .bytes = bytes, .class = BLOCK_POINTER};
            assert(blocks_put(&block, &replaced));
            assert(blocks_take(BLOCK_POINTER, block.key, &block) && block.bytes == bytes);
            account_discharge(&account, slot, 0, LAMINA_DATA, bytes);
            held -= bytes;
        }
        assert(account_held(&account, 0) <= (uint64_t)LIMIT * (THREADS + 1));
        if (round % 64 == 0)
            account_join(&account, &dead, -1);
        if (round % 64 == 32)
            account_reclaim(&account, &self, LAMINA_SLOTS);
    }
    assert(held == 0);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[THREADS];
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    rounds = count > 1 ? atoi(arguments[1]) : 1000;
    limits.devices[0].memory_bytes = LIMIT;
    account = (struct account){calloc(1, LAMINA_USAGE_BYTES(1)), &limits, NULL, NULL};
    self = dead = identity_of_this_process();
    dead.owner = LAMINA_OWNER(child, 7, self.owner >> 48);
    assert(account_join(&account, &self, -1) == account_slot(&account, 0));
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    account_reclaim(&account, &self, LAMINA_SLOTS);
    assert(account_held(&account, 0) == 0 && account.usage->devices[0].total == 0);
    puts("held");
    return 0;
}
