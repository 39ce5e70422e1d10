/* part_file.h - lists unfinished files, so that a signal can remove them.
 *
 * A file is written under another name and renamed when it is complete (write_file.h). If a
 * signal ends the program in between, the unfinished file would remain, and it may be gigabytes
 * large. Therefore every unfinished file is listed here while it is written. The program's
 * signal handler removes the listed files; the library has no handler of its own.
 */
#ifndef ESP_PART_FILE_H
#define ESP_PART_FILE_H

/* Lists `part`, a file or folder that is about to be created. `whole` is its final name, as the
 * user gave it; "" if that name is already listed. Returns a number for esp_part_file_end(), or
 * -1 if the list is full. In that case a signal leaves the file behind. */
int esp_part_file_begin(const char *part, const char *whole);
/* Removes a file from the list after it was renamed or removed. `noted` is the number that
 * esp_part_file_begin() returned; it may be -1. */
void esp_part_file_end(int noted);

/* Removes all listed files, the last one first. Calls tell(whole) for each file that existed
 * and has a final name; `whole` is that name. A signal handler that ends the program may call
 * this: it is async-signal-safe if `tell` is. */
void esp_part_files_remove(void (*tell)(const char *whole));

#endif
