#include "packing.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Nodes of one call whose results are kept: what is free on idle nodes is often the same. */
enum { REMEMBERED = 256 };

/* GPUs of one node that are alike, so that equal choices are evaluated once. */
struct group {
    int32_t kind, memory, cores, slots;
    int size;
    uint64_t members;
};

/* The sums over a set of GPUs, for each share of the usual pods and in total. */
struct sums {
    double amount, price, remainder;
    int idle, gpus;
    double unfit[PACKING_SHARES], fits[PACKING_SHARES], fill[PACKING_SHARES];
};

/* The parts that depend on the node's free CPU and host memory only, the same for every choice of GPUs. */
struct host_fit {
    double cpu;
    double one[PACKING_SHARES]; /* weight of classes that have CPU and memory for one pod, by share */
    double one_total;           /* weight of all classes */
    double most[PACKING_HOSTS]; /* pods that have CPU and memory */
};

struct work {
    const struct packing_cluster *cluster;
    const struct packing_policy *policy;
    const struct packing_ask *ask;
    struct host_fit host;
    struct group groups[PACKING_GPUS];
    struct sums now[PACKING_GPUS], then[PACKING_GPUS], total, tried;
    int taken[PACKING_GPUS];
    int count, tries;
    double before, best;
    uint64_t chosen;
};

static inline double least(double a, double b)
{
    return a < b ? a : b;
}

/* A share without a compute request also needs some compute to be left. */
static inline bool carries(const struct group *gpu, int32_t memory, int32_t cores)
{
    return gpu->slots > 0 && gpu->memory >= memory && gpu->cores >= cores && gpu->cores > 0;
}

static inline double times_in(int32_t have, int32_t share)
{
    return share ? (double)(have / share) : (double)INT32_MAX;
}

/* A table has an entry for each, so an amount outside the GPU counts as none or all of it. */
static inline int32_t thousandths(int32_t have, int32_t full)
{
    if (have <= 0)
        return 0;
    return have >= full ? 1000 : (int32_t)((int64_t)have * 1000 / full);
}

/* The sums of one GPU. A GPU without a free slot takes no pod, but what is free of it still counts as an amount. */
static void measure(const struct work *work, const struct group *gpu, struct sums *sums)
{
    const struct packing_policy *policy = work->policy;
    int64_t kinds = work->cluster->kinds;
    int32_t full_memory = work->cluster->full_memory[gpu->kind], full_cores = work->cluster->full_cores[gpu->kind];
    int32_t memory = thousandths(gpu->memory, full_memory), cores = thousandths(gpu->cores, full_cores);
    int32_t both = memory < cores ? memory : cores;
    if (gpu->slots == 0)
        both = 0;
    double amount = memory * policy->memory_part + cores * policy->cores_part;
    sums->amount = amount;
    sums->price = amount * policy->gpu_price[gpu->kind];
    sums->remainder = policy->remainder[gpu->kind * 1001 + both] + (amount - 1000.0 * both) * policy->unpaired;
    sums->idle = gpu->memory == full_memory && gpu->cores == full_cores;
    sums->gpus = 1;
    for (int64_t j = 0; j < policy->shares; j++) {
        int32_t share_memory = policy->share_memory[j * kinds + gpu->kind], share_cores = policy->share_cores[j];
        bool fits = carries(gpu, share_memory, share_cores);
        double fill = 0;
        if (fits)
            fill = least(gpu->slots, least(times_in(gpu->memory, share_memory), times_in(gpu->cores, share_cores)));
        sums->fits[j] = fits;
        sums->unfit[j] = fits ? 0 : amount;
        sums->fill[j] = fill;
    }
}

static void add(struct sums *to, const struct sums *what, int times, int64_t shares)
{
    double n = times;
    to->amount += n * what->amount;
    to->price += n * what->price;
    to->remainder += n * what->remainder;
    to->idle += times * what->idle;
    to->gpus += times * what->gpus;
    for (int64_t j = 0; j < shares; j++) {
        to->unfit[j] += n * what->unfit[j];
        to->fits[j] += n * what->fits[j];
        to->fill[j] += n * what->fill[j];
    }
}

static void fit_host(const struct packing_policy *policy, double cpu, double memory, struct host_fit *host)
{
    host->cpu = cpu;
    host->one_total = 0;
    memset(host->one, 0, sizeof host->one[0] * (size_t)policy->shares);
    for (int64_t r = 0; r < policy->hosts; r++)
        host->most[r] =
            (double)(int32_t)least(INT32_MAX, least(cpu / policy->host_cpu[r], memory / policy->host_memory[r]));
    for (int64_t m = 0; m < policy->classes; m++) {
        host->one_total += policy->one_weight[m];
        host->one[policy->class_share[m]] += host->most[policy->class_host[m]] >= 1 ? policy->one_weight[m] : 0;
    }
}

