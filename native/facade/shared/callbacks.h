/* Functions that other units register, to be called together in the order of registration. */
#ifndef LAMINA_CALLBACKS_H
#define LAMINA_CALLBACKS_H

enum { MAX_CALLBACKS = 16 };

struct callbacks {
    void (*functions[MAX_CALLBACKS])(void);
    unsigned count;
};

/* Adds a function. One that is already there is not added again. */
void callbacks_add(struct callbacks *callbacks, void (*function)(void));

void callbacks_call(const struct callbacks *callbacks);

#endif
