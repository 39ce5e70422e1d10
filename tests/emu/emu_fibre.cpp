/* emu_fibre.cpp - see emu_fibre.h.
 *
 * A new fibre's stack looks as if the fibre had been suspended at the first instruction of
 * emu_fibre_begin(). The stack contains saved registers, which are all 0, and above them the
 * address to return to.
 */
#include "tests/emu/emu_fibre.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define EMU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMU_ASAN 1
#endif
#endif
#ifdef EMU_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#define EMU_UCONTEXT 1
#endif

/* The stacks of the fibres lie one after another, separated by inaccessible pages. */
enum { most_fibres = 1100 };
static const size_t stack_bytes = 256 << 10;
/* Stacks are aligned to pages. Each fibre's data begins at one of `colours` different offsets
 * from the top of its stack. With equal offsets, the cache lines of all threads would be in the
 * same few sets of the processor's caches, and would evict each other.
 */
static const size_t colours = 61, colour_bytes = 5 * 64;

static char *stacks; /* all stacks of fibres */

static size_t page_bytes()
{
    static const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return page;
}

static emu_fibre *leaving; /* the fibre that the last switch suspended */

/* AddressSanitizer knows only two stacks: the host's stack, and one stack that contains the
 * stacks of all fibres. So the sanitizer is not told about a switch between two fibres; telling
 * it would take a quarter of the run time. But the sanitizer's check for use after return must
 * be turned off (asan-use-after-return=0), because it needs an additional stack for each fibre.
 */
#ifdef EMU_ASAN
static struct {
    void *fake_stack;
    const void *stack;
    size_t bytes;
} host;

static void depart(const emu_fibre *from, const emu_fibre *to)
{
    if (from == emu_fibre_host())
        __sanitizer_start_switch_fiber(&host.fake_stack, stacks,
                                       most_fibres * (stack_bytes + page_bytes()));
    else if (to == emu_fibre_host())
        __sanitizer_start_switch_fiber(nullptr, host.stack, host.bytes);
}

static void arrive(const emu_fibre *here)
{
    if (here == emu_fibre_host())
        __sanitizer_finish_switch_fiber(host.fake_stack, nullptr, nullptr);
    else if (leaving == emu_fibre_host())
        __sanitizer_finish_switch_fiber(nullptr, &host.stack, &host.bytes);
}
#else
static void depart(const emu_fibre *, const emu_fibre *)
{
}

static void arrive(const emu_fibre *)
{
}
#endif

static emu_fibre *beginning;

extern "C" void emu_fibre_begin()
{
    emu_fibre *self = beginning;
    arrive(self);
    self->entry();
    abort();
}

/* --------------------------------------------------- switching from one stack to another */

#if defined(__x86_64__)
enum { saved_words = 6 };
asm(".text\n"
    ".type emu_swap_stacks, @function\n"
    "emu_swap_stacks:\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n"
    ".size emu_swap_stacks, . - emu_swap_stacks\n");
#elif defined(__aarch64__)
enum { saved_words = 20 };
asm(".text\n"
    ".type emu_swap_stacks, %function\n"
    "emu_swap_stacks:\n"
    "    sub sp, sp, #160\n"
    "    stp x19, x20, [sp, #0]\n"
    "    stp x21, x22, [sp, #16]\n"
    "    stp x23, x24, [sp, #32]\n"
    "    stp x25, x26, [sp, #48]\n"
    "    stp x27, x28, [sp, #64]\n"
    "    stp x29, x30, [sp, #80]\n"
    "    stp d8, d9, [sp, #96]\n"
    "    stp d10, d11, [sp, #112]\n"
    "    stp d12, d13, [sp, #128]\n"
    "    stp d14, d15, [sp, #144]\n"
    "    mov x9, sp\n"
    "    str x9, [x0]\n"
    "    mov sp, x1\n"
    "    ldp x19, x20, [sp, #0]\n"
    "    ldp x21, x22, [sp, #16]\n"
    "    ldp x23, x24, [sp, #32]\n"
    "    ldp x25, x26, [sp, #48]\n"
    "    ldp x27, x28, [sp, #64]\n"
    "    ldp x29, x30, [sp, #80]\n"
    "    ldp d8, d9, [sp, #96]\n"
    "    ldp d10, d11, [sp, #112]\n"
    "    ldp d12, d13, [sp, #128]\n"
    "    ldp d14, d15, [sp, #144]\n"
    "    add sp, sp, #160\n"
    "    ret\n"
    ".size emu_swap_stacks, . - emu_swap_stacks\n");
#endif

#ifndef EMU_UCONTEXT
extern "C" void emu_swap_stacks(void **save, void *load) __attribute__((visibility("hidden")));

static void prepare(emu_fibre *fibre, char *top)
{
    uintptr_t *words = reinterpret_cast<uintptr_t *>(top) - saved_words - 2;
    for (int i = 0; i < saved_words + 2; i++)
        words[i] = 0;
#ifdef __x86_64__
    words[saved_words] = reinterpret_cast<uintptr_t>(emu_fibre_begin);
#else
    words[11] = reinterpret_cast<uintptr_t>(emu_fibre_begin);
#endif
    fibre->stack_pointer = words;
}
#else
static void prepare(emu_fibre *fibre, char *)
{
    ucontext_t *context = new ucontext_t();
    getcontext(context);
    context->uc_stack.ss_sp = fibre->stack;
    context->uc_stack.ss_size = stack_bytes;
    context->uc_link = nullptr;
    makecontext(context, emu_fibre_begin, 0);
    fibre->stack_pointer = context;
}
#endif

/* ------------------------------------------------------------------ fibres */

emu_fibre *emu_fibre_host()
{
    static emu_fibre host;
    return &host;
}

emu_fibre *emu_fibre_new(void (*entry)())
{
    static size_t made;
    const size_t step = stack_bytes + page_bytes();
    if (!stacks)
        stacks = static_cast<char *>(mmap(nullptr, most_fibres * step, PROT_NONE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    char *stack = stacks + made * step + page_bytes();
    if (stacks == MAP_FAILED || made == most_fibres ||
        mprotect(stack, stack_bytes, PROT_READ | PROT_WRITE) != 0) {
        fputs("emulator: no memory for the stack of a thread\n", stderr);
        abort();
    }
    emu_fibre *fibre = new emu_fibre();
    fibre->stack = stack;
    fibre->entry = entry;
    prepare(fibre, stack + stack_bytes - made++ % colours * colour_bytes);
    return fibre;
}

void emu_fibre_switch(emu_fibre *from, emu_fibre *to)
{
    depart(from, to);
    leaving = from;
    beginning = to;
#ifdef EMU_UCONTEXT
    if (!from->stack_pointer) /* at the first switch from the host's stack */
        from->stack_pointer = new ucontext_t();
    swapcontext(static_cast<ucontext_t *>(from->stack_pointer),
                static_cast<ucontext_t *>(to->stack_pointer));
#else
    emu_swap_stacks(&from->stack_pointer, to->stack_pointer);
#endif
    arrive(from);
}
