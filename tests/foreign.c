/* foreign.c - gives the built-in draft another vocabulary; see foreign.h. */
#include "tests/foreign.h"

#include <cJSON.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/support/utf8_stream.h"
#include "tests/check.h"
#include "tests/folder.h"

enum {
    TOKENS = 4096,
    BYTES = 256,
    LONGEST = 128,
    SPECIAL = 2,
    ROOM = TOKENS + BYTES + SPECIAL
};

/* Describes the new vocabulary. */
struct foreign {
    cJSON *tokens;             /* maps each token, as tokenizer.json writes it, to its id */
    int count, row[ROOM];      /* row[i]: the row of new token i in the old model */
    int end;                   /* the token that ends a text */
    char old[TOKENS][LONGEST]; /* texts of the old tokens */
};

/* Decodes a token of a byte-level vocabulary to bytes. Returns the number of bytes. */
static int bytes_of(const char *text, char *out)
{
    int n = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at; n++) {
        const unsigned c = *at < 0x80 ? *at : (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu);
        const unsigned place = c - 0x100;
        out[n] = (char)(c < 0x100    ? c
                        : place < 33 ? place
                        : place < 67 ? place - 33 + 127
                                     : 173);
        at += *at < 0x80 ? 1 : 2;
    }
    return n;
}

/* Writes a byte-level token as a vocabulary with byte fallback spells it.
 * Returns false if the token is not valid UTF-8. */
static bool with_marks(const char *text, char out[3 * LONGEST])
{
    char bytes[LONGEST];
    const int n = bytes_of(text, bytes);
    size_t used = 0;
    for (int i = 0, length; i < n; i += length) {
        length = esp_utf8_sequence(bytes + i, (size_t)(n - i));
        if (length <= 0)
            return false;
        const bool space = bytes[i] == ' ';
        memcpy(out + used, space ? "\xE2\x96\x81" : bytes + i, space ? 3 : (size_t)length);
        used += space ? 3 : (size_t)length;
    }
    out[used] = '\0';
    return true;
}

static void add(struct foreign *f, const char *text, int id, int row)
{
    CHECK(id >= 0 && id < ROOM);
    f->row[id] = row;
    f->count = id >= f->count ? id + 1 : f->count;
    CHECK(cJSON_AddNumberToObject(f->tokens, text, id));
}

static bool replaced(enum foreign_kind kind, int token)
{
    const bool merged = token > BYTES;
    return merged && ((kind == FOREIGN_RARE_REPLACED && token >= TOKENS - TOKENS / 5) ||
                      (kind == FOREIGN_EACH_FIFTH_REPLACED && token % 5 == 0));
}

static void permute(struct foreign *f, enum foreign_kind kind)
{
    for (int token = 0; token < TOKENS; token++) {
        const int id = (token * 1237 + 811) % TOKENS;
        char text[LONGEST];
        snprintf(text, sizeof text, "qz%dzq", token);
        add(f, replaced(kind, token) ? text : f->old[token], id, token);
        f->end = token == 0 ? id : f->end;
    }
}

static void use_byte_fallback(struct foreign *f)
{
    char text[3 * LONGEST], bytes[LONGEST];
    add(f, "<unk>", 0, 0);
    add(f, "</s>", f->end = 1, 0);
    for (int token = 1; token < TOKENS; token++)
        if (bytes_of(f->old[token], bytes) == 1) {
            snprintf(text, sizeof text, "<0x%02X>", (unsigned)(unsigned char)bytes[0]);
            add(f, text, SPECIAL + (unsigned char)bytes[0], token);
        }
    for (int token = 1; token < TOKENS; token++) {
        const bool control = bytes_of(f->old[token], bytes) == 1 && bytes[0] < ' ';
        if (!control && with_marks(f->old[token], text))
            add(f, text, f->count, token);
    }
}

/* Returns the merges of the old tokenizer.json that the new vocabulary can use: both parts and
 * the result must be tokens of the new vocabulary. */
static cJSON *merges_of(const struct foreign *f, const cJSON *old, bool marks)
{
    cJSON *merges = cJSON_CreateArray();
    const cJSON *item;
    cJSON_ArrayForEach(item, old)
    {
        char part[2][3 * LONGEST], both[6 * LONGEST], text[2 * LONGEST];
        const char *space = strchr(item->valuestring, ' ');
        const char *halves[2] = {text, space + 1};
        CHECK(space && strlen(item->valuestring) < LONGEST);
        snprintf(text, sizeof text, "%.*s", (int)(space - item->valuestring),
                 item->valuestring);
        bool there = true;
        for (int i = 0; i < 2; i++) {
            if (marks)
                there = there && with_marks(halves[i], part[i]);
            else
                snprintf(part[i], sizeof part[i], "%s", halves[i]);
        }
        snprintf(both, sizeof both, "%s%s", there ? part[0] : "", there ? part[1] : "");
        for (int i = 0; i < 2 && there; i++)
            there = cJSON_GetObjectItemCaseSensitive(f->tokens, part[i]);
        if (!there || !cJSON_GetObjectItemCaseSensitive(f->tokens, both))
            continue;
        snprintf(both, sizeof both, "%s %s", part[0], part[1]);
        cJSON_AddItemToArray(merges, cJSON_CreateString(both));
    }
    return merges;
}

