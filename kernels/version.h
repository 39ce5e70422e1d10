/* version.h - the version of espalier, which program, library and GPU backend must share. */
#ifndef ESP_VERSION_H
#define ESP_VERSION_H

#define ESP_VERSION "0.1.0"

#endif
