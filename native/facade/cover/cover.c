/* lamina-cover FOLDER: mounts the facade from FOLDER over the driver's files in a container that is about to start.
 *
 * A container runtime calls it as a createContainer hook: in the container's mount namespace, after all mounts, also
 * NVIDIA's (by CDI or by a prestart hook), and before the root is changed, so that the node's files are still visible.
 * Nothing of the container runs yet. The mount of the limits shows where the container's root is, and the names of the
 * other mounts show the driver's files; so it needs to know neither the runtime's files nor the image's folders.
 *
 * An image may bring a newer libcuda for forward compatibility. It is covered too. If it is newer than the node's, it
 * becomes the driver below the facade, as NVIDIA's container toolkit would have the loader find it first. */
#include "cover/compat.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define LIMITS "/run/lamina/limits"
#define DRIVER "/run/lamina-driver"
static const char *const libraries[] = {"libcuda.so", "libnvidia-ml.so"};
static const char *const ours[] = {"/run/lamina-driver/", "/usr/local/lamina/"};
enum { LIBRARIES = sizeof libraries / sizeof libraries[0], OURS = sizeof ours / sizeof ours[0] };

struct mounts {
    char **paths;
    size_t count;
};

static int report_failure(const char *what, const char *path)
{
    fprintf(stderr, "lamina-cover: %s %s: %s\n", what, path, strerror(errno));
    return 1;
}

/* The kernel writes spaces and similar characters as a backslash and three octal digits. */
static void unescape_path(char *text)
{
    char *to = text;
    for (const char *from = text; *from != 0; to++) {
        bool escaped = from[0] == '\\' && strspn(from + 1, "01234567") >= 3;
        *to = escaped ? (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0')) : *from;
        from += escaped ? 4 : 1;
    }
    *to = 0;
}

/* The mount points of this namespace: the fifth field of each line. */
static bool read_mounts(struct mounts *mounts)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char *line = NULL, *path;
    size_t room = 0;
    if (file == NULL)
        return false;
    while (getline(&line, &room, file) > 0) {
        char **more = realloc(mounts->paths, (mounts->count + 1) * sizeof *more);
        if (more == NULL || sscanf(line, "%*s %*s %*s %*s %ms", &path) != 1)
            return false;
        unescape_path(path);
        mounts->paths = more;
        mounts->paths[mounts->count++] = path;
    }
    free(line);
    return fclose(file) == 0;
}

static bool is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* The length of the folder that this mount of the limits shows as a root; 0 for other mounts, and for the node's. */
static size_t root_length(const char *path)
{
    size_t length = strlen(path), end = strlen(LIMITS);
    return length > end && strcmp(path + length - end, LIMITS) == 0 ? length - end : 0;
}

/* The container's root without a trailing slash. All mounts that a pod asks for are below it, so one of them that is
 * named like the limits shows a folder of the container. NULL where there is no root, or two next to each other. */
static char *container_root(const struct mounts *mounts)
{
    const char *shortest = NULL;
    for (size_t i = 0; i < mounts->count; i++)
        if (root_length(mounts->paths[i]) > 0 && (shortest == NULL || strlen(mounts->paths[i]) < strlen(shortest)))
            shortest = mounts->paths[i];
    char *root = shortest == NULL ? NULL : strndup(shortest, root_length(shortest));
    for (size_t i = 0; root != NULL && i < mounts->count; i++)
        if (root_length(mounts->paths[i]) > 0 && !is_below(mounts->paths[i], root))
            return NULL;
    return root;
}

/* The library that a path in the container is named after, with any version. NULL for other files and for our own. */
static const char *library_named(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    for (int i = 0; i < OURS; i++)
        if (strncmp(path, ours[i], strlen(ours[i])) == 0)
            return NULL;
    for (int i = 0; i < LIBRARIES; i++) {
        size_t length = strlen(libraries[i]);
        if (strncmp(name, libraries[i], length) == 0 && (name[length] == 0 || name[length] == '.'))
            return libraries[i];
    }
    return NULL;
}

static int mount_read_only(const char *file, const char *path, const char *what)
{
    if (mount(file, path, NULL, MS_BIND, NULL) != 0)
        return report_failure(what, path);
    if (mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) != 0)
        return report_failure("cannot make read-only", path);
    return 0;
}

static int cover_file(const char *folder, const char *name, const char *path)
{
    char facade[4096];
    if (snprintf(facade, sizeof facade, "%s/%s.1", folder, name) >= (int)sizeof facade)
        return errno = ENAMETOOLONG, report_failure("cannot name", folder);
    return mount_read_only(facade, path, "cannot put the facade over");
}

/* Whether a later mount hides it. Then its path does not resolve, or resolves by links of that mount to another place,
 * and that place is read from the node's root. */
static bool is_hidden(const char *path)
{
    char *real = realpath(path, NULL);
    bool elsewhere = real == NULL ? errno == ENOENT || errno == ENOTDIR || errno == ELOOP : strcmp(real, path) != 0;
    free(real);
    return elsewhere;
}

struct newest {
    char *path;
    unsigned major;
};

static bool keep_newest(const char *path, void *data)
{
    struct newest *newest = data;
    if (compat_major(path) <= newest->major)
        return true;
    free(newest->path);
    *newest = (struct newest){strdup(path), compat_major(path)};
    return newest->path != NULL;
}

/* The node's driver below the facade, as a path on the node, if its name says its version. It must be in the folder
 * that the agent mounted, because a link out of it leads to the node's own file. */
static char *driver_of(const char *root)
{
    char *folder = NULL, *link = NULL, *real = NULL;
    if (asprintf(&folder, "%s" DRIVER, root) >= 0 && asprintf(&link, "%s/libcuda.so.1", folder) >= 0)
        real = realpath(link, NULL);
    if (real != NULL && (!is_below(real, folder) || compat_major(real) == 0)) {
        free(real);
        real = NULL;
    }
    free(folder);
    free(link);
    return real;
}

static int use_newer_driver(const char *root)
{
    struct newest newest = {0};
    if (!compat_each(root, keep_newest, &newest))
        return report_failure("cannot read", "the image's libraries for compatibility");
    char *driver = newest.path == NULL ? NULL : driver_of(root);
    int result = 0;
    if (driver != NULL && newest.major > compat_major(driver))
        result = mount_read_only(newest.path, driver, "cannot put the image's newer driver over");
    free(driver);
    free(newest.path);
    return result;
}

static bool cover_compat(const char *path, void *folder)
{
    return cover_file(folder, "libcuda.so", path) == 0;
}

int main(int count, char **arguments)
{
    struct mounts mounts = {0};
    char state[4096];
    if (count != 2 || arguments[1][0] != '/')
        return fputs("usage: lamina-cover FOLDER, an absolute path; a container runtime calls it\n", stderr), 2;
    while (read(STDIN_FILENO, state, sizeof state) > 0)
        ; /* the runtime describes the container; what is needed of that is in the mounts too */
    if (!read_mounts(&mounts))
        return report_failure("cannot read", "/proc/self/mountinfo");
    char *root = container_root(&mounts);
    if (root == NULL)
        return errno = ENOENT, report_failure("cannot find the container's root by its mount of", LIMITS);
    for (size_t i = 0; i < mounts.count; i++) {
        const char *path = mounts.paths[i];
        if (!is_below(path, root))
            continue;
        const char *name = library_named(path + strlen(root));
        if (name != NULL && !is_hidden(path) && cover_file(arguments[1], name, path) != 0)
            return 1;
    }
    if (use_newer_driver(root) != 0)
        return 1;
    return compat_each(root, cover_compat, arguments[1]) ? 0 : 1;
}
