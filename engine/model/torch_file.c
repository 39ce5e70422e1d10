/* torch_file.c - reads the dictionary of tensors of pytorch_model.bin; see torch_file.h.
 *
 * The stack machine executes Python's pickles (pickletools.py lists its instructions). Its
 * values have the few kinds that a dictionary of tensors needs. Any other value, such as
 * metadata, has the kind OTHER. Every instruction adds at most one value, so the size of the
 * pickle limits the memory.
 */
#include "engine/model/torch_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/json.h"
#include "engine/model/zip.h"
#include "kernels/model_desc.h"
#include "kernels/status.h"

enum { PICKLE_LIMIT = 4 << 20, NAME_LIMIT = 255 }; /* bytes */

enum kind { OTHER, MARK, INTEGER, STRING, GLOBAL, TUPLE, STORAGE, TENSOR, DICTIONARY };

struct value {
    enum kind kind;
    int64_t number;   /* INTEGER: value; STORAGE: elements; STRING, GLOBAL: bytes in `text` */
    const char *text; /* STRING; GLOBAL: "module\nname\n" */
    /* TUPLE: `first` is the index of its first item in machine.items, `items` the number of
     * items. TENSOR: `first` is its index in machine.tensors. STORAGE: `first` is the index of
     * its entry in the archive, `items` the index of its type in `storages`. */
    size_t first, items;
};

struct machine {
    const char *code;
    size_t size, at;
    struct value *stack, *items, *memo; /* (room) each; `items` has the items of all tuples */
    size_t depth, item_count, memo_count, room;
    struct esp_stored *tensors;
    size_t tensor_count, named_count, tensor_room;
    const struct esp_zip *zip;
    const char *folder; /* the folder of data.pkl in the archive */
    size_t folder_length;
    esp_torch_found *found;
    void *user;
    const char *path;
    char *err;
    size_t errlen;
};

static int refuse(const struct machine *m, const char *what)
{
    return esp_fail(m->err, m->errlen, ESP_E_FORMAT,
                    "%s: its pickle %s; save the weights as model.safetensors", m->path, what);
}

/* ------------------------------------------------------------------ code and stack */

static const char *take(struct machine *m, size_t bytes)
{
    if (bytes > m->size - m->at)
        return NULL;
    m->at += bytes;
    return m->code + m->at - bytes;
}

static bool take_number(struct machine *m, int bytes, uint64_t *value)
{
    const char *at = take(m, (size_t)bytes);
    *value = at ? esp_little_endian(at, (size_t)bytes) : 0;
    return at != NULL;
}

static int push(struct machine *m, struct value value)
{
    if (m->depth == m->room)
        return refuse(m, "is damaged");
    m->stack[m->depth++] = value;
    return ESP_OK;
}

/* Pops the values above the last mark and the mark itself. Returns the values, or NULL if
 * there is no mark. */
static struct value *pop_mark(struct machine *m, size_t *count)
{
    for (size_t i = m->depth; i > 0; i--)
        if (m->stack[i - 1].kind == MARK) {
            *count = m->depth - i;
            m->depth = i - 1;
            return m->stack + i;
        }
    return NULL;
}

static int push_tuple(struct machine *m, const struct value *values, size_t count)
{
    if (count > m->room - m->item_count)
        return refuse(m, "is damaged");
    const struct value tuple = {.kind = TUPLE, .first = m->item_count, .items = count};
    for (size_t i = 0; i < count; i++)
        m->items[m->item_count + i] = values[i];
    m->item_count += count;
    return push(m, tuple);
}

static int push_text(struct machine *m, enum kind kind, uint64_t length)
{
    const char *text = length <= m->size ? take(m, (size_t)length) : NULL;
    return text ? push(m, (struct value){.kind = kind, .text = text, .number = (int64_t)length})
                : refuse(m, "is truncated");
}

/* Reads two lines, a module and a name in it, and pushes them as a GLOBAL. */
static int push_global(struct machine *m)
{
    const char *text = m->code + m->at, *end = text;
    for (int line = 0; line < 2; line++) {
        end = memchr(end, '\n', m->size - (size_t)(end - m->code));
        if (!end)
            return refuse(m, "is truncated");
        end++;
    }
    m->at = (size_t)(end - m->code);
    return push(m, (struct value){.kind = GLOBAL, .text = text, .number = end - text});
}

static bool is_text(const struct value *v, enum kind kind, const char *text)
{
    return v->kind == kind && (size_t)v->number == strlen(text) &&
           memcmp(v->text, text, strlen(text)) == 0;
}

/* ------------------------------------------------------------------ storages and tensors */

