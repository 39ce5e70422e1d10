/* style.h - lists the styles of text on the screen. A style says what a text means.
 *
 * Drawing code never names a colour. It names a style, and a theme decides what the style looks
 * like. A style also has default attributes, which a theme can override. So styles differ by
 * more than colour: a drafted token is underlined, a cut node is dim.
 */
#ifndef ESP_STYLE_H
#define ESP_STYLE_H

enum esp_attribute {
    ESP_BOLD = 1,
    ESP_DIM = 2,
    ESP_UNDERLINE = 4,
    ESP_REVERSE = 8,
    ESP_ITALIC = 16,
};

/* X(identifier, key in a theme, attributes) */
#define ESP_STYLES(X)                                                                          \
    X(TEXT, "text", 0)                                                                         \
    X(PROMPT, "prompt", ESP_DIM)                                                               \
    X(DRAFTED, "drafted", ESP_UNDERLINE)                                                       \
    X(BONUS, "bonus", 0)                                                                       \
    X(COMMITTED, "committed", 0)                                                               \
    X(ACCEPTED, "accepted", ESP_BOLD)                                                          \
    X(REJECTED, "rejected", ESP_DIM)                                                           \
    X(CUT, "cut", ESP_DIM)                                                                     \
    X(UNVISITED, "unvisited", 0)                                                               \
    X(CONFIDENCE_LOW, "confidence-low", 0)                                                     \
    X(CONFIDENCE_MID, "confidence-mid", 0)                                                     \
    X(CONFIDENCE_HIGH, "confidence-high", 0)                                                   \
    X(EDGE, "edge", ESP_DIM)                                                                   \
    X(FRAME, "frame", ESP_DIM)                                                                 \
    X(FRAME_FOCUS, "frame-focus", ESP_BOLD)                                                    \
    X(TITLE, "title", 0)                                                                       \
    X(LABEL, "label", ESP_DIM)                                                                 \
    X(VALUE, "value", 0)                                                                       \
    X(GOOD, "good", ESP_BOLD)                                                                  \
    X(BAD, "bad", ESP_BOLD)                                                                    \
    X(WARN, "warn", ESP_BOLD)                                                                  \
    X(KEY, "key", ESP_BOLD)                                                                    \
    X(STATUS, "status", 0)                                                                     \
    X(RECORD, "record", ESP_BOLD)                                                              \
    X(SPARK, "spark", 0)                                                                       \
    X(BAR_DRAFT, "bar-draft", 0)                                                               \
    X(BAR_VERIFY, "bar-verify", 0)                                                             \
    X(BAR_REST, "bar-rest", 0)                                                                 \
    X(SELECTION, "selection", ESP_REVERSE)                                                     \
    X(MATCH, "match", ESP_BOLD | ESP_UNDERLINE)                                                \
    X(HELD, "held", ESP_BOLD)                                                                  \
    X(HEAT_1, "heat-1", ESP_DIM)                                                               \
    X(HEAT_2, "heat-2", 0)                                                                     \
    X(HEAT_3, "heat-3", ESP_UNDERLINE)                                                         \
    X(HEAT_4, "heat-4", ESP_BOLD | ESP_UNDERLINE)                                              \
    X(HEAT_5, "heat-5", ESP_REVERSE)                                                           \
    X(ERROR, "error", ESP_BOLD)

enum esp_style {
#define X(name, key, attributes) ESP_STYLE_##name,
    ESP_STYLES(X)
#undef X
        ESP_STYLE_COUNT
};

const char *esp_style_key(int style); /* such as "confidence-low" */
int esp_style_attributes(int style);  /* the style's default attributes */
int esp_style_find(const char *key);  /* -1 if no style has this key */

#endif
