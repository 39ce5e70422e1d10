/* emu_fibre.h - a stack of its own for each thread of a block, and the switch between two.
 *
 * A switch saves what the calling convention says a function must keep and swaps the stack
 * pointer: a few nanoseconds in assembly on x86-64 and aarch64, ucontext elsewhere. The
 * address sanitizer is told of each switch from and to the host. Stacks lie between guard pages
 * and are reused.
 */
#ifndef EMU_FIBRE_H
#define EMU_FIBRE_H

#include <cstddef>

struct emu_fibre {
    void *stack_pointer; /* while another fibre runs */
    void *stack;
    void (*entry)();
};

/* A fibre that will run entry(), which must never return. Fibres live as long as the program.
 */
emu_fibre *emu_fibre_new(void (*entry)());

/* The fibre of the caller's own stack: where a launch begins and ends. */
emu_fibre *emu_fibre_host();

void emu_fibre_switch(emu_fibre *from, emu_fibre *to);

/* Has the processor fetch what the switch to a fibre will read. */
static inline void emu_fibre_prefetch(const emu_fibre *fibre)
{
    __builtin_prefetch(fibre->stack_pointer);
    __builtin_prefetch(static_cast<const char *>(fibre->stack_pointer) + 64);
}

#endif
