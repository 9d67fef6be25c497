#include "shared/table.h"

#include "shared/facade.h"

#include <dlfcn.h>

#define HOOK(i, name, since) #name,
#define PASS(i, name, since) #name,
#define FORBID(i, name, since) #name,
const char table_names[][64] = {
#include TABLE
};
#undef HOOK
#undef PASS
#undef FORBID

void *table_find_real(unsigned entry)
{
    const struct facade *facade = facade_open();
    return facade == NULL ? NULL : dlsym(facade->driver, table_names[entry]);
}

/* Called by trampoline.S at the first use of an entry. */
__attribute__((visibility("hidden"))) void *lamina_resolve(unsigned entry);
void *lamina_resolve(unsigned entry)
{
    void *target = table_find_real(entry);
    if (target == NULL)
        target = facade_open() == NULL ? (void *)facade_denied : (void *)facade_missing;
    atomic_store(&lamina_table[entry], target);
    return target;
}
