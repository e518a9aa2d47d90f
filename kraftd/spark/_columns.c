/* Records of a metadata log into columns: a Builder appends the records of a batch to the buffers of
   Apache Arrow arrays, without a Python object for each record.

   A plan has the fields of one version of a record type in order, each with the column that it fills.
   kraftd/spark/decoding/plans.py makes the plans from the field tables.  A column is a leaf, a list of one child,
   or a struct of several.  A record is appended to the columns of its own fields only, so the number of
   other columns does not matter.  A column gets the missing nulls at its next value, or at the end.

   A batch is appended whole or not at all.  If a record does not fit its plan, append raises ValueError
   and cuts every column back to its length before the batch. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum kind { BOOL, INT8, INT16, UINT16, INT32, UINT32, INT64, FLOAT64, UUID, STRING, BYTES, STRUCT, LIST, N_KINDS };

/* The kinds of fields on the wire.  Columns have some of them: narrow integers become int32, a uuid text. */
static const char *const KIND_NAMES[N_KINDS] = {"bool",  "int8",    "int16", "uint16", "int32",  "uint32", "int64",
                                                "float64", "uuid", "string", "bytes",  "struct", "list"};
static const uint8_t WIDTHS[N_KINDS] = {[BOOL] = 1,   [INT8] = 1,  [INT16] = 2,   [UINT16] = 2, [INT32] = 4,
                                        [UINT32] = 4, [INT64] = 8, [FLOAT64] = 8, [UUID] = 16};

enum { UUID_TEXT_BYTES = 22, MAX_TAGS = 32, MAX_DEPTH = 8 };

/* ------------------------------------------------------------------------------------------------
   Columns */

typedef struct {
    uint8_t *bytes;
    size_t size, room;
} Buffer;

typedef struct Column {
    uint8_t kind;  /* of columns: BOOL, INT32, INT64, FLOAT64, STRING, BYTES, STRUCT or LIST */
    uint8_t width; /* bytes of a value; 0 if they vary */
    int64_t length, nulls;
    Buffer valid;   /* one byte for each value: 0 is null */
    Buffer offsets; /* the end of each string or list */
    Buffer data;
    int n_children;
    struct Column *children;
} Column;

/* Make room for more bytes; afterwards there is memory even if they are none. */
static int reserve(Buffer *buffer, size_t more)
{
    if (buffer->room && buffer->size + more <= buffer->room)
        return 0;
    size_t room = buffer->room ? buffer->room : 256;
    while (room < buffer->size + more)
        room *= 2;
    uint8_t *bytes = PyMem_RawRealloc(buffer->bytes, room);
    if (bytes == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    buffer->bytes = bytes;
    buffer->room = room;
    return 0;
}

static void free_column(Column *column)
{
    PyMem_RawFree(column->valid.bytes);
    PyMem_RawFree(column->offsets.bytes);
    PyMem_RawFree(column->data.bytes);
    for (int i = 0; i < column->n_children; i++)
        free_column(&column->children[i]);
    PyMem_RawFree(column->children);
    memset(column, 0, sizeof *column);
}

static int32_t end_of(const Column *column, int64_t index)
{
    return index < 0 ? 0 : ((const int32_t *)column->offsets.bytes)[index];
}

/* Append nulls up to a length. Without memory for all of them the column stays as it is. */
static int pad(Column *column, int64_t length)
{
    int64_t count = length - column->length;
    if (count <= 0)
        return 0;
    size_t bytes = (size_t)count * column->width;
    int has_offsets = !column->width && column->kind != STRUCT;
    if (reserve(&column->valid, (size_t)count) < 0 || (bytes && reserve(&column->data, bytes) < 0) ||
        (has_offsets && reserve(&column->offsets, (size_t)count * 4) < 0))
        return -1;
    memset(column->valid.bytes + column->valid.size, 0, (size_t)count);
    column->valid.size += (size_t)count;
    if (bytes) {
        memset(column->data.bytes + column->data.size, 0, bytes);
        column->data.size += bytes;
    }
    if (has_offsets) {
        int32_t end = end_of(column, column->length - 1);
        int32_t *to = (int32_t *)(column->offsets.bytes + column->offsets.size);
        for (int64_t i = 0; i < count; i++)
            to[i] = end;
        column->offsets.size += (size_t)count * 4;
    }
    column->nulls += count;
    column->length = length;
    return 0;
}

/* Cut a column back to an earlier length. */
static void truncate_to(Column *column, int64_t length)
{
    if (column->length <= length)
        return;
    for (int64_t i = length; i < column->length; i++)
        column->nulls -= !column->valid.bytes[i];
    column->length = length;
    column->valid.size = (size_t)length;
    if (column->width)
        column->data.size = (size_t)length * column->width;
    else if (column->kind == STRUCT)
        for (int i = 0; i < column->n_children; i++)
            truncate_to(&column->children[i], length);
    else {
        int32_t end = end_of(column, length - 1);
        column->offsets.size = (size_t)length * 4;
        if (column->kind == LIST)
            truncate_to(&column->children[0], end);
        else
            column->data.size = (size_t)end;
    }
}

/* Append nulls up to index, and begin a value there.  close_value ends a list or a string. */
static int open_value(Column *column, int64_t index)
{
    if (column->length != index) {
        if (UNLIKELY(column->length > index)) {
            PyErr_SetString(PyExc_ValueError, "a field occurs twice");
            return -1;
        }
        if (pad(column, index) < 0)
            return -1;
    }
    if (reserve(&column->valid, 1) < 0)
        return -1;
    column->valid.bytes[column->valid.size++] = 1;
    column->length++;
    return 0;
}

/* How far the last value of a list or a string reaches; -1 if it is too far for Arrow. */
static int32_t reached(const Column *column)
{
    int64_t size = column->kind == LIST ? column->children[0].length : (int64_t)column->data.size;
    if (UNLIKELY(size > INT32_MAX)) {
        PyErr_SetString(PyExc_ValueError, "more than 2 GiB of text, or as many elements, in one column");
        return -1;
    }
    return (int32_t)size;
}

/* End the last value of a list or a string. */
static int close_value(Column *column)
{
    int32_t end = reached(column);
    if (end < 0 || reserve(&column->offsets, 4) < 0)
        return -1;
    memcpy(column->offsets.bytes + column->offsets.size, &end, 4);
    column->offsets.size += 4;
    return 0;
}

static int append_bytes(Column *column, int64_t index, const void *bytes, size_t count)
{
    if (open_value(column, index) < 0 || reserve(&column->data, count) < 0)
        return -1;
    if (count)
        memcpy(column->data.bytes + column->data.size, bytes, count);
    column->data.size += count;
    return close_value(column);
}

/* Append text; what is no UTF-8 is replaced, as where messages are decoded. */
static int append_text(Column *column, int64_t index, const void *bytes, size_t count)
{
    size_t at = 0;
    while (at < count && ((const uint8_t *)bytes)[at] < 0x80)
        at++;
    if (at == count)
        return append_bytes(column, index, bytes, count);
    PyObject *text = PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)count, "replace");
    Py_ssize_t size;
    const char *utf8 = text == NULL ? NULL : PyUnicode_AsUTF8AndSize(text, &size);
    int result = utf8 == NULL ? -1 : append_bytes(column, index, utf8, (size_t)size);
    Py_XDECREF(text);
    return result;
}

