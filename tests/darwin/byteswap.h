#error "macOS has no <byteswap.h>"