static void set(cJSON *object, const char *key, const char *json)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    cJSON_AddItemToObject(object, key, cJSON_Parse(json));
}

/* Adds the normalizer and the other settings of Llama 2's tokenizer. */
static void describe_byte_fallback(cJSON *root, cJSON *model)
{
    set(root, "normalizer",
        "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":"
        "\"\xE2\x96\x81\"},"
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xE2\x96\x81\"}]}");
    set(root, "pre_tokenizer", "null");
    set(root, "decoder", "null");
    set(root, "added_tokens",
        "[{\"id\":0,\"content\":\"<unk>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":"
        "false,"
        "\"normalized\":false,\"special\":true},{\"id\":1,\"content\":\"</"
        "s>\",\"single_word\":false,"
        "\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":true}]");
    set(model, "byte_fallback", "true");
    set(model, "fuse_unk", "true");
    set(model, "unk_token", "\"<unk>\"");
}

static void write_json(const char *file, cJSON *root)
{
    char *text = cJSON_PrintUnformatted(root);
    folder_write_text(file, text);
    free(text);
    cJSON_Delete(root);
}

static void write_tokenizer(struct foreign *f, enum foreign_kind kind)
{
    struct folder_bytes bytes = folder_read(folder_file("tokenizer.json"));
    cJSON *root = cJSON_Parse(bytes.data), *model = cJSON_GetObjectItem(root, "model"), *item;
    const bool marks = kind == FOREIGN_SENTENCEPIECE;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(model, "vocab"))
    {
        CHECK(item->valueint < TOKENS && strlen(item->string) < LONGEST);
        strcpy(f->old[item->valueint], item->string);
    }
    f->tokens = cJSON_CreateObject();
    if (marks)
        use_byte_fallback(f);
    else
        permute(f, kind);
    cJSON *merges = merges_of(f, cJSON_GetObjectItem(model, "merges"), marks);
    cJSON_ReplaceItemInObjectCaseSensitive(model, "merges", merges);
    cJSON_ReplaceItemInObjectCaseSensitive(model, "vocab", f->tokens);
    cJSON_SetNumberValue(
        cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(root, "added_tokens"), 0),
                            "id"),
        f->end);
    if (marks)
        describe_byte_fallback(root, model);
    write_json("tokenizer.json", root);
    free(bytes.data);
}

/* Writes the weights. The embedding is the first tensor of the file. Its rows are written in
 * the order of the new tokens. */
static void write_weights(const struct foreign *f)
{
    struct folder_bytes bytes = folder_read(folder_file("model.safetensors"));
    const size_t head = folder_header_length(&bytes);
    char *text = strndup(bytes.data + 8, head);
    cJSON *root = cJSON_Parse(text), *item;
    const cJSON *first = cJSON_GetObjectItem(root, "model.embed_tokens.weight");
    const size_t old =
        (size_t)cJSON_GetArrayItem(cJSON_GetObjectItem(first, "data_offsets"), 1)->valuedouble;
    const size_t row = old / TOKENS, now = row * (size_t)f->count;
    struct folder_bytes moved = {.size = bytes.size - old + now};
    moved.data = malloc(moved.size);
    CHECK(moved.data && old == row * TOKENS);
    memcpy(moved.data, bytes.data, 8 + head);
    for (int id = 0; id < f->count; id++)
        memcpy(moved.data + 8 + head + (size_t)id * row,
               bytes.data + 8 + head + (size_t)f->row[id] * row, row);
    memcpy(moved.data + 8 + head + now, bytes.data + 8 + head + old,
           bytes.size - 8 - head - old);
    cJSON_ArrayForEach(item, root)
    {
        cJSON *offsets = cJSON_GetObjectItem(item, "data_offsets");
        for (int i = item == first; offsets && i < 2; i++) {
            cJSON *number = cJSON_GetArrayItem(offsets, i);
            cJSON_SetNumberValue(number, number->valuedouble - (double)old + (double)now);
        }
    }
    cJSON_SetNumberValue(cJSON_GetArrayItem(cJSON_GetObjectItem(first, "shape"), 0), f->count);
    char *header = cJSON_PrintUnformatted(root);
    folder_write_tensors("model.safetensors", header, &moved);
    cJSON_Delete(root);
    free(header);
    free(text);
    free(moved.data);
    free(bytes.data);
}

void foreign_draft(enum foreign_kind kind)
{
    struct foreign *f = calloc(1, sizeof *f);
    char number[16];
    CHECK(f);
    folder_copy("../../../engine/models/fairytale-draft");
    write_tokenizer(f, kind);
    write_weights(f);
    snprintf(number, sizeof number, "%d", f->end);
    folder_edit("config.json", "eos_token_id", NULL, number);
    folder_edit("config.json", "bos_token_id", NULL, number);
    folder_edit("generation_config.json", "eos_token_id", NULL, number);
    snprintf(number, sizeof number, "%d", f->count);
    folder_edit("config.json", "vocab_size", NULL, number);
    free(f);
}
