/* emu_fibre.h - gives each thread of a block its own stack, and switches between stacks.
 *
 * A switch saves the registers that the calling convention preserves, and changes the stack
 * pointer. On x86-64 and aarch64 it is written in assembly and takes a few nanoseconds; other
 * processors use ucontext. The switch tells AddressSanitizer when it changes from or to the
 * host's stack. Stacks lie between guard pages and are reused.
 */
#ifndef EMU_FIBRE_H
#define EMU_FIBRE_H

#include <cstddef>

struct emu_fibre {
    void *stack_pointer; /* valid while another fibre runs */
    void *stack;
    void (*entry)();
};

/* Returns a new fibre, which will run entry(). entry() must not return. Fibres are never freed.
 */
emu_fibre *emu_fibre_new(void (*entry)());

/* Returns the fibre of the host's stack, on which a launch begins and ends. */
emu_fibre *emu_fibre_host();

void emu_fibre_switch(emu_fibre *from, emu_fibre *to);

/* Prefetches the memory that a switch to this fibre will read. */
static inline void emu_fibre_prefetch(const emu_fibre *fibre)
{
    __builtin_prefetch(fibre->stack_pointer);
    __builtin_prefetch(static_cast<const char *>(fibre->stack_pointer) + 64);
}

#endif
