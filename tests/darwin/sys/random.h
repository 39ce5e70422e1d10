#include <stddef.h>
int getentropy(void *bytes, size_t count);