static int append_number(Column *column, int64_t index, int64_t value)
{
    if (open_value(column, index) < 0 || reserve(&column->data, column->width) < 0)
        return -1;
    uint8_t *to = column->data.bytes + column->data.size;
    switch (column->width) {
    case 1:
        *to = value != 0;
        break;
    case 4: {
        int32_t narrow = (int32_t)value;
        memcpy(to, &narrow, 4);
        break;
    }
    default:
        memcpy(to, &value, 8);
    }
    column->data.size += column->width;
    return 0;
}

/* ------------------------------------------------------------------------------------------------
   Plans */

typedef struct Plan Plan;

typedef struct {
    uint8_t kind; /* on the wire */
    uint8_t array, nullable;
    uint8_t chosen;       /* it is the topic id, by which records are selected */
    uint8_t has_standard; /* if absent, a tagged field is `standard` or empty; null without this flag */
    int64_t standard;
    int child;       /* the index of its column in the struct; -1: the value is skipped */
    uint32_t tag;
    Plan *nested;
} Field;

struct Plan {
    int n_body, n_tagged;
    int unknown_child; /* the index of the column of unknown tagged fields; -1: they are skipped */
    Field *fields;     /* body, then tagged */
};

static void free_plan(Plan *plan)
{
    if (plan == NULL)
        return;
    for (int i = 0; i < plan->n_body + plan->n_tagged; i++)
        free_plan(plan->fields[i].nested);
    PyMem_RawFree(plan->fields);
    PyMem_RawFree(plan);
}

static int kind_of(PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    if (text == NULL)
        return -1;
    for (int i = 0; i < N_KINDS; i++)
        if (strcmp(text, KIND_NAMES[i]) == 0)
            return i;
    PyErr_Format(PyExc_ValueError, "no kind is called %s", text);
    return -1;
}

static int is_tuple(PyObject *given)
{
    if (PyTuple_Check(given))
        return 1;
    PyErr_SetString(PyExc_TypeError, "columns, plans and their fields are tuples");
    return 0;
}

static Plan *make_plan(PyObject *given, const Column *column, int depth);

