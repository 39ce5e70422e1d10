/* event_fields.h - lists the members of a recording's lines in tables.
 *
 * A table lists the members of a JSON object in the order in which they are written. Each row
 * also has the member's offset in a struct. event_write.c, event_read.c and event_bytes.c use
 * these tables, so a new member needs only one new row in event_fields.c. The binary records
 * depend on the order of the rows, so a new row must be added at the end of its table.
 */
#ifndef ESP_EVENT_FIELDS_H
#define ESP_EVENT_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

enum esp_member_kind {
    ESP_FIELD_END, /* ends a table */
    ESP_FIELD_INTEGER,
    ESP_FIELD_LARGE, /* int64_t */
    ESP_FIELD_FLOAT, /* a number that is not finite is left out */
    ESP_FIELD_DOUBLE,
    ESP_FIELD_FLAG,     /* bool */
    ESP_FIELD_TEXT,     /* char[size]; it is only shown, so it can be truncated */
    ESP_FIELD_KEPT,     /* const char *, a text that is valid while the event exists */
    ESP_FIELD_GAUGE,    /* const char *, a name that is valid while the recording exists */
    ESP_FIELD_VERDICT,  /* uint8_t, enum esp_verdict */
    ESP_FIELD_REASON,   /* uint8_t, enum esp_reason */
    ESP_FIELD_SOURCE,   /* uint8_t, enum esp_source */
    ESP_FIELD_SETTING,  /* setting number `low` of struct esp_session_values */
    ESP_FIELD_SETTINGS, /* an object with all settings that have no separate member */
    ESP_FIELD_OPEN,     /* begins an object; its members are the rows up to ESP_FIELD_CLOSE */
    ESP_FIELD_CLOSE,
    ESP_FIELD_MODEL,  /* a struct described by `of`; left out if its first member is "" */
    ESP_FIELD_ARRAY,  /* at most `high` structs described by `of`; left out if empty */
    ESP_FIELD_NODES,  /* a pointer to an array of structs; read before all other members */
    ESP_FIELD_TOKEN,  /* the id of a token; the token's text is in the same JSON object */
    ESP_FIELD_TOKENS, /* a pointer to ids of tokens */
    ESP_FIELD_PLACES, /* a pointer to indices of nodes */
    ESP_FIELD_PARENT, /* parent and depth of a node */
    ESP_FIELD_SCORES, /* an array of struct esp_token_score, one for each committed token */
    ESP_FIELD_LAYERS, /* the layers of the tree, which the struct does not contain */
};

/* Flags that say when a member is written, and whether a line must have it. */
enum {
    ESP_FIELD_ALWAYS = 1,   /* written even if it has the value `missing` */
    ESP_FIELD_REQUIRED = 3, /* like ALWAYS; in addition, a line without it is refused */
    ESP_FIELD_FORMULA = 4,  /* left out of lines that would be too long */
};

struct esp_field {
    enum esp_member_kind kind;
    int when;
    const char *name;
    size_t offset;
    double low, high; /* range of a number */
    double missing;   /* value of a number if its member is missing */
    size_t size;      /* size in bytes of a text, or of one entry of an array */
    size_t count; /* for an array or a pointer: offset of the member that counts its entries */
    const struct esp_field *of; /* for MODEL, ARRAY and NODES: the members of the struct */
};

/* Each table lists the recorded members of the struct that its comment names. */
extern const struct esp_field esp_fields_event[];     /* struct esp_event: in all events */
extern const struct esp_field esp_fields_header[];    /* struct esp_recording_header */
extern const struct esp_field esp_fields_iteration[]; /* struct esp_iteration */
extern const struct esp_field esp_fields_node[];      /* struct esp_node */
extern const struct esp_field esp_fields_score[];     /* struct esp_token_score */
extern const struct esp_field esp_fields_layer[];     /* struct esp_tree_layer */
extern const struct esp_field esp_fields_change[];    /* struct esp_change */

/* Describes a type of event: its name, and the members that not all events have. */
struct esp_recorded_type {
    int type;
    const char *name;
    const struct esp_field *fields; /* members of struct esp_event or struct esp_iteration */
};

/* Returns the type of event with this name. If `name` is NULL, returns the type with number
 * `type`. Returns NULL if there is no such type. */
const struct esp_recorded_type *esp_recorded_type(const char *name, int type);

/* These lists have the names that recordings use for enumerators. Each list is indexed by the
 * enumerator and ends with NULL. */
extern const char *const esp_verdict_names[]; /* enum esp_verdict */
extern const char *const esp_reason_names[];  /* enum esp_reason; "" for none */
extern const char *const esp_source_names[];  /* enum esp_source */

/* Returns true if this setting (of espalier_settings.h) is not a member of the header's object
 * `settings`. The oldest settings have separate members. Settings that have a text as their
 * value are not stored in the header, because the text is recorded with the prompts. */
bool esp_has_own_place(int setting);

#endif