/* The waste that the usual pods would leave on a node: less is better. */
static double waste(const struct work *work, const struct host_fit *host, const struct sums *sums)
{
    const struct packing_policy *policy = work->policy;
    int64_t kinds = work->cluster->kinds, kind = work->groups[0].kind;
    double total = sums->price + host->cpu * policy->cpu_price[kind] + sums->remainder + policy->idle[sums->idle];
    double amount = sums->amount, used[PACKING_SHARES], fill[PACKING_SHARES];
    if (sums->idle == sums->gpus)
        total += policy->all_idle;
    total += host->one_total * amount;
    for (int64_t j = 0; j < policy->shares; j++) {
        bool fits = sums->fits[j] >= policy->share_count[j];
        total -= fits ? host->one[j] * (amount - sums->unfit[j]) : 0;
        fill[j] = fits ? floor(sums->fill[j] / policy->share_count[j]) : 0;
        used[j] = policy->share_amount[j * kinds + kind];
    }
    for (int64_t m = 0; m < policy->classes; m++) {
        int32_t j = policy->class_share[m];
        double left = amount - least(host->most[policy->class_host[m]], fill[j]) * used[j];
        total += policy->fill_weight[m] * (left > 0 ? left : 0);
    }
    for (int64_t h = 0; h < policy->hinges; h++) {
        double over = amount * policy->hinge_gpu[h] + host->cpu * policy->hinge_cpu[h];
        total += over > 0 ? over * policy->hinge_weight[h] : 0;
    }
    return total;
}

static double level_of(const struct packing_policy *policy, double gain)
{
    if (!policy->level_count)
        return floor(gain / policy->step);
    int64_t low = 0, high = policy->level_count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (policy->levels[middle] <= gain)
            low = middle + 1;
        else
            high = middle;
    }
    return (double)low;
}

static bool takes(const struct work *work, const struct group *gpu)
{
    return carries(gpu, work->ask->gpu_memory[gpu->kind], work->ask->gpu_cores);
}

static uint64_t lowest_bits(uint64_t from, int count)
{
    uint64_t bits = 0;
    for (; count > 0; count--) {
        bits |= from & -from;
        from &= from - 1;
    }
    return bits;
}

static void weigh(struct work *work)
{
    int64_t shares = work->policy->shares;
    work->tried = work->total;
    for (int g = 0; g < work->count; g++)
        if (work->taken[g]) {
            add(&work->tried, &work->now[g], -work->taken[g], shares);
            add(&work->tried, &work->then[g], work->taken[g], shares);
        }
    double level = level_of(work->policy, work->before - waste(work, &work->host, &work->tried));
    work->tries++;
    if (level <= work->best)
        return;
    work->best = level;
    work->chosen = 0;
    for (int g = 0; g < work->count; g++)
        work->chosen |= lowest_bits(work->groups[g].members, work->taken[g]);
}

/* Every way to take `left` more GPUs, starting at group `from`, the fullest groups first. */
static void choose(struct work *work, int from, int left)
{
    if (left == 0) {
        weigh(work);
        return;
    }
    for (int g = from; g < work->count && work->tries < PACKING_TRIES; g++) {
        if (!takes(work, &work->groups[g]))
            continue;
        int most = work->groups[g].size < left ? work->groups[g].size : left;
        for (int n = most; n > 0 && work->tries < PACKING_TRIES; n--) {
            work->taken[g] = n;
            choose(work, g + 1, left - n);
        }
        work->taken[g] = 0;
    }
}

static void group(struct work *work, int64_t row)
{
    const struct packing_cluster *cluster = work->cluster;
    work->count = 0;
    for (int64_t i = 0; i < cluster->gpus; i++) {
        int64_t at = row * cluster->gpus + i;
        if (cluster->kind[at] < 0)
            break;
        struct group gpu = {cluster->kind[at], cluster->gpu_memory[at], cluster->gpu_cores[at], cluster->slots[at], 1,
                            UINT64_C(1) << i};
        int g = 0;
        while (g < work->count && (work->groups[g].kind != gpu.kind || work->groups[g].memory != gpu.memory ||
                                   work->groups[g].cores != gpu.cores || work->groups[g].slots != gpu.slots))
            g++;
        if (g == work->count) {
            work->groups[work->count++] = gpu;
        } else {
            work->groups[g].size++;
            work->groups[g].members |= gpu.members;
        }
    }
}