/* Fill a field from its row: (kind, array, nullable, child, tag, standard or None, chosen, nested or None). */
static int fill_field(Field *field, PyObject *row, const Column *parent, int depth)
{
    PyObject *kind, *standard, *nested;
    int array, nullable, child, chosen;
    unsigned int tag;
    if (!is_tuple(row) ||
        !PyArg_ParseTuple(row, "UppiIOpO", &kind, &array, &nullable, &child, &tag, &standard, &chosen, &nested))
        return -1;
    int found = kind_of(kind);
    if (found < 0)
        return -1;
    field->kind = (uint8_t)found;
    field->array = (uint8_t)array;
    field->nullable = (uint8_t)nullable;
    field->chosen = (uint8_t)chosen;
    field->child = child;
    field->tag = tag;
    if (standard != Py_None) {
        field->has_standard = 1;
        field->standard = PyLong_AsLongLong(standard);
        if (field->standard == -1 && PyErr_Occurred())
            return -1;
    }
    if (child >= parent->n_children) {
        PyErr_SetString(PyExc_ValueError, "a plan names a column that is not there");
        return -1;
    }
    const Column *column = child < 0 ? NULL : &parent->children[child];
    if (column != NULL && array) {
        if (column->kind != LIST) {
            PyErr_SetString(PyExc_ValueError, "an array needs a list column");
            return -1;
        }
        column = &column->children[0];
    }
    if (column != NULL) {
        int fits = field->kind == STRUCT    ? column->kind == STRUCT
                   : field->kind == BYTES   ? column->kind == BYTES
                   : field->kind == STRING  ? column->kind == STRING
                   : field->kind == UUID    ? column->kind == STRING
                   : field->kind == FLOAT64 ? column->kind == FLOAT64
                   : field->kind == BOOL    ? column->kind == BOOL
                                            : column->kind == INT32 || column->kind == INT64;
        if (!fits) {
            PyErr_SetString(PyExc_ValueError, "a field and its column are of different kinds");
            return -1;
        }
    }
    if (field->kind == STRUCT) {
        static const Column none = {.kind = STRUCT};
        field->nested = make_plan(nested, column == NULL ? &none : column, depth + 1);
        if (field->nested == NULL)
            return -1;
    }
    return 0;
}

/* Whether unknown tagged fields can be kept in a column: a list of their numbers and bytes. */
static int keeps_unknown(const Column *column)
{
    const Column *item = column->kind == LIST ? &column->children[0] : column;
    return item != column && item->kind == STRUCT && item->n_children >= 2 && item->children[1].kind == BYTES &&
           (item->children[0].kind == INT32 || item->children[0].kind == INT64);
}

/* Make a plan of (body, tagged, unknown child), and check that its fields fit the columns. */
static Plan *make_plan(PyObject *given, const Column *column, int depth)
{
    PyObject *body, *tagged;
    int unknown;
    if (depth > MAX_DEPTH) {
        PyErr_SetString(PyExc_ValueError, "plans are nested too deeply");
        return NULL;
    }
    if (!is_tuple(given) || !PyArg_ParseTuple(given, "O!O!i", &PyTuple_Type, &body, &PyTuple_Type, &tagged, &unknown))
        return NULL;
    Py_ssize_t n_body = PyTuple_GET_SIZE(body), n_tagged = PyTuple_GET_SIZE(tagged);
    if (n_tagged > MAX_TAGS || unknown >= column->n_children ||
        (unknown >= 0 && !keeps_unknown(&column->children[unknown]))) {
        PyErr_SetString(PyExc_ValueError, "a plan has too many tagged fields or no such column");
        return NULL;
    }
    Plan *plan = PyMem_RawCalloc(1, sizeof *plan);
    if (plan == NULL || (plan->fields = PyMem_RawCalloc((size_t)(n_body + n_tagged + 1), sizeof(Field))) == NULL) {
        PyMem_RawFree(plan);
        PyErr_NoMemory();
        return NULL;
    }
    plan->n_body = (int)n_body;
    plan->n_tagged = (int)n_tagged;
    plan->unknown_child = unknown;
    for (Py_ssize_t i = 0; i < n_body + n_tagged; i++) {
        PyObject *row = i < n_body ? PyTuple_GET_ITEM(body, i) : PyTuple_GET_ITEM(tagged, i - n_body);
        if (fill_field(&plan->fields[i], row, column, depth) < 0) {
            free_plan(plan);
            return NULL;
        }
    }
    return plan;
}

/* ------------------------------------------------------------------------------------------------
   Reading */

typedef struct {
    const uint8_t *at, *end;
} Reader;

static int wrong(const char *what)
{
    PyErr_SetString(PyExc_ValueError, what);
    return -1;
}

static inline uint16_t load16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }

static inline uint32_t load32(const uint8_t *p)
{
    uint32_t n;
    memcpy(&n, p, 4);
    return __builtin_bswap32(n);
}

static inline uint64_t load64(const uint8_t *p)
{
    uint64_t n;
    memcpy(&n, p, 8);
    return __builtin_bswap64(n);
}

static int read_uvarint(Reader *r, uint64_t *value, int most_bits)
{
    uint64_t found = 0;
    for (int shift = 0; shift < most_bits; shift += 7) {
        if (UNLIKELY(r->at >= r->end))
            return wrong("it ends within a number");
        uint8_t byte = *r->at++;
        found |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *value = found;
            return 0;
        }
    }
    return wrong("a number is too long");
}

