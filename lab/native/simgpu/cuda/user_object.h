/* User objects: data of a program, for which the driver calls a function of the program when no graph uses it any more.
 */
#ifndef SIMGPU_USER_OBJECT_H
#define SIMGPU_USER_OBJECT_H

#include "cuda/exports.h"

#include <stdbool.h>

/* The references that a graph has to one object. */
struct graph_object {
    CUuserObject object;
    unsigned int count;
    struct graph_object *next;
};

/* What cuGraphRetainUserObject and cuGraphReleaseUserObject do with the list of a graph. */
CUresult user_objects_retain(struct graph_object **list, CUuserObject object, unsigned int count, unsigned int flags);
CUresult user_objects_drop(struct graph_object *list, CUuserObject object, unsigned int count);
/* A clone of a graph has as many references as the original. False without host memory. */
bool user_objects_copy(struct graph_object **to, const struct graph_object *from);
/* The graph is gone. */
void user_objects_release(struct graph_object **objects);

#endif
