/* version.h - the version of espalier: program, library and GPU backend must have the same one.
 */
#ifndef ESP_VERSION_H
#define ESP_VERSION_H

#define ESP_VERSION "0.1.0"

#endif