static int read_zigzag(Reader *r, int64_t *value, int most_bits)
{
    uint64_t found;
    if (read_uvarint(r, &found, most_bits) < 0)
        return -1;
    *value = (int64_t)(found >> 1) ^ -(int64_t)(found & 1);
    return 0;
}

/* Read a compact length; -1 is null.  It is at most the number of bytes left: each element has at least one. */
static int read_length(Reader *r, int nullable, int64_t *length)
{
    uint64_t found;
    if (read_uvarint(r, &found, 35) < 0)
        return -1;
    *length = (int64_t)found - 1;
    if (UNLIKELY(*length < 0 && !nullable))
        return wrong("a field that cannot be null is null");
    if (UNLIKELY(*length > r->end - r->at))
        return wrong("a length runs past the end");
    return 0;
}

static void uuid_text(const uint8_t *p, uint8_t *text)
{
    static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (int i = 0; i < 5; i++, p += 3, text += 4) {
        uint32_t bits = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
        text[0] = (uint8_t)LETTERS[bits >> 18];
        text[1] = (uint8_t)LETTERS[bits >> 12 & 63];
        text[2] = (uint8_t)LETTERS[bits >> 6 & 63];
        text[3] = (uint8_t)LETTERS[bits & 63];
    }
    text[0] = (uint8_t)LETTERS[p[0] >> 2];
    text[1] = (uint8_t)LETTERS[(p[0] & 3) << 4];
}

static int64_t number_at(uint8_t kind, const uint8_t *p)
{
    switch (kind) {
    case BOOL:
        return *p != 0;
    case INT8:
        return (int8_t)*p;
    case INT16:
        return (int16_t)load16(p);
    case UINT16:
        return load16(p);
    case INT32:
        return (int32_t)load32(p);
    case UINT32:
        return load32(p);
    default:
        return (int64_t)load64(p); /* the bits of a double stay as they are */
    }
}

typedef struct {
    const uint8_t *ids; /* the wanted topics, 16 bytes each, sorted; NULL: all */
    Py_ssize_t count;
    int dropped; /* the record is of another topic */
} Choice;

