/* Without _GNU_SOURCE, <dlfcn.h> does not declare dladdr(). macOS always has dladdr(), so this
 * header declares it. */
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
