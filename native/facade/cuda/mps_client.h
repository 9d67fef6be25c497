/* The part of the GPU's processors that the process has as a client of MPS. */
#ifndef LAMINA_MPS_CLIENT_H
#define LAMINA_MPS_CLIENT_H

/* Sets the variable by which the driver learns that part. Call it before the driver reads it: before cuInit, and before
 * a context is made. A program may have removed the variable or raised it; a smaller part of its own is left alone. */
void mps_client_prepare(void);

#endif