static void choose(Choice *choice, const uint8_t *id)
{
    Py_ssize_t low = 0, high = choice->count;
    while (low < high) {
        Py_ssize_t middle = (low + high) / 2;
        int order = memcmp(choice->ids + 16 * middle, id, 16);
        if (order == 0)
            return;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    choice->dropped = 1;
}

static int read_struct(Reader *r, const Plan *plan, Column *parent, int64_t index, Choice *choice);

/* Read one value into a column; if column is NULL, skip it. */
static int read_value(Reader *r, const Field *field, Column *column, int64_t index, int nullable, Choice *choice)
{
    if (field->kind == STRUCT) {
        if (nullable) {
            if (r->at >= r->end)
                return wrong("it ends before a struct");
            if ((int8_t)*r->at++ < 0)
                return 0;
        }
        if (column != NULL && open_value(column, index) < 0)
            return -1;
        return read_struct(r, field->nested, column, index, choice);
    }
    int width = WIDTHS[field->kind];
    if (width) {
        if (UNLIKELY(r->end - r->at < width))
            return wrong("it ends within a field");
        const uint8_t *p = r->at;
        r->at += width;
        if (field->kind == UUID) {
            if (field->chosen && choice->ids != NULL)
                choose(choice, p);
            if (column == NULL)
                return 0;
            uint8_t text[UUID_TEXT_BYTES];
            uuid_text(p, text);
            return append_bytes(column, index, text, sizeof text);
        }
        return column == NULL ? 0 : append_number(column, index, number_at(field->kind, p));
    }
    int64_t length;
    if (read_length(r, nullable, &length) < 0)
        return -1;
    if (length < 0)
        return 0;
    int (*append)(Column *, int64_t, const void *, size_t) = field->kind == STRING ? append_text : append_bytes;
    if (column != NULL && append(column, index, r->at, (size_t)length) < 0)
        return -1;
    r->at += length;
    return 0;
}

static int read_field(Reader *r, const Field *field, Column *parent, int64_t index, Choice *choice)
{
    Column *column = field->child < 0 ? NULL : &parent->children[field->child];
    if (!field->array)
        return read_value(r, field, column, index, field->nullable, choice);
    int64_t count;
    if (read_length(r, field->nullable, &count) < 0)
        return -1;
    if (count < 0)
        return 0;
    Column *items = NULL;
    if (column != NULL) {
        items = &column->children[0];
        if (open_value(column, index) < 0)
            return -1;
    }
    if (field->kind == INT32 && items != NULL && items->width == 4) { /* such as replicas and isr, the bulk of most records */
        size_t bytes = (size_t)count * 4;
        if (UNLIKELY(r->end - r->at < (int64_t)bytes))
            return wrong("an array runs past the end");
        if (reserve(&items->valid, (size_t)count) < 0 || reserve(&items->data, bytes) < 0)
            return -1;
        memset(items->valid.bytes + items->valid.size, 1, (size_t)count);
        uint8_t *to = items->data.bytes + items->data.size;
        for (int64_t i = 0; i < count; i++, to += 4, r->at += 4) {
            uint32_t value = load32(r->at);
            memcpy(to, &value, 4);
        }
        items->valid.size += (size_t)count;
        items->data.size += bytes;
        items->length += count;
    }
    else
        for (int64_t i = 0; i < count; i++)
            if (read_value(r, field, items, items == NULL ? 0 : items->length, 0, choice) < 0)
                return -1;
    return column == NULL ? 0 : close_value(column);
}

static int keep_unknown(Column *parent, int child, int64_t index, uint32_t tag, Reader *field)
{
    if (child < 0)
        return 0;
    Column *list = &parent->children[child], *item = &list->children[0];
    if (list->length == index) {
        if (open_value(list, index) < 0 || close_value(list) < 0)
            return -1;
    }
    else if (list->length < index) {
        if (pad(list, index) < 0 || open_value(list, index) < 0 || close_value(list) < 0)
            return -1;
    }
    int64_t at = item->length;
    if (open_value(item, at) < 0 || append_number(&item->children[0], at, tag) < 0 ||
        append_bytes(&item->children[1], at, field->at, (size_t)(field->end - field->at)) < 0)
        return -1;
    int32_t end = reached(list);
    if (end < 0)
        return -1;
    ((int32_t *)list->offsets.bytes)[index] = end; /* the list was closed before this item */
    return 0;
}

static int read_tags(Reader *r, const Plan *plan, Column *parent, int64_t index, Choice *choice, uint32_t *seen)
{
    uint64_t count, tag, size;
    if (read_uvarint(r, &count, 35) < 0)
        return -1;
    if (UNLIKELY(count > (uint64_t)(r->end - r->at)))
        return wrong("more tagged fields than bytes");
    const Field *tagged = plan->fields + plan->n_body;
    for (uint64_t i = 0; i < count; i++) {
        if (read_uvarint(r, &tag, 35) < 0 || read_uvarint(r, &size, 35) < 0)
            return -1;
        if (UNLIKELY(size > (uint64_t)(r->end - r->at)))
            return wrong("a tagged field runs past the end");
        Reader field = {r->at, r->at + size};
        r->at += size;
        int known = 0;
        while (known < plan->n_tagged && tagged[known].tag != tag)
            known++;
        if (known == plan->n_tagged) {
            if (keep_unknown(parent, plan->unknown_child, index, (uint32_t)tag, &field) < 0)
                return -1;
            continue;
        }
        if (UNLIKELY(*seen >> known & 1))
            return wrong("a tagged field occurs twice");
        *seen |= 1u << known;
        if (read_field(&field, &tagged[known], parent, index, choice) < 0)
            return -1;
        if (UNLIKELY(field.at != field.end))
            return wrong("a tagged field is longer than its value");
    }
    return 0;
}

static int put_standard(const Field *field, Column *parent, int64_t index)
{
    if (!field->has_standard || field->child < 0)
        return 0;
    Column *column = &parent->children[field->child];
    if (column->width)
        return append_number(column, index, field->standard);
    if (column->kind == STRUCT)
        return 0;
    return open_value(column, index) < 0 ? -1 : close_value(column);
}

/* Read the fields of a struct into the children of its column; parent is NULL if all are skipped. */
static int read_struct(Reader *r, const Plan *plan, Column *parent, int64_t index, Choice *choice)
{
    uint32_t seen = 0;
    for (int i = 0; i < plan->n_body; i++)
        if (read_field(r, &plan->fields[i], parent, index, choice) < 0)
            return -1;
    if (read_tags(r, plan, parent, index, choice, &seen) < 0)
        return -1;
    for (int i = 0; i < plan->n_tagged; i++)
        if (!(seen >> i & 1) && put_standard(&plan->fields[plan->n_body + i], parent, index) < 0)
            return -1;
    return 0;
}

/* ------------------------------------------------------------------------------------------------
   The builder */

typedef struct {
    int n_versions; /* 0: the type is unknown */
    int wanted;
    Plan **versions;
} Type;

enum { N_TYPES = 128, OFFSET = 0, TIMESTAMP = 1, TYPE_KEY = 2, VERSION = 3, N_OWN = 4 };

typedef struct {
    PyObject_HEAD
    Column own[N_OWN]; /* offset, timestamp, record type, version */
    Column root;       /* a struct; its children are the columns of fields */
    int64_t rows;
    PyObject *topics; /* the sorted ids of the wanted topics in one bytes object; None: all */
    Type types[N_TYPES];
} Builder;

static int make_column(Column *column, PyObject *given, int depth)
{
    PyObject *kind, *children;
    if (depth > MAX_DEPTH) {
        PyErr_SetString(PyExc_ValueError, "columns are nested too deeply");
        return -1;
    }
    if (!is_tuple(given) || !PyArg_ParseTuple(given, "UO!", &kind, &PyTuple_Type, &children))
        return -1;
    int found = kind_of(kind);
    if (found < 0)
        return -1;
    int leaf = found == BOOL || found == INT32 || found == INT64 || found == FLOAT64;
    Py_ssize_t count = PyTuple_GET_SIZE(children);
    if (!(leaf || found == STRING || found == BYTES || found == STRUCT || found == LIST) ||
        (found == LIST ? count != 1 : found != STRUCT && count != 0)) {
        PyErr_SetString(PyExc_ValueError, "there is no such column");
        return -1;
    }
    column->kind = (uint8_t)found;
    column->width = leaf ? WIDTHS[found] : 0;
    if (count == 0)
        return 0;
    column->children = PyMem_RawCalloc((size_t)count, sizeof(Column));
    if (column->children == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    column->n_children = (int)count;
    for (Py_ssize_t i = 0; i < count; i++)
        if (make_column(&column->children[i], PyTuple_GET_ITEM(children, i), depth + 1) < 0)
            return -1;
    return 0;
}

static void builder_dealloc(Builder *builder)
{
    for (int i = 0; i < N_TYPES; i++) {
        for (int v = 0; v < builder->types[i].n_versions; v++)
            free_plan(builder->types[i].versions[v]);
        PyMem_RawFree(builder->types[i].versions);
    }
    for (int i = 0; i < N_OWN; i++)
        free_column(&builder->own[i]);
    free_column(&builder->root);
    Py_XDECREF(builder->topics);
    Py_TYPE(builder)->tp_free(builder);
}

static int add_type(Builder *builder, PyObject *key, PyObject *plans)
{
    long at = PyLong_AsLong(key);
    if (at == -1 && PyErr_Occurred())
        return -1;
    PyObject *versions;
    int wanted;
    if (!is_tuple(plans) || !PyArg_ParseTuple(plans, "pO!", &wanted, &PyTuple_Type, &versions))
        return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(versions);
    if (at < 0 || at >= N_TYPES || count == 0 || builder->types[at].n_versions) {
        PyErr_SetString(PyExc_ValueError, "a record type out of range, without versions or given twice");
        return -1;
    }
    Type *type = &builder->types[at];
    type->versions = PyMem_RawCalloc((size_t)count, sizeof(Plan *));
    if (type->versions == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    type->n_versions = (int)count;
    type->wanted = wanted;
    for (Py_ssize_t i = 0; wanted && i < count; i++)
        if ((type->versions[i] = make_plan(PyTuple_GET_ITEM(versions, i), &builder->root, 0)) == NULL)
            return -1;
    return 0;
}

/* Builder(columns, types, topics): the columns of fields; type -> (wanted, a plan for each version); topic ids. */
static PyObject *builder_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"columns", "types", "topics", NULL};
    PyObject *columns, *types, *topics, *key, *plans;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!O", names, &PyTuple_Type, &columns, &PyDict_Type, &types,
                                     &topics))
        return NULL;
    if (topics != Py_None && (!PyBytes_Check(topics) || PyBytes_GET_SIZE(topics) % 16)) {
        PyErr_SetString(PyExc_ValueError, "topics are ids of 16 bytes each");
        return NULL;
    }
    Builder *builder = (Builder *)type->tp_alloc(type, 0);
    if (builder == NULL)
        return NULL;
    builder->topics = Py_NewRef(topics);
    static const uint8_t OWN[N_OWN] = {INT64, INT64, INT32, INT32};
    for (int i = 0; i < N_OWN; i++) {
        builder->own[i].kind = OWN[i];
        builder->own[i].width = WIDTHS[OWN[i]];
    }
    PyObject *root = Py_BuildValue("(sO)", "struct", columns);
    int failed = root == NULL || make_column(&builder->root, root, 0) < 0;
    Py_XDECREF(root);
    Py_ssize_t at = 0;
    while (!failed && PyDict_Next(types, &at, &key, &plans))
        failed = add_type(builder, key, plans) < 0;
    if (failed) {
        Py_DECREF(builder);
        return NULL;
    }
    return (PyObject *)builder;
}