static bool enough(const struct work *work, int64_t row)
{
    const struct packing_ask *ask = work->ask;
    if (work->cluster->cpu[row] < ask->cpu || work->cluster->memory[row] < ask->memory || !work->count)
        return false;
    int fit = 0;
    for (int g = 0; g < work->count; g++)
        fit += takes(work, &work->groups[g]) ? work->groups[g].size : 0;
    return fit >= ask->count;
}

static bool alike(const struct packing_cluster *cluster, int64_t a, int64_t b)
{
    size_t size = (size_t)cluster->gpus * sizeof *cluster->kind;
    int64_t x = a * cluster->gpus, y = b * cluster->gpus;
    return cluster->cpu[a] == cluster->cpu[b] && cluster->memory[a] == cluster->memory[b] &&
           !memcmp(cluster->kind + x, cluster->kind + y, size) &&
           !memcmp(cluster->slots + x, cluster->slots + y, size) &&
           !memcmp(cluster->gpu_memory + x, cluster->gpu_memory + y, size) &&
           !memcmp(cluster->gpu_cores + x, cluster->gpu_cores + y, size);
}

static unsigned place_of(const struct packing_cluster *cluster, int64_t row)
{
    uint64_t sum = (uint64_t)(cluster->cpu[row] * 31 + cluster->memory[row]);
    for (int64_t i = 0; i < cluster->gpus; i++)
        sum = sum * 31 + (uint32_t)cluster->gpu_memory[row * cluster->gpus + i];
    return (unsigned)(sum * UINT64_C(0x9E3779B97F4A7C15) >> 32) % REMEMBERED;
}

static void score(struct work *work, int64_t row)
{
    const struct packing_policy *policy = work->policy;
    const struct packing_ask *ask = work->ask;
    work->best = -INFINITY;
    work->chosen = 0;
    group(work, row);
    if (!enough(work, row))
        return;
    memset(&work->total, 0, sizeof work->total);
    memset(work->taken, 0, sizeof work->taken);
    for (int g = 0; g < work->count; g++) {
        struct group *gpu = &work->groups[g];
        measure(work, gpu, &work->now[g]);
        add(&work->total, &work->now[g], gpu->size, policy->shares);
        if (ask->count && takes(work, gpu)) {
            struct group after = *gpu;
            after.memory -= ask->gpu_memory[gpu->kind];
            after.cores -= ask->gpu_cores;
            after.slots--;
            measure(work, &after, &work->then[g]);
        }
    }
    double cpu = (double)work->cluster->cpu[row], memory = (double)work->cluster->memory[row];
    fit_host(policy, cpu, memory, &work->host);
    work->before = waste(work, &work->host, &work->total);
    fit_host(policy, cpu - (double)ask->cpu, memory - (double)ask->memory, &work->host);
    work->tries = 0;
    choose(work, 0, ask->count);
}

int packing_levels(const struct packing_cluster *cluster, const struct packing_policy *policy,
                   const struct packing_ask *ask, const int64_t *rows, int64_t count, double *level, uint64_t *chosen)
{
    if (cluster->gpus > PACKING_GPUS || policy->shares > PACKING_SHARES || policy->classes > PACKING_CLASSES ||
        policy->hosts > PACKING_HOSTS)
        return -1;
    struct work work;
    int64_t remembered[REMEMBERED];
    for (int i = 0; i < REMEMBERED; i++)
        remembered[i] = -1;
    work.cluster = cluster;
    work.policy = policy;
    work.ask = ask;
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] < 0 || rows[i] >= cluster->nodes)
            return -1;
        int64_t *same = &remembered[place_of(cluster, rows[i])];
        if (*same >= 0 && alike(cluster, rows[*same], rows[i])) {
            level[i] = level[*same];
            chosen[i] = chosen[*same];
            continue;
        }
        score(&work, rows[i]);
        level[i] = work.best;
        chosen[i] = work.chosen;
        *same = i;
    }
    return 0;
}

void packing_remainders(const double *chance, int64_t points, const int64_t *offers, int64_t offer_count, double *left,
                        double *scratch)
{
    double *now = left;
    for (int64_t i = 0; i < points; i++)
        now[i] = (double)i / (double)(points - 1);
    int64_t offered = 0;
    for (int64_t o = 0; o < offer_count; o++) {
        if (o) {
            memcpy(now + points, now, (size_t)points * sizeof *now);
            now += points;
        }
        for (; offered < offers[o]; offered++) {
            memset(scratch, 0, (size_t)points * sizeof *scratch);
            for (int64_t s = 1; s < points; s++) {
                if (chance[s] <= 0)
                    continue;
                for (int64_t i = s; i < points; i++) {
                    double gain = now[i] - now[i - s];
                    scratch[i] += chance[s] * (gain > 0 ? gain : 0);
                }
            }
            for (int64_t i = 0; i < points; i++)
                now[i] -= scratch[i];
        }
    }
}