static const struct {
    const char *global, *type;
    size_t bytes;
} storages[] = {{"torch\nFloatStorage\n", "F32", 4},     {"torch\nHalfStorage\n", "F16", 2},
                {"torch\nBFloat16Storage\n", "BF16", 2}, {"torch\nDoubleStorage\n", "F64", 8},
                {"torch\nLongStorage\n", "I64", 8},      {"torch\nIntStorage\n", "I32", 4},
                {"torch\nShortStorage\n", "I16", 2},     {"torch\nCharStorage\n", "I8", 1},
                {"torch\nByteStorage\n", "U8", 1},       {"torch\nBoolStorage\n", "BOOL", 1}};

enum { STORAGES = sizeof storages / sizeof *storages };

/* Pops the tuple ('storage', type, key, device, elements) and pushes the STORAGE that it refers
 * to: the file data/key of the archive. */
static int read_storage(struct machine *m)
{
    if (m->depth == 0 || m->stack[m->depth - 1].kind != TUPLE)
        return refuse(m, "is damaged");
    const struct value *tuple = &m->stack[--m->depth], *item = m->items + tuple->first;
    int type = 0;
    if (tuple->items != 5 || !is_text(&item[0], STRING, "storage") || item[1].kind != GLOBAL ||
        item[2].kind != STRING || item[4].kind != INTEGER)
        return refuse(m, "refers to something other than a storage of a tensor");
    while (type < STORAGES && !is_text(&item[1], GLOBAL, storages[type].global))
        type++;
    if (type == STORAGES)
        return refuse(m, "has a storage of an unknown type");
    char name[256];
    int length = snprintf(name, sizeof name, "data/%.*s",
                          item[2].number < 200 ? (int)item[2].number : 200, item[2].text);
    const struct esp_zip_entry *entry =
        length < 0 ? NULL
                   : esp_zip_find(m->zip, m->folder, m->folder_length, name, (size_t)length);
    if (!entry || item[4].number < 0 ||
        entry->size / storages[type].bytes < (uint64_t)item[4].number)
        return refuse(m, "has a storage that is missing or incomplete in the archive");
    return push(m, (struct value){.kind = STORAGE,
                                  .number = item[4].number,
                                  .first = (size_t)(entry - m->zip->entries),
                                  .items = (size_t)type});
}

/* Makes a tensor from the arguments (storage, offset, sizes, strides, ...). Tensors that are
 * not contiguous are refused. */
static int build_tensor(struct machine *m, const struct value *arguments)
{
    const struct value *item = m->items + arguments->first;
    if (arguments->items < 4 || item[0].kind != STORAGE || item[1].kind != INTEGER ||
        item[2].kind != TUPLE || item[3].kind != TUPLE || item[2].items != item[3].items ||
        item[2].items > ESP_MAX_RANK || m->tensor_count == m->tensor_room)
        return refuse(m, "builds a tensor in an unknown way");
    const struct value *sizes = m->items + item[2].first, *strides = m->items + item[3].first;
    struct esp_stored *t = &m->tensors[m->tensor_count];
    int64_t elements = 1;
    *t = (struct esp_stored){.rank = (int)item[2].items};
    snprintf(t->type, sizeof t->type, "%s", storages[item[0].items].type);
    for (int i = t->rank - 1; i >= 0; i--) {
        if (sizes[i].kind != INTEGER || strides[i].kind != INTEGER || sizes[i].number < 0)
            return refuse(m, "builds a tensor in an unknown way");
        if (sizes[i].number != 1 && strides[i].number != elements)
            return refuse(m, "has a tensor that is not contiguous");
        t->shape[i] = sizes[i].number;
        if (__builtin_mul_overflow(elements, sizes[i].number, &elements))
            return refuse(m, "has a tensor that is too large");
    }
    if (item[1].number < 0 || item[1].number > item[0].number ||
        elements > item[0].number - item[1].number)
        return refuse(m, "has a tensor that goes beyond its storage");
    const size_t bytes = storages[item[0].items].bytes;
    t->begin = (size_t)item[1].number * bytes;
    t->end = t->begin + (size_t)elements * bytes;
    t->offset = m->zip->entries[item[0].first].offset + t->begin;
    return push(m, (struct value){.kind = TENSOR, .first = m->tensor_count++});
}

/* Runs the instruction that calls a function. Only functions that build a tensor or a
 * dictionary are known. The result of any other function is a value of the kind OTHER. */