static void cut_back(Builder *builder, int64_t rows)
{
    for (int i = 0; i < N_OWN; i++)
        truncate_to(&builder->own[i], rows);
    for (int i = 0; i < builder->root.n_children; i++)
        truncate_to(&builder->root.children[i], rows);
    builder->rows = rows;
}

/* Read the value of a record: frame version, type, version, body. */
static int read_record(Builder *builder, Reader *r, int64_t offset, int64_t timestamp_ms, Choice *choice)
{
    uint64_t frame, key, version;
    if (read_uvarint(r, &frame, 35) < 0 || read_uvarint(r, &key, 35) < 0 || read_uvarint(r, &version, 35) < 0)
        return -1;
    if (frame != 1)
        return wrong("it has another frame version than 1");
    if (key >= N_TYPES || builder->types[key].n_versions == 0) {
        PyErr_Format(PyExc_ValueError, "its type %llu is not known", (unsigned long long)key);
        return -1;
    }
    Type *type = &builder->types[key];
    if (version >= (uint64_t)type->n_versions) {
        PyErr_Format(PyExc_ValueError, "its type %llu has version %llu, known are those up to %d",
                     (unsigned long long)key, (unsigned long long)version, type->n_versions - 1);
        return -1;
    }
    if (!type->wanted)
        return 0;
    choice->dropped = 0;
    int64_t row = builder->rows;
    if (read_struct(r, type->versions[version], &builder->root, row, choice) < 0)
        return -1;
    if (r->at != r->end)
        return wrong("bytes are left behind its last field");
    if (choice->dropped) {
        cut_back(builder, row);
        return 0;
    }
    if (append_number(&builder->own[OFFSET], row, offset) < 0 ||
        append_number(&builder->own[TIMESTAMP], row, timestamp_ms) < 0 ||
        append_number(&builder->own[TYPE_KEY], row, (int64_t)key) < 0 ||
        append_number(&builder->own[VERSION], row, (int64_t)version) < 0)
        return -1;
    builder->rows++;
    return 0;
}

