/* root.c - see root.h. */
#include "tui/app/root.h"

struct esp_root esp_root;
