/* Declares what <dlfcn.h> has without _GNU_SOURCE, and dladdr(), which macOS also has. */
#include_next <dlfcn.h>
#ifndef TEST_DARWIN_DLFCN_H
#define TEST_DARWIN_DLFCN_H
typedef struct {
    const char *dli_fname;
    void *dli_fbase;
    const char *dli_sname;
    void *dli_saddr;
} Dl_info;
int dladdr(const void *address, Dl_info *info);
#endif