/* The sum as Java computes it: beyond the range of 64 bits it wraps around. */
static int64_t wrapping_sum(int64_t left, int64_t right) { return (int64_t)((uint64_t)left + (uint64_t)right); }

/* Read a record of a batch, beginning with its length; one with an offset outside of first..last is skipped. */
static int read_log_record(Builder *builder, Reader *r, int64_t base_offset, int64_t base_timestamp_ms,
                           int64_t last_delta, int64_t *previous, int64_t first, int64_t last, Choice *choice)
{
    int64_t size, timestamp, delta, key, value, headers;
    if (read_zigzag(r, &size, 35) < 0)
        return -1;
    if (size <= 0 || size > r->end - r->at)
        return wrong("its length runs past the batch");
    Reader inner = {r->at, r->at + size};
    r->at += size;
    inner.at++; /* attributes */
    if (read_zigzag(&inner, &timestamp, 70) < 0 || read_zigzag(&inner, &delta, 35) < 0 ||
        read_zigzag(&inner, &key, 35) < 0)
        return -1;
    if (delta <= *previous || delta > last_delta)
        return wrong("its offset is out of order");
    *previous = delta;
    if (key > inner.end - inner.at)
        return wrong("its key runs past its end");
    inner.at += key > 0 ? key : 0;
    if (read_zigzag(&inner, &value, 35) < 0)
        return -1;
    if (value < 0 || value > inner.end - inner.at)
        return wrong("it has no value, or one that runs past its end");
    Reader body = {inner.at, inner.at + value};
    inner.at += value;
    if (read_zigzag(&inner, &headers, 35) < 0)
        return -1;
    for (int64_t i = 0; i < 2 * headers; i++) {
        int64_t part;
        if (read_zigzag(&inner, &part, 35) < 0)
            return -1;
        if (part > inner.end - inner.at)
            return wrong("a header runs past its end");
        inner.at += part > 0 ? part : 0;
    }
    if (headers < 0 || inner.at != inner.end)
        return wrong("it does not end where its length says");
    int64_t offset;
    if (__builtin_add_overflow(base_offset, delta, &offset))
        return wrong("its offset is out of range");
    if (offset < first || offset > last)
        return 0;
    return read_record(builder, &body, offset, wrapping_sum(base_timestamp_ms, timestamp), choice);
}

static void name_record(int64_t offset)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (type == PyExc_ValueError && value != NULL) {
        PyErr_Format(PyExc_ValueError, "record of offset %lld: %S", (long long)offset, value);
        Py_DECREF(type);
        Py_DECREF(value);
        Py_XDECREF(trace);
    }
    else
        PyErr_Restore(type, value, trace);
}

/* append(records, base_offset, base_timestamp_ms, last_offset_delta, count, first, last) -> number of new rows */
static PyObject *builder_append(Builder *builder, PyObject *args)
{
    Py_buffer view;
    long long base_offset, base_timestamp_ms, last_delta, count, first, last;
    if (!PyArg_ParseTuple(args, "y*LLLLLL", &view, &base_offset, &base_timestamp_ms, &last_delta, &count, &first,
                          &last))
        return NULL;
    Choice choice = {0};
    if (builder->topics != Py_None) {
        choice.ids = (const uint8_t *)PyBytes_AS_STRING(builder->topics);
        choice.count = PyBytes_GET_SIZE(builder->topics) / 16;
    }
    Reader r = {view.buf, (const uint8_t *)view.buf + view.len};
    int64_t before = builder->rows, previous = -1;
    int failed = 0;
    for (long long i = 0; i < count && !failed; i++) {
        failed = read_log_record(builder, &r, base_offset, base_timestamp_ms, last_delta, &previous, first, last,
                                 &choice) < 0;
        if (failed)
            name_record(wrapping_sum(base_offset, previous < i ? i : previous));
    }
    if (!failed && r.at != r.end)
        failed = wrong("bytes are left behind the last record of the batch") < 0;
    PyBuffer_Release(&view);
    if (failed) {
        cut_back(builder, before);
        return NULL;
    }
    return PyLong_FromLongLong(builder->rows - before);
}

