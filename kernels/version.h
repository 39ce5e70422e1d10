/* version.h - defines the version of espalier. The program, the library and the GPU backend
 * must have the same version. */
#ifndef ESP_VERSION_H
#define ESP_VERSION_H

#define ESP_VERSION "0.1.0"

#endif
