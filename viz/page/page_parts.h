/* page_parts.h - declares strings with the contents of this folder's files. embed.sh makes the
 * strings.
 *
 * page.html is the page. In it, @NAME@ is replaced by the part with that name.
 */
#ifndef ESP_PAGE_PARTS_H
#define ESP_PAGE_PARTS_H

extern const char esp_page_html[], esp_page_style[], esp_page_script[];
/* SHA-256 of style and script in base64, as a Content-Security-Policy needs them. */
extern const char esp_page_style_hash[], esp_page_script_hash[];

#endif