static PyObject *packed_bits(const uint8_t *bytes, int64_t count)
{
    PyObject *made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)((count + 7) / 8));
    if (made == NULL)
        return NULL;
    uint8_t *to = (uint8_t *)PyBytes_AS_STRING(made);
    memset(to, 0, (size_t)((count + 7) / 8));
    for (int64_t i = 0; i < count; i++)
        to[i >> 3] |= (uint8_t)((bytes[i] != 0) << (i & 7));
    return made;
}

/* The buffers of an array: (length, nulls, valid bits or None, offsets or None, data or None, children). */
static PyObject *finished(Column *column)
{
    PyObject *valid = NULL, *offsets = NULL, *data = NULL, *children = NULL, *made = NULL;
    valid = column->nulls ? packed_bits(column->valid.bytes, column->length) : Py_NewRef(Py_None);
    if (column->kind == STRING || column->kind == BYTES || column->kind == LIST) {
        offsets = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(column->offsets.size + 4));
        if (offsets != NULL) {
            memset(PyBytes_AS_STRING(offsets), 0, 4);
            if (column->offsets.size)
                memcpy(PyBytes_AS_STRING(offsets) + 4, column->offsets.bytes, column->offsets.size);
        }
    }
    else
        offsets = Py_NewRef(Py_None);
    if (column->kind == LIST || column->kind == STRUCT)
        data = Py_NewRef(Py_None);
    else if (column->kind == BOOL)
        data = packed_bits(column->data.bytes, column->length);
    else
        data = PyBytes_FromStringAndSize((const char *)column->data.bytes, (Py_ssize_t)column->data.size);
    children = PyTuple_New(column->n_children);
    if (valid == NULL || offsets == NULL || data == NULL || children == NULL)
        goto end;
    for (int i = 0; i < column->n_children; i++) {
        if (column->kind == STRUCT && pad(&column->children[i], column->length) < 0)
            goto end;
        PyObject *child = finished(&column->children[i]);
        if (child == NULL)
            goto end;
        PyTuple_SET_ITEM(children, i, child);
    }
    made = Py_BuildValue("(LLOOOO)", (long long)column->length, (long long)column->nulls, valid, offsets, data,
                         children);
end:
    Py_XDECREF(valid);
    Py_XDECREF(offsets);
    Py_XDECREF(data);
    Py_XDECREF(children);
    return made;
}

/* finish() -> (own columns, columns of fields).  Afterwards the builder is empty. */
static PyObject *builder_finish(Builder *builder, PyObject *Py_UNUSED(none))
{
    PyObject *own = PyTuple_New(N_OWN), *fields = PyTuple_New(builder->root.n_children), *made = NULL;
    if (own == NULL || fields == NULL)
        goto end;
    for (int i = 0; i < N_OWN + builder->root.n_children; i++) {
        Column *column = i < N_OWN ? &builder->own[i] : &builder->root.children[i - N_OWN];
        PyObject *item = pad(column, builder->rows) < 0 ? NULL : finished(column);
        if (item == NULL)
            goto end;
        PyTuple_SET_ITEM(i < N_OWN ? own : fields, i < N_OWN ? i : i - N_OWN, item);
    }
    made = PyTuple_Pack(2, own, fields);
    if (made != NULL)
        cut_back(builder, 0);
end:
    Py_XDECREF(own);
    Py_XDECREF(fields);
    return made;
}

static PyObject *builder_rows(Builder *builder, void *Py_UNUSED(closure)) { return PyLong_FromLongLong(builder->rows); }

static PyMethodDef builder_methods[] = {
    {"append", (PyCFunction)builder_append, METH_VARARGS, "Append the records of a batch; return how many rows they made."},
    {"finish", (PyCFunction)builder_finish, METH_NOARGS, "Return the buffers of all columns, and empty the builder."},
    {NULL},
};

static PyGetSetDef builder_values[] = {{"rows", (getter)builder_rows, NULL, "Rows so far.", NULL}, {NULL}};

static PyTypeObject BuilderType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kraftd.spark._columns.Builder",
    .tp_basicsize = sizeof(Builder),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Columns that are filled from batches of a metadata log.",
    .tp_new = builder_new,
    .tp_dealloc = (destructor)builder_dealloc,
    .tp_methods = builder_methods,
    .tp_getset = builder_values,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "kraftd.spark._columns",
    .m_doc = "Records of a metadata log as the buffers of columns.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__columns(void)
{
    if (PyType_Ready(&BuilderType) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddObjectRef(module, "Builder", (PyObject *)&BuilderType) < 0)
        Py_CLEAR(module);
    return module;
}
