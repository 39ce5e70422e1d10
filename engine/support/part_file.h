/* part_file.h - files that are being written, so that a signal can remove them.
 *
 * A file is written under another name and renamed when it is whole (write_file.h). Where a
 * signal ends the program in between, that part of it would stay, gigabytes perhaps. So every
 * such file is noted here while it is written. A signal handler of the program removes what is
 * noted; the library has no handler of its own.
 */
#ifndef ESP_PART_FILE_H
#define ESP_PART_FILE_H

/* Notes a file that is about to be made, or an empty folder, under its name `part`. `whole` is
 * what it is a part of, as the user named it; "" if that is noted already. Returns a number for
 * esp_part_file_end(), or -1 if too many are noted: such a file stays if a signal comes. */
int esp_part_file_begin(const char *part, const char *whole);
/* It has its name now, or is removed. `noted` may be -1. */
void esp_part_file_end(int noted);

/* Removes all that is noted, the last first, and calls `tell` for each with a name that was
 * there. For a signal handler that ends the program: async-signal-safe if `tell` is. */
void esp_part_files_remove(void (*tell)(const char *whole));

#endif