static int reduce(struct machine *m)
{
    if (m->depth < 2 || m->stack[m->depth - 1].kind != TUPLE)
        return refuse(m, "is damaged");
    m->depth -= 2;
    const struct value function = m->stack[m->depth], arguments = m->stack[m->depth + 1];
    if (is_text(&function, GLOBAL, "torch._utils\n_rebuild_tensor_v2\n"))
        return build_tensor(m, &arguments);
    if (is_text(&function, GLOBAL, "torch._utils\n_rebuild_parameter\n") && arguments.items > 0)
        return push(m, m->items[arguments.first]);
    bool is_dictionary = is_text(&function, GLOBAL, "collections\nOrderedDict\n");
    return push(m, (struct value){.kind = is_dictionary ? DICTIONARY : OTHER});
}

/* If the item is a tensor, passes the tensor and its name to found(). A tensor may have several
 * names, but the number of all names is limited. Otherwise a small pickle that repeats a long
 * name could take unlimited memory. */
static int set_item(struct machine *m, const struct value *key, const struct value *item)
{
    if (key->kind != STRING || item->kind != TENSOR)
        return ESP_OK;
    if (key->number > NAME_LIMIT)
        return refuse(m, "has a tensor with a name that is too long");
    if (m->named_count++ == m->tensor_room)
        return refuse(m, "names more tensors than it can hold");
    char *name = memchr(key->text, '\0', (size_t)key->number)
                     ? NULL
                     : strndup(key->text, (size_t)key->number);
    if (!name)
        return refuse(m, "has a tensor without a name");
    int status = m->found(m->user, name, &m->tensors[item->first], m->err, m->errlen);
    free(name);
    return status;
}

static int set_items(struct machine *m, struct value *pairs, size_t count)
{
    int status = ESP_OK;
    if (!pairs || count % 2 || m->depth == 0)
        return refuse(m, "is damaged");
    for (size_t i = 0; i < count && status == ESP_OK; i += 2)
        status = set_item(m, &pairs[i], &pairs[i + 1]);
    return status;
}

/* ------------------------------------------------------------------ instructions */

static int memorize(struct machine *m, uint64_t index)
{
    if (m->depth == 0 || index >= m->room)
        return refuse(m, "is damaged");
    m->memo[index] = m->stack[m->depth - 1];
    return ESP_OK;
}

static int recall(struct machine *m, uint64_t index)
{
    return index < m->room ? push(m, m->memo[index]) : refuse(m, "is damaged");
}

static int drop(struct machine *m, size_t count)
{
    if (m->depth <= count)
        return refuse(m, "is damaged");
    m->depth -= count;
    return ESP_OK;
}

/* Runs an instruction that is followed by an integer of `bytes` bytes. */
static int step_number(struct machine *m, char code, int bytes)
{
    uint64_t n;
    if (!take_number(m, bytes, &n))
        return refuse(m, "is truncated");
    switch (code) {
    case 'K': /* BININT1, BININT2, BININT */
    case 'M':
        return push(m, (struct value){.kind = INTEGER, .number = (int64_t)n});
    case 'J':
        return push(m, (struct value){.kind = INTEGER, .number = (int32_t)(uint32_t)n});
    case '\x8a': { /* LONG1: an integer of n bytes, two's complement */
        uint64_t value;
        if (n > 8 || !take_number(m, (int)n, &value))
            return refuse(m, "has a number that is too large");
        if (n > 0 && n < 8 && value >> (8 * n - 1))
            value |= UINT64_MAX << 8 * n;
        return push(m, (struct value){.kind = INTEGER, .number = (int64_t)value});
    }
    case 'X': /* BINUNICODE, SHORT_BINUNICODE */
    case '\x8c':
        return push_text(m, STRING, n);
    case 'q': /* BINPUT, LONG_BINPUT */
    case 'r':
        return memorize(m, n);
    case 'h': /* BINGET, LONG_BINGET */
    case 'j':
        return recall(m, n);
    default: /* PROTO; FRAME */
        return ESP_OK;
    }
}

