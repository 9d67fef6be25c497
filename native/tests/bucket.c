/* Computes one line of arithmetic after another, for comparison with the Python twin.
 *
 *   charge DUE NOW NS RATE BLOCKED    bin WORD NUMBER US BRIEF    batch EACH APART    span FROM TO (into one set)
 *   touch MOMENT (that set)   learn SPAN BEHIND LAUNCHES (into one estimate)  work SPAN BEHIND LAUNCHES
 *   period    wait WORD NOW NS    fit WORD NOW EACH LAUNCHES (of a launch window) */
#include "compute/bucket.h"
#include "compute/estimate.h"
#include "compute/launch_window.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    char line[128];
    struct spans spans = {0};
    struct estimate estimate = {0};
    while (fgets(line, sizeof line, stdin) != NULL) {
        uint64_t a, b, c, d;
        int64_t signed_ns;
        int brief;
        if (sscanf(line, "charge %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNu64 " %" SCNu64, &a, &b, &signed_ns, &c,
                   &d) == 5)
            printf("%" PRIu64 "\n", bucket_charge(a, b, signed_ns, c, d));
        else if (sscanf(line, "bin %" SCNu64 " %" SCNu64 " %" SCNu64 " %d", &a, &b, &c, &brief) == 4) {
            uint32_t charged;
            uint64_t word = bucket_bin_add(a, b, (uint32_t)c, brief != 0, &charged);
            printf("%" PRIu64 " %u\n", word, charged);
        } else if (strncmp(line, "period", 6) == 0)
            printf("%" PRIu64 "\n", WINDOW_PERIOD_NS);
        else if (sscanf(line, "wait %" SCNu64 " %" SCNu64 " %" SCNu64, &a, &b, &c) == 3)
            printf("%" PRIu64 "\n", launch_window_wait(a, b, c));
        else if (sscanf(line, "fit %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &a, &b, &c, &d) == 4)
            printf("%u\n", launch_window_fit(a, b, c, (uint32_t)d));
        else if (sscanf(line, "batch %" SCNu64 " %" SCNu64, &a, &b) == 2)
            printf("%u\n", bucket_batch(a, b, BATCH_NS));
        else if (sscanf(line, "span %" SCNu64 " %" SCNu64, &a, &b) == 2) {
            struct span fresh[SPANS + 1];
            uint64_t sum = 0;
            for (unsigned i = 0, parts = spans_add(&spans, a, b, fresh); i < parts; i++)
                sum += fresh[i].to - fresh[i].from;
            printf("%" PRIu64 "\n", sum);
        } else if (sscanf(line, "touch %" SCNu64, &a) == 1)
            printf("%d\n", spans_touch(&spans, a));
        else if (sscanf(line, "learn %" SCNu64 " %" SCNu64 " %" SCNu64, &a, &b, &c) == 3) {
            estimate_learn(&estimate, (struct measured){a, b, (uint32_t)c});
            printf("%" PRIu64 " %" PRIu64 "\n", estimate.each, estimate.most);
        } else if (sscanf(line, "work %" SCNu64 " %" SCNu64 " %" SCNu64, &a, &b, &c) == 3) {
            bool certain;
            uint64_t work = estimate_work(&estimate, (struct measured){a, b, (uint32_t)c}, &certain);
            printf("%" PRIu64 " %d\n", work, certain);
        } else if (strcmp(line, "forget\n") == 0)
            printf("%d\n", (estimate = (struct estimate){0}).known);
        fflush(stdout);
    }
    return 0;
}
