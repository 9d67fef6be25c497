/* Least expected waste: which node and which GPUs leave the cluster worth most to the pods that usually come.
 *
 * Example: half of the usual pods request half a GPU, the others a whole one, and only one_weight is not 0: what is
 * free of a node is wasted as far as a single pod cannot use it, times how often such a pod comes. Node 1 has an idle
 * GPU, node 2 one that is half free. Where does a pod for half a GPU go?
 *
 *            waste now                               waste with the pod        gain    level, at steps of 0.1
 *   node 1   0: either kind of pod can use the GPU   0.5 of pods x 0.5 GPU     -0.25   -3
 *   node 2   0.5 of pods x 0.5 GPU                   0: nothing is free        +0.25   2
 *
 * It goes to node 2, which has the higher level.
 *
 * The definition in plain Python is tests.placement.packing_definition; a test compares their results. Every
 * quantity is an integer kept in a double below 2^53, so no order of summation can change a result.
 *
 * Units: memory of a GPU in MiB, compute in percent of its time, CPU in thousandths of a core, host memory in MiB,
 * amounts of GPU in millionths of one GPU. Weights are in millionths. */
#ifndef LAMINA_PACKING_H
#define LAMINA_PACKING_H

#include <stdint.h>

enum {
    PACKING_GPUS = 64,     /* GPUs of a node that are considered */
    PACKING_SHARES = 128,  /* different (count, memory, cores) among the usual pods */
    PACKING_CLASSES = 512, /* kinds of usual pods */
    PACKING_HOSTS = 512,   /* different (cpu, memory) among them */
    PACKING_TRIES = 256,   /* sets of GPUs compared for one pod on one node */
};

/* Free capacity, a row for each node. `kind` is -1 where the node has no further GPU. */
struct packing_cluster {
    int64_t nodes, gpus;
    const int64_t *cpu, *memory;                          /* [nodes] */
    const int32_t *kind, *gpu_memory, *gpu_cores, *slots; /* [nodes][gpus] */
    int64_t kinds;
    const int32_t *full_memory, *full_cores; /* [kinds] what an idle GPU of the kind has */
};

/* The usual pods and what leftovers are worth. A share that a kind cannot hold requests INT32_MAX of its memory. */
struct packing_policy {
    int64_t classes, shares, hosts, hinges;
    const double *host_cpu, *host_memory;               /* [hosts] */
    const double *one_weight, *fill_weight;             /* [classes] */
    const int32_t *class_share, *class_host;            /* [classes] */
    const int32_t *share_count, *share_cores;           /* [shares] */
    const int32_t *share_memory;                        /* [shares][kinds] */
    const double *share_amount;                         /* [shares][kinds] of all its GPUs */
    double memory_part, cores_part;                     /* thousandths; how an amount weighs its dimensions */
    const double *gpu_price, *cpu_price;                /* [kinds] */
    const double *hinge_gpu, *hinge_cpu, *hinge_weight; /* [hinges] */
    const double *remainder;                            /* [kinds][1001] by thousandths free of both */
    double unpaired;                                    /* for what is free in one dimension only */
    const double *idle;                                 /* [PACKING_GPUS + 1] by number of idle GPUs */
    double all_idle;
    const double *levels; /* [level_count] ascending bounds; without them a level is `step` wide */
    int64_t level_count;
    double step;
};

struct packing_ask {
    int64_t cpu, memory;
    int32_t count, gpu_cores;
    const int32_t *gpu_memory; /* [kinds] */
};

/* For each of `rows`: in `level` how good the best placement is, or -INFINITY where the pod does not fit, and in
 * `chosen` the GPUs of that placement as bits. Returns 0, or -1 where a bound above is passed. */
__attribute__((visibility("default"))) int packing_levels(const struct packing_cluster *cluster,
                                                          const struct packing_policy *policy,
                                                          const struct packing_ask *ask, const int64_t *rows,
                                                          int64_t count, double *level, uint64_t *chosen);

/* What stays unused of a GPU with i of `points` - 1 parts free once as many pods as the entry of `offers` (ascending)
 * says were offered to it, each of which was placed there or not, whichever left less. A pod takes s parts with
 * chance[s]. `left` is [offer_count][points]; `scratch` has room for `points`. */
__attribute__((visibility("default"))) void packing_remainders(const double *chance, int64_t points,
                                                               const int64_t *offers, int64_t offer_count, double *left,
                                                               double *scratch);

#endif
