/* root.h - the one mutable global: signal handlers and readline's callbacks get no argument, so
 * they find their data here. */
#ifndef ESP_ROOT_H
#define ESP_ROOT_H

struct esp_root {
    struct esp_terminal *terminal;
    struct esp_input *input;
};

extern struct esp_root esp_root;

#endif
