#include "cover/compat.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LIBRARY "libcuda.so."

/* A link in the image could lead out of the container's root, so none is followed. */
static bool is_folder(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool is_file(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISREG(status.st_mode);
}

struct walk {
    bool (*each)(const char *path, void *data);
    void *data;
};

static bool visit_library(const char *path, const struct walk *walk)
{
    return compat_major(path) == 0 || !is_file(path) || walk->each(path, walk->data);
}

/* Calls `visit` for the entries of a folder whose names begin with `prefix`. */
static bool in_folder(const char *folder, const char *prefix, bool (*visit)(const char *, const struct walk *),
                      const struct walk *walk)
{
    bool going = true;
    DIR *open = is_folder(folder) ? opendir(folder) : NULL;
    for (struct dirent *entry; going && open != NULL && (entry = readdir(open)) != NULL;) {
        char *path = NULL;
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        going = asprintf(&path, "%s/%s", folder, entry->d_name) >= 0 && visit(path, walk);
        free(path);
    }
    if (open != NULL)
        closedir(open);
    return going;
}

static bool visit_toolkit(const char *path, const struct walk *walk)
{
    char *folder = NULL;
    bool going = !is_folder(path) ||
                 (asprintf(&folder, "%s/compat", path) >= 0 && in_folder(folder, LIBRARY, visit_library, walk));
    free(folder);
    return going;
}

bool compat_each(const char *root, bool (*each)(const char *path, void *data), void *data)
{
    const struct walk walk = {each, data};
    char *usr = NULL, *local = NULL;
    bool named = asprintf(&usr, "%s/usr", root) >= 0 && asprintf(&local, "%s/usr/local", root) >= 0;
    bool done = named && (!is_folder(usr) || in_folder(local, "cuda", visit_toolkit, &walk));
    free(usr);
    free(local);
    return done;
}

unsigned compat_major(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    unsigned major = 0;
    char dot = 0;
    if (strncmp(name, LIBRARY, strlen(LIBRARY)) != 0 || sscanf(name + strlen(LIBRARY), "%4u%c", &major, &dot) != 2 ||
        dot != '.')
        return 0;
    return major;
}
