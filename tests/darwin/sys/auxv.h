#error "macOS has no <sys/auxv.h>"