static int step(struct machine *m, char code)
{
    struct value *values;
    size_t count = 0;
    switch (code) {
    case '(':
        return push(m, (struct value){.kind = MARK});
    case ')':
        return push_tuple(m, NULL, 0);
    case '}':
        return push(m, (struct value){.kind = DICTIONARY});
    case ']': /* EMPTY_LIST, NONE, NEWTRUE, NEWFALSE */
    case 'N':
    case '\x88':
    case '\x89':
        return push(m, (struct value){.kind = OTHER});
    case 'G': /* BINFLOAT */
        return take(m, 8) ? push(m, (struct value){.kind = OTHER}) : refuse(m, "is truncated");
    case 'c':
        return push_global(m);
    case 'Q':
        return read_storage(m);
    case 'R':
        return reduce(m);
    case '\x85': /* TUPLE1..3 */
    case '\x86':
    case '\x87':
        count = (size_t)(unsigned char)code - 0x84;
        if (m->depth < count)
            return refuse(m, "is damaged");
        m->depth -= count;
        return push_tuple(m, m->stack + m->depth, count);
    case 't':
        values = pop_mark(m, &count);
        return values ? push_tuple(m, values, count) : refuse(m, "is damaged");
    case 's': /* SETITEM */
        if (m->depth < 3)
            return refuse(m, "is damaged");
        m->depth -= 2;
        return set_items(m, m->stack + m->depth, 2);
    case 'u':
        values = pop_mark(m, &count);
        return set_items(m, values, count);
    case 'e': /* APPENDS */
        return pop_mark(m, &count) ? ESP_OK : refuse(m, "is damaged");
    case 'a': /* APPEND, BUILD: the object below stays on the stack */
    case 'b':
        return drop(m, 1);
    case '\x94': /* MEMOIZE */
        return memorize(m, m->memo_count++);
    default:
        return refuse(m, "has an instruction that is not needed for weights");
    }
}

static int run(struct machine *m)
{
    /* Lists the size in bytes of the number that follows each instruction; 0: no number. */
    static const unsigned char numbered[256] = {
        ['K'] = 1, ['M'] = 2, ['J'] = 4, [0x8a] = 1, ['X'] = 4,  [0x8c] = 1,
        ['q'] = 1, ['r'] = 4, ['h'] = 1, ['j'] = 4,  [0x80] = 1, [0x95] = 8};
    int status = ESP_OK;
    while (status == ESP_OK) {
        const char *code = take(m, 1);
        if (!code)
            return refuse(m, "is truncated");
        if (*code == '.')
            break;
        const int bytes = numbered[(unsigned char)*code];
        status = bytes > 0 ? step_number(m, *code, bytes) : step(m, *code);
    }
    return status;
}

/* ------------------------------------------------------------------ the file */

static const struct esp_zip_entry *find_pickle(const struct esp_zip *zip)
{
    static const char name[] = "/data.pkl";
    const size_t length = sizeof name - 1;
    for (size_t i = 0; i < zip->count; i++) {
        const struct esp_zip_entry *entry = &zip->entries[i];
        if (entry->length > length &&
            memcmp(entry->name + entry->length - length, name, length) == 0)
            return entry;
    }
    return NULL;
}

static int read_pickle(struct machine *m, struct esp_tensor_file *file)
{
    const struct esp_zip_entry *pickle = find_pickle(m->zip);
    const struct esp_zip_entry *order =
        pickle ? esp_zip_find(m->zip, pickle->name, pickle->length - strlen("data.pkl"),
                              "byteorder", strlen("byteorder"))
               : NULL;
    if (order && order->size != strlen("little")) /* the file contains "little" or "big" */
        return esp_fail(m->err, m->errlen, ESP_E_UNSUPPORTED,
                        "%s was written by a big-endian machine; save the weights as "
                        "model.safetensors",
                        m->path);
    if (!pickle || pickle->size > PICKLE_LIMIT)
        return esp_fail(
            m->err, m->errlen, ESP_E_FORMAT,
            "%s is a zip archive without a data.pkl of PyTorch, or with one that is "
            "too large",
            m->path);
    char *code = malloc(pickle->size + 1);
    m->room = m->size = pickle->size;
    m->folder = pickle->name;
    m->folder_length = pickle->length - strlen("data.pkl");
    m->stack = calloc(m->room + 1, 3 * sizeof *m->stack);
    m->items = m->stack + (m->stack ? m->room : 0);
    m->memo = m->items + (m->stack ? m->room : 0);
    m->tensor_room = m->room / 16 + 1; /* a tensor needs more than 16 bytes of pickle */
    m->tensors = calloc(m->tensor_room, sizeof *m->tensors);
    int status;
    if (!code || !m->stack || !m->tensors) {
        status = esp_no_memory(m->path, m->err, m->errlen);
    } else {
        esp_tensor_file_read(file, pickle->offset, code, pickle->size);
        m->code = code;
        status = run(m);
    }
    free(code);
    free(m->stack);
    free(m->tensors);
    return status;
}

int esp_torch_read(struct esp_tensor_file *file, size_t size, const char *path,
                   esp_torch_found *found, void *user, char *err, size_t errlen)
{
    struct esp_zip zip;
    int status = esp_zip_open(&zip, file, size, path, err, errlen);
    if (status < 0)
        return status;
    struct machine m = {
        .zip = &zip, .found = found, .user = user, .path = path, .err = err, .errlen = errlen};
    status = read_pickle(&m, file);
    esp_zip_close(&zip);
    return status;
}
