/* Answers "WORD ASKED NOW" on each line of its input by what a process takes of the agent's answer: -1 for none yet, 0
 * for unknown, or bytes. */
#include "memory/figure_answer.h"

#include <inttypes.h>
#include <stdio.h>

int main(void)
{
    uint64_t word, asked, now, bytes = 0;
    while (scanf("%" SCNu64 " %" SCNu64 " %" SCNu64, &word, &asked, &now) == 3)
        switch (figure_answer(word, asked, now, &bytes)) {
        case FIGURE_NOT_YET:
            puts("-1");
            break;
        case FIGURE_UNKNOWN:
            puts("0");
            break;
        case FIGURE_KNOWN:
            printf("%" PRIu64 "\n", bytes);
            break;
        }
    return 0;
}
