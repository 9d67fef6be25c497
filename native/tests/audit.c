/* An auditor of the loader (LD_AUDIT): redirects requests for the facade to the file that ESCAPE_TO names. */
#include <link.h>
#include <stdlib.h>
#include <string.h>

unsigned la_version(unsigned version)
{
    return version;
}

char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
    (void)cookie, (void)flag;
    const char *file = strrchr(name, '/');
    return strcmp(file == NULL ? name : file + 1, "libcuda.so.1") == 0 ? getenv("ESCAPE_TO") : (char *)name;
}
