/* Keeping borrowed memory on the host: what the agent asks a container for that has to return memory (lending.h).
 *
 * The driver moves pages out for others by itself. But the next kernel of the borrower would move them in again, and
 * pages of others out. So the facade tells the driver to leave as much on the host as the agent says. Kernels then read
 * it there, slower. Memory that programs requested as managed memory is left to them and the driver.
 *
 * Example: a container has 4 GiB of borrowed memory in two blocks, and the agent says 3 GiB. At its next launch, all of
 * the first block and half of the second one go to the host. The agent says 0 again: at the next launch both come back.
 */
#ifndef LAMINA_HOSTING_H
#define LAMINA_HOSTING_H

/* Called when a thread is about to launch. Costs a few loads while there is nothing to do. */
void hosting_follow(int device);

/* In a forked child, which has none of this memory. */
void hosting_after_fork(void);

#endif
