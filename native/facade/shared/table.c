#include "shared/table.h"

#include "shared/facade.h"
#include "shared/kept_errno.h"
#include "shared/log.h"

#include <dlfcn.h>
#include <stdbool.h>

#define HOOK(i, name, since) #name,
#define PASS(i, name, since) #name,
#define FORBID(i, name, since) #name,
const char table_names[][64] = {
#include TABLE
};
#undef HOOK
#undef PASS
#undef FORBID

#define HOOK(i, name, since) false,
#define PASS(i, name, since) false,
#define FORBID(i, name, since) true,
static const bool forbidden[] = {
#include TABLE
};
#undef HOOK
#undef PASS
#undef FORBID

/* In trampoline.S. */
extern const char lamina_stubs[][16], lamina_forbidden[];

void *table_find_real(unsigned entry)
{
    const struct facade *facade = facade_open();
    return facade == NULL ? NULL : dlsym(facade->driver, table_names[entry]);
}

static void *find_target(unsigned entry)
{
    if (facade_open() == NULL)
        return (void *)facade_denied;
    if (forbidden[entry])
        return (void *)lamina_forbidden;
    void *real = table_find_real(entry);
    return real != NULL ? real : (void *)facade_missing;
}

/* Once for each function. */
static void log_forbidden(unsigned entry)
{
    static atomic_bool logged[ENTRIES];
    if (!atomic_exchange(&logged[entry], true))
        log_line(LOG_WARNING, "%s is not permitted in a container with limits", table_names[entry]);
}

/* Called by trampoline.S at the first use of an entry. What a library answers until the program has initialized it is
 * not stored, and neither is what is forbidden: a forked child has to initialize the library again. */
__attribute__((visibility("hidden"))) void *lamina_resolve(unsigned entry);
void *lamina_resolve(unsigned entry)
{
    KEEP_ERRNO;
    void *target = find_target(entry);
    if (target != (void *)facade_missing && !facade_is_ready(table_names[entry], forbidden[entry]))
        return (void *)facade_denied;
    if (target == (void *)lamina_forbidden)
        log_forbidden(entry);
    else
        atomic_store(&lamina_table[entry], target);
    return target;
}

void table_forget(void)
{
    for (unsigned i = 0; i < ENTRIES; i++)
        atomic_store(&lamina_table[i], (void *)lamina_stubs[i]);
}
