/* part_file.h - a list of unfinished files, so that a signal can remove them.
 *
 * A file is written under another name and renamed when it is complete (write_file.h). If a
 * signal ends the program in between, the unfinished file would remain, perhaps gigabytes. So
 * every such file is listed here while it is written. The program's signal handler removes the
 * listed files; the library has no handler of its own.
 */
#ifndef ESP_PART_FILE_H
#define ESP_PART_FILE_H

/* Lists `part`, a file that is about to be created, or an empty folder. `whole` is the name of
 * the file that it becomes, as the user gave it; "" if that is listed already. Returns a number
 * for esp_part_file_end(), or -1 if the list is full: a signal then leaves the file. */
int esp_part_file_begin(const char *part, const char *whole);
/* Removes it from the list: it was renamed or removed. `noted` may be -1. */
void esp_part_file_end(int noted);

/* Removes all listed files, the last one first, and calls `tell` for each with a name that
 * existed. For a signal handler that ends the program: async-signal-safe if `tell` is. */
void esp_part_files_remove(void (*tell)(const char *whole));

#endif
