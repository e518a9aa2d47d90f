/* The codec engine in C: messages to bytes and back, driven by the field tables of kraftd/messages.

   It does what python_engine.py does, by the same tables (kraftd/wire/message.py defines their columns).
   tests/wire compares both engines, byte by byte and error by error.

   A class of messages has one Codec.  At the first use of a version the Codec makes a Plan for each
   struct of the message: the version's fields in order, each with its type, slot and default.  Readers
   and writers follow the plans.  Between two calls the engine keeps only plans, and two small tables of
   equal values (see "Equal values").

   Every function that can fail returns NULL or -1 then.  A reader allocates a struct with empty slots
   and fills them one by one.  So a failed read frees the struct with all values that it already has.

   While it reads a long message, the engine pauses: it releases the GIL, so that other threads run.
   These may call the engine meanwhile.  A reader's state is therefore on its stack, no pause falls
   between a look at shared state and its use, plans and codecs are never replaced, and no other thread
   can reach what is half read: structs and their arrays are unknown to the garbage collector. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>
#include <time.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

enum { MAX_STRING_BYTES = 32767, OWN_PART_BYTES = 4096, MAX_DEPTH = 32 };

/* ------------------------------------------------------------------------------------------------
   Field tables to plans */

enum kind { BOOL, INT8, INT16, UINT16, INT32, UINT32, INT64, FLOAT64, UUID, STRING, BYTES, RECORDS, STRUCT };

static const struct {
    const char *name;
    int width; /* bytes of a value; 0 if they vary */
} KINDS[] = {
    [BOOL] = {"bool", 1},     [INT8] = {"int8", 1},     [INT16] = {"int16", 2}, [UINT16] = {"uint16", 2},
    [INT32] = {"int32", 4},   [UINT32] = {"uint32", 4}, [INT64] = {"int64", 8}, [FLOAT64] = {"float64", 8},
    [UUID] = {"uuid", 16},    [STRING] = {"string", 0}, [BYTES] = {"bytes", 0}, [RECORDS] = {"records", 0},
};

/* The columns of a field's row, and the parts of a message's table. */
enum { ATTRIBUTE, NAME, TYPE, ARRAY, VERSIONS, NULLABLE, TAGGED, TAG, FLEXIBLE, IGNORABLE, DEFAULT, N_COLUMNS };
enum { MESSAGE_NAME, MESSAGE_KEY, MESSAGE_TYPE, MESSAGE_VALID, MESSAGE_FLEXIBLE, MESSAGE_STRUCTS, N_PARTS };

struct plan;

typedef struct {
    uint8_t kind;
    uint8_t array;
    uint8_t nullable;
    uint8_t tagged;
    uint8_t compact; /* its length is a varint */
    uint8_t guarded; /* absent in this version and not ignorable: only its default can be written */
    uint32_t tag;
    Py_ssize_t slot;     /* its offset in the Struct */
    Py_ssize_t least;    /* minimum size of an element in bytes, at least 1 */
    struct plan *nested; /* the plan of a STRUCT */
    PyObject *attribute; /* borrowed from the table */
    PyObject *standard;  /* the default; that of a list or a struct is only compared with, never shared */
} Field;

typedef struct plan {
    PyTypeObject *cls;
    Field *fields; /* of the body, then tagged ones by tag, then those that the version lacks */
    int n_body, n_tagged, n_fields;
    int flexible;
    Py_ssize_t unknown_slot; /* the offset of unknown_tags; 0 if the class has none */
    Py_ssize_t least;        /* minimum size in bytes; 0 until find_least has run */
} Plan;

typedef struct {
    PyObject_HEAD
    PyTypeObject *cls;
    PyObject *table;
    long first, last;
    long key; /* the type of a metadata record; -1 for other messages */
    int n_structs;
    Plan **plans; /* by version - first: the plans of all structs, the message's own first; NULL until used */
} Codec;

static PyTypeObject CodecType;
static PyObject *codecs;      /* a message's class -> its Codec */
static PyObject *empty_tuple; /* the default of unknown_tags */
static PyObject *protocol_error, *unsupported_version_error, *explain_encode, *table_of, *malformed;

/* Return whether a version is in a range of the table (None: in none); -1 if the object is no range. */
static int within(long version, PyObject *range)
{
    if (range == Py_None)
        return 0;
    if (!PyTuple_Check(range) || PyTuple_GET_SIZE(range) != 2) {
        PyErr_SetString(PyExc_TypeError, "a field table holds a range that is none");
        return -1;
    }
    long first = PyLong_AsLong(PyTuple_GET_ITEM(range, 0)), last = PyLong_AsLong(PyTuple_GET_ITEM(range, 1));
    if ((first == -1 || last == -1) && PyErr_Occurred())
        return -1;
    return first <= version && version <= last;
}

/* A field's default, from its cell in the table. */
static PyObject *standard_of(const Field *field, PyObject *given)
{
    if (given == Py_None || field->kind == RECORDS)
        return Py_NewRef(Py_None);
    if (field->array)
        return field->kind == STRUCT ? PyList_New(0) : Py_NewRef(empty_tuple);
    switch (field->kind) {
    case STRUCT:
        return PyObject_CallNoArgs((PyObject *)field->nested->cls);
    case UUID: {
        static const char zero[16];
        return PyBytes_FromStringAndSize(zero, 16);
    }
    case BYTES:
        return PyBytes_FromStringAndSize(NULL, 0);
    case BOOL:
        return PyBool_FromLong(PyObject_IsTrue(given));
    case FLOAT64:
        return PyNumber_Float(given);
    default:
        return Py_NewRef(given);
    }
}

/* The offset of an attribute in the Structs of a class; 0 with an exception if it is not in a slot. */
static Py_ssize_t slot_of(PyTypeObject *cls, PyObject *attribute)
{
    PyObject *member = PyObject_GetAttr((PyObject *)cls, attribute);
    if (!member)
        return 0;
    Py_ssize_t offset = 0;
    if (Py_IS_TYPE(member, &PyMemberDescr_Type) && PyDescr_TYPE(member) == cls) {
        PyMemberDef *definition = ((PyMemberDescrObject *)member)->d_member;
        if (definition->type == T_OBJECT_EX && !(definition->flags & READONLY))
            offset = definition->offset;
    }
    Py_DECREF(member);
    if (!offset)
        PyErr_Format(PyExc_TypeError, "%s.%U is not kept in a slot", cls->tp_name, attribute);
    return offset;
}

/* Fill a field from its row, for a version.  *place is its part of the plan: 0 body, 1 tagged, 2 absent.
   `example` is a new object of the struct's class.  The field shares the default object of that class,
   because the class's repr leaves out values that are this very object. */
static int fill_field(Field *field, int *place, PyObject *row, PyObject *example, PyObject *table, Plan *plans,
                      long version)
{
    if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) != N_COLUMNS) {
        PyErr_SetString(PyExc_TypeError, "a field table holds a row that is none");
        return -1;
    }
    PyObject *const *cell = &PyTuple_GET_ITEM(row, 0);
    PyObject *flexible = cell[FLEXIBLE] == Py_None ? PyTuple_GET_ITEM(table, MESSAGE_FLEXIBLE) : cell[FLEXIBLE];
    int present = within(version, cell[VERSIONS]), tagged = within(version, cell[TAGGED]);
    int nullable = within(version, cell[NULLABLE]), compact = within(version, flexible);
    if (present < 0 || tagged < 0 || nullable < 0 || compact < 0)
        return -1;
    field->attribute = cell[ATTRIBUTE];
    field->array = PyObject_IsTrue(cell[ARRAY]) == 1;
    field->nullable = (uint8_t)nullable;
    field->tagged = (uint8_t)tagged;
    field->compact = (uint8_t)compact;
    field->guarded = !present && PyObject_IsTrue(cell[IGNORABLE]) == 0;
    *place = !present ? 2 : tagged ? 1 : 0;
    if (cell[TAG] != Py_None)
        field->tag = (uint32_t)PyLong_AsUnsignedLong(cell[TAG]);
    for (field->kind = BOOL; field->kind < STRUCT; field->kind++)
        if (PyUnicode_CompareWithASCIIString(cell[TYPE], KINDS[field->kind].name) == 0)
            break;
    if (field->kind == STRUCT) {
        PyObject *structs = PyTuple_GET_ITEM(table, MESSAGE_STRUCTS);
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(structs); i++)
            if (PyUnicode_Compare(PyTuple_GET_ITEM(PyTuple_GET_ITEM(structs, i), 0), cell[TYPE]) == 0)
                field->nested = plans + i;
        if (!field->nested && !PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "a field table has no struct %U", cell[TYPE]);
    }
    if (PyErr_Occurred() || !(field->slot = slot_of(Py_TYPE(example), field->attribute)))
        return -1;
    if (!(field->standard = standard_of(field, cell[DEFAULT])))
        return -1;
    PyObject *own = SLOT(example, field->slot);
    if (field->kind != STRUCT && own && Py_IS_TYPE(own, Py_TYPE(field->standard))
        && PyObject_RichCompareBool(own, field->standard, Py_EQ) == 1)
        Py_SETREF(field->standard, Py_NewRef(own));
    return 0;
}

/* Fill a struct's plan; its fields that hold structs point to the plans of these. */
static int fill_plan(Plan *plan, PyObject *rows, PyObject *table, Plan *plans, long version)
{
    int n = (int)PyTuple_GET_SIZE(rows);
    if (!(plan->fields = PyMem_Calloc((size_t)n + 1, sizeof(Field)))) {
        PyErr_NoMemory();
        return -1;
    }
    PyObject *example = PyObject_CallNoArgs((PyObject *)plan->cls);
    if (!example)
        return -1;
    /* Three passes over the rows sort the fields by place. */
    for (int wanted = 0; wanted < 3; wanted++) {
        int begin = plan->n_fields;
        for (int i = 0; i < n; i++) {
            Field field = {0};
            int place;
            if (fill_field(&field, &place, PyTuple_GET_ITEM(rows, i), example, table, plans, version) < 0) {
                Py_DECREF(example);
                return -1;
            }
            if (place != wanted) {
                Py_DECREF(field.standard);
                continue;
            }
            int at = plan->n_fields++;
            for (; wanted == 1 && at > begin && plan->fields[at - 1].tag > field.tag; at--)
                plan->fields[at] = plan->fields[at - 1];
            plan->fields[at] = field;
        }
        if (wanted == 0)
            plan->n_body = plan->n_fields;
        else if (wanted == 1)
            plan->n_tagged = plan->n_fields - begin;
    }
    Py_DECREF(example);
    if (plan->n_tagged > 64) {
        PyErr_SetString(PyExc_TypeError, "a struct has more than 64 tagged fields");
        return -1;
    }
    return 0;
}

/* Return the minimum size of a struct in bytes; set that of each field's elements, too. */
static Py_ssize_t find_least(Plan *plan, int depth)
{
    if (plan->least)
        return plan->least;
    if (depth > MAX_DEPTH) {
        PyErr_SetString(PyExc_TypeError, "a struct of a field table holds itself");
        return -1;
    }
    Py_ssize_t total = plan->flexible;
    for (int i = 0; i < plan->n_fields; i++) {
        Field *field = plan->fields + i;
        Py_ssize_t least = field->kind == STRUCT   ? find_least(field->nested, depth + 1)
                           : field->kind <= UUID   ? KINDS[field->kind].width
                           : field->compact        ? 1
                           : field->kind == STRING ? 2
                                                   : 4;
        if (least < 0)
            return -1;
        field->least = least > 1 ? least : 1;
        if (i < plan->n_body)
            total += field->array                              ? (field->compact ? 1 : 4)
                     : field->kind == STRUCT && field->nullable ? 1
                                                                : least;
    }
    return plan->least = total;
}

static void free_plans(Plan *plans, int n_structs)
{
    for (int i = 0; plans && i < n_structs; i++) {
        for (int f = 0; f < plans[i].n_fields; f++)
            Py_XDECREF(plans[i].fields[f].standard);
        PyMem_Free(plans[i].fields);
        Py_XDECREF(plans[i].cls);
    }
    PyMem_Free(plans);
}

/* A struct's class; TypeError unless its objects consist of slots alone. */
static PyTypeObject *class_of(PyObject *module, PyObject *name)
{
    PyObject *found = PyObject_GetAttr(module, name);
    if (!found)
        return NULL;
    PyObject *names = PyObject_GetAttrString(found, "__struct_fields__");
    Py_ssize_t n = names ? PyObject_Size(names) : -1;
    Py_XDECREF(names);
    if (n >= 0 && PyType_Check(found)) {
        PyTypeObject *cls = (PyTypeObject *)found;
        if (!PyType_IS_GC(cls) && !cls->tp_itemsize
            && cls->tp_basicsize == (Py_ssize_t)(sizeof(PyObject) + (size_t)n * sizeof(PyObject *)))
            return cls;
        PyErr_Format(PyExc_TypeError, "%s is not a Struct of slots alone", cls->tp_name);
    }
    Py_DECREF(found);
    return NULL;
}

/* Make the plans of a version, at its first use. */
static Plan *make_plans(Codec *codec, long version)
{
    PyObject *structs = PyTuple_GET_ITEM(codec->table, MESSAGE_STRUCTS);
    int flexible = within(version, PyTuple_GET_ITEM(codec->table, MESSAGE_FLEXIBLE));
    int ever = PyTuple_GET_ITEM(codec->table, MESSAGE_FLEXIBLE) != Py_None;
    PyObject *module_name = PyObject_GetAttrString((PyObject *)codec->cls, "__module__");
    PyObject *module = module_name ? PyImport_GetModule(module_name) : NULL;
    PyObject *unknown_tags = PyUnicode_InternFromString("unknown_tags");
    Plan *plans = PyMem_Calloc((size_t)codec->n_structs, sizeof(Plan));
    if (flexible < 0 || !module || !unknown_tags || !plans)
        goto bad;
    /* All classes come first, because a default may be an object of any of them. */
    for (int i = 0; i < codec->n_structs; i++) {
        PyObject *entry = PyTuple_GET_ITEM(structs, i);
        if (!PyTuple_Check(entry) || PyTuple_GET_SIZE(entry) != 2 || !PyTuple_Check(PyTuple_GET_ITEM(entry, 1))) {
            PyErr_SetString(PyExc_TypeError, "a field table holds a struct that is none");
            goto bad;
        }
        plans[i].flexible = flexible;
        if (!(plans[i].cls = class_of(module, PyTuple_GET_ITEM(entry, 0))))
            goto bad;
        if (ever && !(plans[i].unknown_slot = slot_of(plans[i].cls, unknown_tags)))
            goto bad;
    }
    for (int i = 0; i < codec->n_structs; i++)
        if (fill_plan(plans + i, PyTuple_GET_ITEM(PyTuple_GET_ITEM(structs, i), 1), codec->table, plans, version) < 0)
            goto bad;
    for (int i = 0; i < codec->n_structs; i++)
        if (find_least(plans + i, 0) < 0)
            goto bad;
    Py_DECREF(module_name);
    Py_DECREF(module);
    Py_DECREF(unknown_tags);
    /* The constructors of defaults run Python code, which may have made the same plans. */
    if (codec->plans[version - codec->first])
        free_plans(plans, codec->n_structs);
    else
        codec->plans[version - codec->first] = plans;
    return codec->plans[version - codec->first];
bad:
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    Py_XDECREF(module_name);
    Py_XDECREF(module);
    Py_XDECREF(unknown_tags);
    free_plans(plans, codec->n_structs);
    return NULL;
}

/* Codec(cls, table).  TypeError for a table that is not of the form that message.py defines. */
static PyObject *codec_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyTypeObject *cls;
    PyObject *table;
    if (keywords && PyDict_GET_SIZE(keywords)) {
        PyErr_SetString(PyExc_TypeError, "Codec takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!O!", &PyType_Type, &cls, &PyTuple_Type, &table))
        return NULL;
    if (PyTuple_GET_SIZE(table) != N_PARTS || !PyTuple_Check(PyTuple_GET_ITEM(table, MESSAGE_VALID))
        || !PyTuple_Check(PyTuple_GET_ITEM(table, MESSAGE_STRUCTS))
        || PyTuple_GET_SIZE(PyTuple_GET_ITEM(table, MESSAGE_STRUCTS)) == 0) {
        PyErr_SetString(PyExc_TypeError, "this is no field table");
        return NULL;
    }
    Codec *codec = (Codec *)type->tp_alloc(type, 0);
    if (!codec)
        return NULL;
    codec->cls = (PyTypeObject *)Py_NewRef(cls);
    codec->table = Py_NewRef(table);
    codec->n_structs = (int)PyTuple_GET_SIZE(PyTuple_GET_ITEM(table, MESSAGE_STRUCTS));
    codec->key = -1;
    PyObject *kind = PyTuple_GET_ITEM(table, MESSAGE_TYPE), *key = PyTuple_GET_ITEM(table, MESSAGE_KEY);
    if (PyUnicode_Check(kind) && PyUnicode_CompareWithASCIIString(kind, "metadata") == 0 && key != Py_None)
        codec->key = PyLong_AsLong(key);
    if (PyErr_Occurred()
        || !PyArg_ParseTuple(PyTuple_GET_ITEM(table, MESSAGE_VALID), "ll", &codec->first, &codec->last))
        goto bad;
    if (codec->first < 0 || codec->first > codec->last || codec->last > 32767) {
        PyErr_SetString(PyExc_TypeError, "a field table has no valid versions");
        goto bad;
    }
    codec->plans = PyMem_Calloc((size_t)(codec->last - codec->first + 1), sizeof(Plan *));
    if (!codec->plans) {
        PyErr_NoMemory();
        goto bad;
    }
    return (PyObject *)codec;
bad:
    Py_DECREF(codec);
    return NULL;
}

static void codec_dealloc(Codec *codec)
{
    for (long version = codec->first; codec->plans && version <= codec->last; version++)
        free_plans(codec->plans[version - codec->first], codec->n_structs);
    PyMem_Free(codec->plans);
    Py_XDECREF(codec->cls);
    Py_XDECREF(codec->table);
    Py_TYPE(codec)->tp_free((PyObject *)codec);
}

static PyTypeObject CodecType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kraftd.wire._engine.Codec",
    .tp_doc = "The plans by which messages of a class are read and written: Codec(cls, table).",
    .tp_basicsize = sizeof(Codec),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = codec_new,
    .tp_dealloc = (destructor)codec_dealloc,
};

/* The codec of a class, borrowed; TypeError if the class is not one of messages. */
static Codec *codec_of(PyObject *cls)
{
    PyObject *found = PyDict_GetItemWithError(codecs, cls);
    if (LIKELY(found != NULL))
        return (Codec *)found;
    if (PyErr_Occurred())
        return NULL;
    if (!PyType_Check(cls)) {
        PyErr_Format(PyExc_TypeError, "%R is not the class of a message", cls);
        return NULL;
    }
    PyObject *module_name = PyObject_GetAttrString(cls, "__module__");
    PyObject *module = module_name ? PyImport_GetModule(module_name) : NULL;
    PyObject *table = module ? PyObject_GetAttrString(module, "SCHEMA") : NULL;
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();
    PyObject *name = PyErr_Occurred() ? NULL : PyObject_GetAttrString(cls, "__name__");
    if (name && module_name) {
        int is_message = table && PyTuple_Check(table) && PyTuple_GET_SIZE(table) == N_PARTS
                         && PyObject_RichCompareBool(PyTuple_GET_ITEM(table, MESSAGE_NAME), name, Py_EQ) == 1;
        if (!is_message)
            PyErr_Format(PyExc_TypeError, "%S.%S is not a message", module_name, name);
        else {
            PyObject *made = PyObject_CallFunctionObjArgs((PyObject *)&CodecType, cls, table, NULL);
            /* Another thread may have made one meanwhile: the first one stays. */
            found = made ? PyDict_SetDefault(codecs, cls, made) : NULL;
            Py_XDECREF(made); /* the dictionary holds a reference */
        }
    }
    Py_XDECREF(module_name);
    Py_XDECREF(module);
    Py_XDECREF(table);
    Py_XDECREF(name);
    return (Codec *)found;
}

/* The plan of a message's own struct in a version. */
static inline Plan *plan_of(Codec *codec, long version)
{
    if (UNLIKELY(!Py_IS_TYPE((PyObject *)codec, &CodecType))) {
        PyErr_SetString(PyExc_TypeError, "CODECS holds what is no Codec");
        return NULL;
    }
    if (UNLIKELY(version < codec->first || version > codec->last)) {
        PyObject *name = PyTuple_GET_ITEM(codec->table, MESSAGE_NAME);
        PyObject *valid = PyTuple_GET_ITEM(codec->table, MESSAGE_VALID);
        PyObject *error = PyObject_CallFunction(unsupported_version_error, "OlO", name, version, valid);
        if (error)
            PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_XDECREF(error);
        return NULL;
    }
    Plan *plan = codec->plans[version - codec->first];
    return LIKELY(plan != NULL) ? plan : make_plans(codec, version);
}

/* ------------------------------------------------------------------------------------------------
   Numbers as bytes, in big-endian order */

static inline uint16_t load16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }

static inline uint32_t load32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t load64(const uint8_t *p) { return (uint64_t)load32(p) << 32 | load32(p + 4); }

static inline void store16(uint8_t *p, uint16_t n)
{
    p[0] = (uint8_t)(n >> 8);
    p[1] = (uint8_t)n;
}

static inline void store32(uint8_t *p, uint32_t n)
{
    store16(p, (uint16_t)(n >> 16));
    store16(p + 2, (uint16_t)n);
}

static inline void store64(uint8_t *p, uint64_t n)
{
    store32(p, (uint32_t)(n >> 32));
    store32(p + 4, (uint32_t)n);
}

/* ------------------------------------------------------------------------------------------------
   Equal values: a million partitions name few distinct topics, directories and replica lists.

   Two tables of fixed size let equal uuids, and equal short arrays of int32, share one immutable object.
   The hash of a value is its index; a new value replaces the one with the same index. */

enum { MEMO_ENTRIES = 4096, MEMO_INTS = 8 };

static PyObject *memo_uuids[MEMO_ENTRIES];

static struct {
    PyObject *tuple;
    Py_ssize_t count;
    uint8_t bytes[4 * MEMO_INTS];
} memo_arrays[MEMO_ENTRIES];

static inline uint32_t hash16(const uint8_t *p)
{
    uint64_t a, b;
    memcpy(&a, p, 8);
    memcpy(&b, p + 8, 8);
    return (uint32_t)(((a * 0x9E3779B97F4A7C15u) ^ (b * 0xC2B2AE3D27D4EB4Fu)) >> 40);
}

static inline PyObject *uuid_of(const uint8_t *p)
{
    PyObject **entry = memo_uuids + hash16(p) % MEMO_ENTRIES;
    if (*entry && memcmp(PyBytes_AS_STRING(*entry), p, 16) == 0)
        return Py_NewRef(*entry);
    PyObject *made = PyBytes_FromStringAndSize((const char *)p, 16);
    if (made)
        Py_XSETREF(*entry, Py_NewRef(made));
    return made;
}

static PyObject *clear_memo(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    for (int i = 0; i < MEMO_ENTRIES; i++) {
        Py_CLEAR(memo_uuids[i]);
        Py_CLEAR(memo_arrays[i].tuple);
    }
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------------------------------------
   Reading */

typedef struct {
    PyObject *attribute; /* borrowed; NULL for an element of an array */
    Py_ssize_t index;
} Step;

typedef struct {
    const uint8_t *data;
    Py_ssize_t at, size;
    PyObject *source; /* the object whose buffer data is */
    PyObject *view;   /* a memoryview of source; NULL until a records field is read */
    /* The fault, and its byte; NULL without a fault, and if an exception is set. */
    PyObject *reason;
    Py_ssize_t wrong_at;
    Py_ssize_t work_left; /* until the next pause; PY_SSIZE_T_MAX if there is none */
    Py_ssize_t most_elements, elements_left;
    int n_steps; /* of the path from the faulty field up to the message */
    Step steps[2 * MAX_DEPTH];
} Reader;

/* Work is counted in values made: each takes 20 to 60 ns to read, and about as long to free. */
enum { LONG_BYTES = 1 << 14, LARGE_BYTES = 1 << 16, WORK_UNTIL_PAUSE = 3000, BYTES_OF_WORK = 16, PAUSE_NS = 50000 };

/* Return whether this thread is the only one that runs Python. */
static int is_alone(void)
{
    PyThreadState *first = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    return first && !PyThreadState_Next(first);
}

/* Begin to read a source from a byte on; `most_elements` 0 is no limit. */
static void start_reading(Reader *r, PyObject *source, const Py_buffer *buffer, Py_ssize_t at, Py_ssize_t most_elements)
{
    r->data = buffer->buf;
    r->at = at;
    r->size = buffer->len;
    r->source = source;
    r->view = r->reason = NULL;
    r->work_left = PY_SSIZE_T_MAX;
    r->most_elements = r->elements_left = most_elements ? most_elements : PY_SSIZE_T_MAX;
    r->n_steps = 0;
}

static inline int may_pause(const Reader *r) { return r->work_left <= WORK_UNTIL_PAUSE; }

/* Let another thread have the GIL.  Without the sleep this thread would take it back before the other,
   which has to wake up first, could. */
static void pause_reading(Reader *r)
{
    static const struct timespec pause = {0, PAUSE_NS};
    r->work_left = WORK_UNTIL_PAUSE;
    PyThreadState *state = PyEval_SaveThread();
    nanosleep(&pause, NULL);
    PyEval_RestoreThread(state);
}

/* Count work, and pause if enough is done. */
static inline void spend(Reader *r, Py_ssize_t work)
{
    if (UNLIKELY((r->work_left -= work) < 0))
        pause_reading(r);
}

/* Note a fault at a byte. */
static void *wrong(Reader *r, Py_ssize_t at, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    Py_XSETREF(r->reason, PyUnicode_FromFormatV(format, values));
    va_end(values);
    r->wrong_at = at;
    return NULL;
}

static void add_step(Reader *r, PyObject *attribute, Py_ssize_t index)
{
    if (r->n_steps < 2 * MAX_DEPTH)
        r->steps[r->n_steps++] = (Step){attribute, index};
}

static void *missing(Reader *r, Py_ssize_t count)
{
    Py_ssize_t left = r->size > r->at ? r->size - r->at : 0;
    return wrong(r, r->at, "%zd bytes are needed, %zd are left", count, left);
}

/* Return the next bytes and move past them; NULL if there are fewer. */
static inline const uint8_t *take(Reader *r, Py_ssize_t count)
{
    if (UNLIKELY(count > r->size - r->at))
        return missing(r, count);
    const uint8_t *p = r->data + r->at;
    r->at += count;
    return p;
}

static int read_long_uvarint(Reader *r, uint32_t *value)
{
    Py_ssize_t start = r->at;
    uint64_t sum = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        const uint8_t *p = take(r, 1);
        if (!p)
            return -1;
        sum |= (uint64_t)(*p & 127) << shift;
        if (*p < 128) {
            if (sum > UINT32_MAX) {
                wrong(r, start, "a varint is greater than 32 bits");
                return -1;
            }
            *value = (uint32_t)sum;
            return 0;
        }
    }
    wrong(r, start, "a varint is longer than 5 bytes");
    return -1;
}

static inline int read_uvarint(Reader *r, uint32_t *value)
{
    if (LIKELY(r->at < r->size && r->data[r->at] < 128)) {
        *value = r->data[r->at++];
        return 0;
    }
    return read_long_uvarint(r, value);
}

/* Read a length or a count; -1 is null. */
static inline int read_length(Reader *r, int compact, int head, int nullable, Py_ssize_t *length)
{
    Py_ssize_t start = r->at;
    if (compact) {
        uint32_t value;
        if (read_uvarint(r, &value) < 0)
            return -1;
        *length = (Py_ssize_t)value - 1;
    } else {
        const uint8_t *p = take(r, head);
        if (!p)
            return -1;
        *length = head == 2 ? (int16_t)load16(p) : (int32_t)load32(p);
    }
    if (LIKELY(*length >= 0))
        return 0;
    if (*length < -1)
        wrong(r, start, "a length of %zd", *length);
    else if (!nullable)
        wrong(r, start, "null, where it cannot be null");
    else
        return 0;
    return -1;
}

static inline PyObject *fixed_value(enum kind kind, const uint8_t *p)
{
    switch (kind) {
    case BOOL:
        return PyBool_FromLong(*p);
    case INT8:
        return PyLong_FromLong((int8_t)*p);
    case INT16:
        return PyLong_FromLong((int16_t)load16(p));
    case UINT16:
        return PyLong_FromLong(load16(p));
    case INT32:
        return PyLong_FromLong((int32_t)load32(p));
    case UINT32:
        return PyLong_FromUnsignedLong(load32(p));
    case INT64:
        return PyLong_FromLongLong((int64_t)load64(p));
    case FLOAT64: {
        uint64_t bits = load64(p);
        double number;
        memcpy(&number, &bits, 8);
        return PyFloat_FromDouble(number);
    }
    default:
        return uuid_of(p);
    }
}

/* A records field: a view of the source, which the view keeps alive. */
static PyObject *records_view(Reader *r, Py_ssize_t begin, Py_ssize_t end)
{
    if (!r->view && !(r->view = PyMemoryView_FromObject(r->source)))
        return NULL;
    return PySequence_GetSlice(r->view, begin, end);
}

/* A copy of bytes; other threads run while many are copied. */
static PyObject *copy_bytes(Reader *r, const char *p, Py_ssize_t length)
{
    if (LIKELY(length < LARGE_BYTES || !may_pause(r)))
        return PyBytes_FromStringAndSize(p, length);
    PyObject *copy = PyBytes_FromStringAndSize(NULL, length);
    if (!copy)
        return NULL;
    PyThreadState *state = PyEval_SaveThread();
    memcpy(PyBytes_AS_STRING(copy), p, (size_t)length);
    PyEval_RestoreThread(state);
    return copy;
}

/* Read a string, bytes or records. */
static inline PyObject *read_variable(Reader *r, const Field *field, int nullable)
{
    Py_ssize_t start = r->at, length;
    if (read_length(r, field->compact, field->kind == STRING ? 2 : 4, nullable, &length) < 0)
        return NULL;
    if (length < 0)
        Py_RETURN_NONE;
    if (field->kind == STRING && UNLIKELY(length > MAX_STRING_BYTES))
        return wrong(r, start, "a string of %zd bytes, more than %d", length, MAX_STRING_BYTES);
    Py_ssize_t at = r->at;
    const char *p = (const char *)take(r, length);
    if (!p)
        return NULL;
    if (field->kind == RECORDS)
        return records_view(r, at, at + length); /* no work, however many bytes */
    r->work_left -= length / BYTES_OF_WORK; /* the array, if it is in one, pauses */
    if (field->kind == BYTES)
        return copy_bytes(r, p, length);
    return PyUnicode_DecodeUTF8(p, length, "replace"); /* as Apache Kafka takes what is no UTF-8 */
}

static PyObject *read_struct(Reader *r, const Plan *plan);

/* Read an array of values of fixed width; the caller has checked that all bytes are present. */
static PyObject *fixed_array(Reader *r, enum kind kind, Py_ssize_t count)
{
    int width = KINDS[kind].width;
    const uint8_t *p = take(r, count * width);
    if (count == 0)
        return Py_NewRef(empty_tuple);
    uint8_t bytes[4 * MEMO_INTS] = {0};
    int memoised = kind == INT32 && count <= MEMO_INTS;
    uint32_t entry = 0;
    if (memoised) {
        memcpy(bytes, p, (size_t)count * 4);
        entry = (hash16(bytes) ^ hash16(bytes + 16) * 31 ^ (uint32_t)count) % MEMO_ENTRIES;
        if (memo_arrays[entry].tuple && memo_arrays[entry].count == count
            && memcmp(memo_arrays[entry].bytes, bytes, sizeof bytes) == 0)
            return Py_NewRef(memo_arrays[entry].tuple);
    }
    PyObject *tuple = PyTuple_New(count);
    if (!tuple)
        return NULL;
    PyObject_GC_UnTrack(tuple); /* bytes and numbers make no cycle */
    for (Py_ssize_t i = 0; i < count; i++, p += width) {
        PyObject *value = fixed_value(kind, p);
        if (!value) {
            Py_DECREF(tuple);
            return NULL;
        }
        PyTuple_SET_ITEM(tuple, i, value);
        if (!memoised)
            spend(r, 1);
    }
    if (memoised) {
        memcpy(memo_arrays[entry].bytes, bytes, sizeof bytes);
        memo_arrays[entry].count = count;
        Py_XSETREF(memo_arrays[entry].tuple, Py_NewRef(tuple));
    }
    return tuple;
}

/* Count elements that are announced at a byte; -1 if they are more than the message may have. */
static inline int allow_elements(Reader *r, Py_ssize_t at, Py_ssize_t count)
{
    if (UNLIKELY(count > r->elements_left)) {
        wrong(r, at, "more than %zd elements in all", r->most_elements);
        return -1;
    }
    r->elements_left -= count;
    return 0;
}

static void free_struct(Reader *r, const Plan *plan, PyObject *made);

/* Free the elements of an array that no other code has, the last one first, with pauses. */
static void free_elements(Reader *r, const Field *field, PyObject *array)
{
    Py_ssize_t count = Py_SIZE(array);
    PyObject **items = field->kind == STRUCT ? ((PyListObject *)array)->ob_item : ((PyTupleObject *)array)->ob_item;
    while (count--) {
        PyObject *item = items[count];
        items[count] = NULL;
        if (item && field->kind == STRUCT)
            free_struct(r, field->nested, item);
        else
            Py_XDECREF(item);
        spend(r, 1);
    }
}

/* Free a struct that no other code has, with pauses if its message is long. */
static void free_struct(Reader *r, const Plan *plan, PyObject *made)
{
    for (const Field *field = plan->fields; may_pause(r) && field < plan->fields + plan->n_fields; field++) {
        PyObject *value = SLOT(made, field->slot);
        if (!value || value == Py_None || Py_REFCNT(value) != 1)
            continue;
        if (field->array) {
            free_elements(r, field, value);
        } else if (field->kind == STRUCT) {
            SLOT(made, field->slot) = NULL;
            free_struct(r, field->nested, value);
        }
        spend(r, 1);
    }
    Py_DECREF(made);
}

static inline PyObject *read_array(Reader *r, const Field *field)
{
    Py_ssize_t start = r->at, count;
    if (read_length(r, field->compact, 4, field->nullable, &count) < 0)
        return NULL;
    if (count < 0)
        Py_RETURN_NONE;
    /* Refuse a count that the remaining bytes cannot hold, before any allocation. */
    if (UNLIKELY(count > (r->size - r->at) / field->least))
        return wrong(r, start, "%zd elements of at least %zd bytes are announced, %zd bytes are left", count,
                     field->least, r->size - r->at);
    if (allow_elements(r, start, count) < 0)
        return NULL;
    if (field->kind <= UUID)
        return fixed_array(r, field->kind, count);
    if (field->kind != STRUCT && count == 0)
        return Py_NewRef(empty_tuple);
    PyObject *array = field->kind == STRUCT ? PyList_New(count) : PyTuple_New(count);
    if (!array)
        return NULL;
    /* Texts, bytes and structs of a message make no cycle; nor may other code see an array with gaps. */
    PyObject_GC_UnTrack(array);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = field->kind == STRUCT ? read_struct(r, field->nested) : read_variable(r, field, 0);
        if (!item) {
            add_step(r, NULL, i);
            if (may_pause(r))
                free_elements(r, field, array);
            Py_DECREF(array);
            return NULL;
        }
        if (field->kind == STRUCT)
            PyList_SET_ITEM(array, i, item);
        else
            PyTuple_SET_ITEM(array, i, item);
        spend(r, 1);
    }
    if (field->kind == RECORDS)
        PyObject_GC_Track(array);
    return array;
}

static inline PyObject *read_field(Reader *r, const Field *field)
{
    if (field->array)
        return read_array(r, field);
    if (field->kind <= UUID) {
        const uint8_t *p = take(r, KINDS[field->kind].width);
        return p ? fixed_value(field->kind, p) : NULL;
    }
    if (field->kind != STRUCT)
        return read_variable(r, field, field->nullable);
    if (field->nullable && field->tagged) { /* Kafka writes a varint before a tagged one, 0 for null */
        uint32_t there;
        if (read_uvarint(r, &there) < 0)
            return NULL;
        if (there == 0)
            Py_RETURN_NONE;
    } else if (field->nullable) {
        const uint8_t *p = take(r, 1);
        if (!p)
            return NULL;
        if (*p >= 128) /* a negative int8 is null */
            Py_RETURN_NONE;
    }
    return read_struct(r, field->nested);
}

/* Append an unknown tagged field to its struct's unknown fields. */
static int add_unknown(Reader *r, PyObject *unknown, PyObject *seen, Py_ssize_t start, uint32_t tag,
                       const uint8_t *body, Py_ssize_t size)
{
    PyObject *number = PyLong_FromUnsignedLong(tag);
    int twice = number ? PySet_Contains(seen, number) : -1, failed = -1;
    if (twice == 1)
        wrong(r, start, "tag %u is there twice", tag);
    else if (twice == 0 && PySet_Add(seen, number) == 0) {
        PyObject *pair = Py_BuildValue("(Oy#)", number, (const char *)body, size);
        failed = pair ? PyList_Append(unknown, pair) : -1;
        Py_XDECREF(pair);
    }
    Py_XDECREF(number);
    return failed;
}

/* Read the fields of a tag section that is not empty; the caller has read their count. */
static int read_tags(Reader *r, const Plan *plan, PyObject *into, Py_ssize_t start, uint32_t count)
{
    if (count > (r->size - r->at) / 2) {
        wrong(r, start, "%u tagged fields are announced, %zd bytes are left", count, r->size - r->at);
        return -1;
    }
    if (allow_elements(r, start, count) < 0)
        return -1;
    PyObject *unknown = NULL, *seen = NULL;
    for (; count; count--) {
        uint32_t tag, size;
        start = r->at;
        spend(r, 4); /* a pair, its parts and a member of a set */
        if (read_uvarint(r, &tag) < 0 || read_uvarint(r, &size) < 0)
            goto bad;
        const Field *field = plan->fields + plan->n_body, *end = field + plan->n_tagged;
        while (field < end && field->tag != tag)
            field++;
        if (field < end && SLOT(into, field->slot)) {
            wrong(r, start, "tag %u is there twice", tag);
            goto bad;
        }
        Py_ssize_t at = r->at;
        if (field == end) {
            if (!unknown && (!(unknown = PyList_New(0)) || !(seen = PySet_New(NULL))))
                goto bad;
            /* A repeated tag is reported rather than a truncated field, as python_engine.py does. */
            int whole = (Py_ssize_t)size <= r->size - at;
            if (add_unknown(r, unknown, seen, start, tag, r->data + at, whole ? (Py_ssize_t)size : 0) < 0
                || !take(r, size))
                goto bad;
            continue;
        }
        if ((Py_ssize_t)size > r->size - at) {
            missing(r, size);
            goto bad;
        }
        PyObject *value = read_field(r, field);
        if (value && r->at - at != (Py_ssize_t)size) {
            wrong(r, start, "its tag announces %u bytes, its value has %zd", size, r->at - at);
            Py_CLEAR(value);
        }
        if (!value) {
            add_step(r, field->attribute, 0);
            goto bad;
        }
        SLOT(into, field->slot) = value;
    }
    if (unknown) {
        if (PyList_Sort(unknown) < 0)
            goto bad;
        SLOT(into, plan->unknown_slot) = PyList_AsTuple(unknown);
        if (!SLOT(into, plan->unknown_slot))
            goto bad;
    }
    Py_XDECREF(unknown);
    Py_XDECREF(seen);
    return 0;
bad:
    Py_XDECREF(unknown);
    Py_XDECREF(seen);
    return -1;
}

/* The default of a field: a new object if it can change. */
static inline PyObject *fresh(const Field *field)
{
    if (field->kind == STRUCT && field->standard != Py_None)
        return field->array ? PyList_New(0) : PyObject_CallNoArgs((PyObject *)field->nested->cls);
    return Py_NewRef(field->standard);
}

/* A Struct with empty slots, allocated as its class does. */
static inline PyObject *new_struct(PyTypeObject *cls)
{
    PyObject *made = _PyObject_New(cls);
    if (made)
        memset((char *)made + sizeof(PyObject), 0, (size_t)cls->tp_basicsize - sizeof(PyObject));
    return made;
}

static PyObject *read_struct(Reader *r, const Plan *plan)
{
    PyObject *made = new_struct(plan->cls);
    if (!made)
        return NULL;
    r->work_left -= plan->n_fields;
    const Field *field = plan->fields, *end = field + plan->n_body;
    for (; field < end; field++) {
        PyObject *value = read_field(r, field);
        if (UNLIKELY(!value)) {
            add_step(r, field->attribute, 0);
            goto bad;
        }
        SLOT(made, field->slot) = value;
    }
    if (plan->flexible) {
        Py_ssize_t start = r->at;
        uint32_t count;
        if (read_uvarint(r, &count) < 0 || (count && read_tags(r, plan, made, start, count) < 0))
            goto bad;
    }
    if (plan->unknown_slot && !SLOT(made, plan->unknown_slot))
        SLOT(made, plan->unknown_slot) = Py_NewRef(empty_tuple);
    for (end = plan->fields + plan->n_fields; field < end; field++)
        if (!SLOT(made, field->slot) && !(SLOT(made, field->slot) = fresh(field)))
            goto bad;
    return made;
bad:
    free_struct(r, plan, made);
    return NULL;
}

/* The path of the faulty field, such as topics[2].partitions. */
static PyObject *path_of(const Reader *r)
{
    PyObject *path = PyUnicode_FromString("");
    for (int i = r->n_steps - 1; path && i >= 0; i--) {
        const Step *step = r->steps + i;
        PyObject *longer = step->attribute ? PyUnicode_FromFormat(i < r->n_steps - 1 ? "%U.%U" : "%U%U", path, step->attribute)
                                           : PyUnicode_FromFormat("%U[%zd]", path, step->index);
        Py_SETREF(path, longer);
    }
    return path;
}

/* Raise ProtocolError for the fault, unless another exception is set. */
static void raise_wrong(Reader *r, Codec *codec, long version)
{
    if (!r->reason || PyErr_Occurred())
        return;
    PyObject *path = path_of(r);
    PyObject *title = PyUnicode_FromFormat("%U v%ld", PyTuple_GET_ITEM(codec->table, MESSAGE_NAME), version);
    if (path && title) {
        PyObject *error = PyObject_CallFunction(protocol_error, "OOnO", title, path, r->wrong_at, r->reason);
        if (error)
            PyErr_SetObject(protocol_error, error);
        Py_XDECREF(error);
    }
    Py_XDECREF(path);
    Py_XDECREF(title);
}

/* (cls, version, view, offset=0, max_elements=0) -> the message at the offset; *end becomes the offset
   after it.  If end is NULL, the message must end where the view ends. */
static PyObject *decode_args(PyObject *const *args, Py_ssize_t n_args, Py_ssize_t *end)
{
    if (n_args < 3 || n_args > 5) {
        PyErr_SetString(PyExc_TypeError, "(cls, version, view, offset=0, max_elements=0) are wanted");
        return NULL;
    }
    long version = PyLong_AsLong(args[1]);
    Py_ssize_t offset = n_args > 3 ? PyNumber_AsSsize_t(args[3], PyExc_OverflowError) : 0;
    Py_ssize_t most = n_args > 4 ? PyNumber_AsSsize_t(args[4], PyExc_OverflowError) : 0;
    if ((version == -1 || offset == -1 || most == -1) && PyErr_Occurred())
        return NULL;
    if (offset < 0 || most < 0) {
        PyErr_SetString(PyExc_ValueError, "an offset and a number of elements are not negative");
        return NULL;
    }
    Codec *codec = (Codec *)Py_XNewRef(codec_of(args[0]));
    Plan *plan = codec ? plan_of(codec, version) : NULL;
    PyObject *message = NULL;
    Py_buffer buffer;
    if (plan && PyObject_GetBuffer(args[2], &buffer, PyBUF_SIMPLE) == 0) {
        Reader r;
        start_reading(&r, args[2], &buffer, offset, most);
        if (UNLIKELY(r.size - r.at > LONG_BYTES) && !is_alone())
            r.work_left = WORK_UNTIL_PAUSE;
        message = offset <= r.size ? read_struct(&r, plan) : missing(&r, 1);
        if (message && end)
            *end = r.at;
        else if (message && r.at != r.size) {
            wrong(&r, r.at, "%zd bytes are left after the message", r.size - r.at);
            free_struct(&r, plan, message);
            message = NULL;
        }
        if (!message)
            raise_wrong(&r, codec, version);
        Py_XDECREF(r.reason);
        Py_XDECREF(r.view);
        PyBuffer_Release(&buffer);
    }
    Py_XDECREF(codec);
    return message;
}

static PyObject *decode(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n_args)
{
    return decode_args(args, n_args, NULL);
}

static PyObject *decode_prefix(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n_args)
{
    Py_ssize_t end;
    PyObject *message = decode_args(args, n_args, &end);
    return message ? Py_BuildValue("(Nn)", message, end) : NULL;
}

/* ------------------------------------------------------------------------------------------------
   Rows of an answer from elements that are not decoded

   A request may name a million elements, all of which are refused for the same reason.  Their rows in the
   answer differ in one field, which has the same bytes in both.  No object is made of any element, and
   other threads run meanwhile. */

typedef struct {
    const uint8_t *data;
    Py_ssize_t at, size, elements_left;
    int copying; /* these bytes are copied into an answer, which has no tagged fields */
} Scan;

typedef struct {
    Py_ssize_t begin;
    uint32_t size;
    Py_ssize_t inner; /* where the array within the element begins, whose elements have rows, too */
} Span;

static int scan_bytes(Scan *s, Py_ssize_t count)
{
    if (count > s->size - s->at)
        return -1;
    s->at += count;
    return 0;
}

static int scan_uvarint(Scan *s, uint32_t *value)
{
    uint64_t sum = 0;
    for (int shift = 0; shift < 35 && s->at < s->size; shift += 7) {
        uint8_t byte = s->data[s->at++];
        sum |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *value = (uint32_t)sum;
            return sum > UINT32_MAX || (byte == 0 && shift) ? -1 : 0; /* an answer's have no more bytes than needed */
        }
    }
    return -1;
}

/* Read a length or a count; -1 is null, if that is allowed. */
static int scan_length(Scan *s, int compact, int head, int nullable, Py_ssize_t *length)
{
    if (compact) {
        uint32_t value;
        if (scan_uvarint(s, &value) < 0)
            return -1;
        *length = (Py_ssize_t)value - 1;
    } else {
        const uint8_t *p = s->data + s->at;
        if (scan_bytes(s, head) < 0)
            return -1;
        *length = head == 2 ? (int16_t)load16(p) : (int32_t)load32(p);
    }
    return *length >= (nullable ? -1 : 0) ? 0 : -1;
}

/* Return whether bytes are UTF-8 as Python decodes it: no surrogates, nothing longer than necessary. */
static int is_utf8(const uint8_t *p, Py_ssize_t size)
{
    for (const uint8_t *end = p + size; p < end;) {
        if (*p < 0x80) {
            p++;
            continue;
        }
        int more = *p >= 0xF0 ? 3 : *p >= 0xE0 ? 2 : 1;
        if (*p < 0xC2 || *p > 0xF4 || end - p <= more)
            return 0;
        uint8_t low = *p == 0xE0 ? 0xA0 : *p == 0xF0 ? 0x90 : 0x80, high = *p == 0xED ? 0x9F : *p == 0xF4 ? 0x8F : 0xBF;
        if (p[1] < low || p[1] > high)
            return 0;
        for (int i = 2; i <= more; i++)
            if (p[i] < 0x80 || p[i] > 0xBF)
                return 0;
        p += more + 1;
    }
    return 1;
}

static int scan_struct(Scan *s, const Plan *plan, int depth);

static int scan_value(Scan *s, const Field *field, int nullable, int depth)
{
    if (field->kind <= UUID)
        return scan_bytes(s, KINDS[field->kind].width);
    if (field->kind == STRUCT)
        return scan_struct(s, field->nested, depth);
    Py_ssize_t length;
    if (scan_length(s, field->compact, field->kind == STRING ? 2 : 4, nullable, &length) < 0)
        return -1;
    const uint8_t *p = s->data + s->at;
    if (length > 0 && scan_bytes(s, length) < 0)
        return -1;
    /* Other text is decoded, which replaces what is no UTF-8: the answer must not repeat its bytes. */
    return field->kind != STRING || length <= 0 || (length <= MAX_STRING_BYTES && is_utf8(p, length)) ? 0 : -1;
}

/* Read the count of an array; -1 is null. */
static int scan_count(Scan *s, const Field *field, Py_ssize_t *count)
{
    if (scan_length(s, field->compact, 4, field->nullable, count) < 0 || *count > (s->size - s->at) / field->least
        || *count > s->elements_left)
        return -1;
    s->elements_left -= *count > 0 ? *count : 0;
    return 0;
}

static int scan_field(Scan *s, const Field *field, int depth)
{
    Py_ssize_t count;
    if (field->array) {
        if (scan_count(s, field, &count) < 0)
            return -1;
        for (; count > 0; count--)
            if (scan_value(s, field, 0, depth) < 0)
                return -1;
        return 0;
    }
    if (field->kind == STRUCT && field->nullable)
        return -1; /* no such request is worth it */
    return scan_value(s, field, field->nullable, depth);
}

/* Move past the tagged fields of a struct, whose tags must ascend. */
static int scan_tags(Scan *s, const Plan *plan, int depth)
{
    uint32_t count, tag, size;
    int64_t last = -1;
    if (!plan->flexible)
        return 0;
    if (scan_uvarint(s, &count) < 0 || count > s->elements_left || (count && s->copying))
        return -1;
    s->elements_left -= count;
    for (; count; count--, last = tag) {
        if (scan_uvarint(s, &tag) < 0 || scan_uvarint(s, &size) < 0 || tag <= last || size > s->size - s->at)
            return -1;
        Py_ssize_t end = s->at + size;
        const Field *field = plan->fields + plan->n_body, *fields_end = field + plan->n_tagged;
        while (field < fields_end && field->tag != tag)
            field++;
        if (field < fields_end && (scan_field(s, field, depth) < 0 || s->at != end))
            return -1;
        s->at = end;
    }
    return 0;
}

static int scan_struct(Scan *s, const Plan *plan, int depth)
{
    if (depth == 0)
        return -1;
    for (const Field *field = plan->fields; field < plan->fields + plan->n_body; field++)
        if (scan_field(s, field, depth - 1) < 0)
            return -1;
    return scan_tags(s, plan, depth - 1);
}

/* An array of a request whose elements become rows: the fields of an element that are copied, that have the
   same bytes in all, and that hold rows within the row, of which one field is copied. */
typedef struct {
    const Field *array, *copied, *checked, *inner, *inner_copied;
} Elements;

typedef struct {
    Py_ssize_t count, size; /* the rows within rows, and their bytes */
} Inner;

static int scan_element(Scan *s, const Elements *elements, const Py_buffer *wanted, const Py_buffer *inner_suffix,
                        Inner *all, Span *span);

/* Move past the array within an element. Count its rows, or write them with their number to `to`. */
static int scan_inner(Scan *s, const Elements *elements, const Py_buffer *suffix, Inner *all, uint8_t **to)
{
    const Elements rows = {elements->inner, elements->inner_copied, NULL, NULL, NULL};
    Py_ssize_t begin = s->at, count;
    Span span;
    if (scan_count(s, elements->inner, &count) < 0 || count < 0)
        return -1;
    if (to) {
        memcpy(*to, s->data + begin, (size_t)(s->at - begin));
        *to += s->at - begin;
    }
    all->count += count;
    all->size += s->at - begin + count * suffix->len;
    for (; count > 0; count--) {
        if (scan_element(s, &rows, NULL, NULL, NULL, &span) < 0)
            return -1;
        all->size += span.size;
        if (to) {
            memcpy(*to, s->data + span.begin, span.size);
            memcpy(*to += span.size, suffix->buf, (size_t)suffix->len);
            *to += suffix->len;
        }
    }
    return 0;
}

static int scan_element(Scan *s, const Elements *elements, const Py_buffer *wanted, const Py_buffer *inner_suffix,
                        Inner *all, Span *span)
{
    const Field *array = elements->array, *copied = elements->copied, *checked = elements->checked;
    Py_ssize_t begin = s->at;
    *span = (Span){begin, 0, 0};
    if (array->kind != STRUCT) {
        if (scan_value(s, array, 0, MAX_DEPTH) < 0)
            return -1;
        span->size = (uint32_t)(s->at - begin);
        return 0;
    }
    const Plan *plan = array->nested;
    for (const Field *field = plan->fields; field < plan->fields + plan->n_body; field++, begin = s->at) {
        if (field == elements->inner) {
            span->inner = begin;
            if (scan_inner(s, elements, inner_suffix, all, NULL) < 0)
                return -1;
            continue;
        }
        s->copying = field == copied;
        /* The copied field must not be null. */
        int failed = field == copied && !field->array ? scan_value(s, field, 0, MAX_DEPTH) : scan_field(s, field, MAX_DEPTH);
        s->copying = 0;
        if (failed < 0)
            return -1;
        if (field == copied) {
            span->begin = begin;
            span->size = (uint32_t)(s->at - begin);
        }
        if (field == checked && (s->at - begin != wanted->len || memcmp(s->data + begin, wanted->buf, (size_t)wanted->len)))
            return -1;
    }
    return scan_tags(s, plan, MAX_DEPTH);
}

/* Drop the spans whose bytes occurred before; return how many are left, -1 without memory. */
static Py_ssize_t drop_repeated(const uint8_t *data, Span *spans, Py_ssize_t count)
{
    size_t room = 16;
    while (room < 2 * (size_t)count)
        room *= 2;
    uint32_t *table = PyMem_RawCalloc(room, sizeof(uint32_t)); /* the number of a span that is left, and 1 */
    if (!table)
        return -1;
    Py_ssize_t left = 0;
    uint64_t seed = (uint64_t)(uintptr_t)table * 0x9E3779B97F4A7C15u; /* nobody can choose names that collide */
    for (Py_ssize_t i = 0; i < count; i++) {
        uint64_t hash = seed;
        for (uint32_t j = 0; j < spans[i].size; j++)
            hash = (hash ^ data[spans[i].begin + j]) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
        size_t at = hash & (room - 1);
        int repeated = 0;
        for (; table[at]; at = (at + 1) & (room - 1)) {
            const Span *other = spans + table[at] - 1;
            repeated = other->size == spans[i].size
                       && memcmp(data + other->begin, data + spans[i].begin, spans[i].size) == 0;
            if (repeated)
                break;
        }
        if (repeated)
            continue;
        spans[left++] = spans[i];
        table[at] = (uint32_t)left;
    }
    PyMem_RawFree(table);
    return left;
}

static const Field *field_named(const Plan *plan, PyObject *attribute)
{
    for (const Field *field = plan->fields; field < plan->fields + plan->n_body; field++)
        if (PyUnicode_Compare(field->attribute, attribute) == 0)
            return field;
    return NULL;
}

/* What becomes of elements that have the same bytes in the copied field: see engine.Repeated. */
enum { KEPT, DECODED, DROPPED };
enum { MAX_ARRAYS = 4 };

/* Find the fields by name; return the number of arrays, or -1 if there are no such. */
static int find_elements(const Plan *plan, PyObject *names, PyObject *copied, PyObject *checked, PyObject *inner,
                         PyObject *inner_copied, Elements *found)
{
    Py_ssize_t count = PyTuple_GET_SIZE(names);
    if (!plan || count > MAX_ARRAYS)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        Elements *one = found + i;
        *one = (Elements){PyUnicode_Check(name) ? field_named(plan, name) : NULL, NULL, NULL, NULL, NULL};
        if (!one->array || !one->array->array)
            return -1;
        int has_inner = PyUnicode_GET_LENGTH(inner) > 0;
        if (one->array->kind != STRUCT) {
            if (has_inner)
                return -1;
            continue;
        }
        one->copied = field_named(one->array->nested, copied);
        one->checked = field_named(one->array->nested, checked);
        if (!one->copied && PyUnicode_GET_LENGTH(copied) > 0)
            return -1;
        if (!has_inner)
            continue;
        one->inner = field_named(one->array->nested, inner);
        if (!one->inner || !one->inner->array || one->inner == one->copied || one->inner == one->checked)
            return -1;
        if (one->inner->kind == STRUCT && !(one->inner_copied = field_named(one->inner->nested, inner_copied)))
            return -1;
    }
    return (int)count;
}

/* Move past an array, and add the spans of its elements. */
static int scan_elements(Scan *s, const Elements *elements, const Py_buffer *wanted, const Py_buffer *inner_suffix,
                         Inner *all, Span **spans, Py_ssize_t *count)
{
    Py_ssize_t more;
    if (scan_count(s, elements->array, &more) < 0 || more < 0)
        return -1;
    if (more == 0)
        return 0;
    Span *grown = PyMem_RawRealloc(*spans, (size_t)(*count + more) * sizeof(Span));
    if (!grown)
        return -1;
    *spans = grown;
    for (Span *span = grown + *count, *end = span + more; span < end; span++)
        if (scan_element(s, elements, wanted, inner_suffix, all, span) < 0)
            return -1;
    *count += more;
    return 0;
}

/* (cls, version, view, offset, elements, copied, checked, value, repeated, prefix, suffix, inner, inner_copied,
   inner_suffix, max_elements) -> (the number of rows, the rows, the number of rows within them) or None: see
   CEngine.rows_of_unread. */
static PyObject *rows_of_unread(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *cls, *names, *copied_name, *checked_name, *inner_name, *inner_copied_name, *found = NULL;
    long version;
    int repeated;
    Py_ssize_t offset, most;
    Py_buffer view, value, prefix, suffix, inner_suffix;
    if (!PyArg_ParseTuple(args, "Oly*nO!UUy*iy*y*UUy*n", &cls, &version, &view, &offset, &PyTuple_Type, &names,
                          &copied_name, &checked_name, &value, &repeated, &prefix, &suffix, &inner_name,
                          &inner_copied_name, &inner_suffix, &most))
        return NULL;
    Codec *codec = (Codec *)Py_XNewRef(codec_of(cls));
    Plan *plan = codec ? plan_of(codec, version) : NULL;
    Elements arrays[MAX_ARRAYS];
    int n_arrays = find_elements(plan, names, copied_name, checked_name, inner_name, inner_copied_name, arrays);
    int usable = n_arrays >= 0 && (n_arrays < 2 || !arrays[0].inner) && 0 <= offset && offset <= view.len && view.len <= INT32_MAX;
    const Elements *last = n_arrays > 0 ? arrays + n_arrays - 1 : NULL; /* rows within rows are of one array */
    Span *spans = NULL;
    Inner all = {0, 0};
    Py_ssize_t count = 0, size = 0;
    int failed = 0;
    if (usable) {
        PyThreadState *state = PyEval_SaveThread();
        Scan s = {view.buf, offset, view.len, most, 0};
        for (const Field *field = plan->fields; !failed && field < plan->fields + plan->n_body; field++) {
            const Elements *one = arrays, *end = arrays + n_arrays;
            while (one < end && one->array != field)
                one++;
            failed = one < end ? scan_elements(&s, one, &value, &inner_suffix, &all, &spans, &count)
                               : scan_field(&s, field, MAX_DEPTH);
        }
        failed = failed || scan_tags(&s, plan, MAX_DEPTH) < 0 || (n_arrays > 0 && count == 0);
        if (!failed && repeated != KEPT) {
            Py_ssize_t left = drop_repeated(view.buf, spans, count);
            failed = left < 0 || (left != count && (repeated == DECODED || all.size));
            count = left;
        }
        for (Py_ssize_t i = 0; !failed && i < count; i++)
            size += spans[i].size + prefix.len + suffix.len;
        size += all.size;
        failed = failed || size > INT32_MAX;
        PyEval_RestoreThread(state);
    }
    if (usable && !failed) {
        PyObject *rows = PyBytes_FromStringAndSize(NULL, size);
        if (rows) {
            uint8_t *to = (uint8_t *)PyBytes_AS_STRING(rows);
            const uint8_t *from = view.buf;
            PyThreadState *state = PyEval_SaveThread();
            for (Py_ssize_t i = 0; i < count; i++) {
                memcpy(to, prefix.buf, (size_t)prefix.len);
                memcpy(to += prefix.len, from + spans[i].begin, spans[i].size);
                to += spans[i].size;
                if (last && last->inner) {
                    Scan s = {from, spans[i].inner, view.len, most, 0};
                    Inner again = {0, 0};
                    (void)scan_inner(&s, last, &inner_suffix, &again, &to); /* the scan was good before */
                }
                memcpy(to, suffix.buf, (size_t)suffix.len);
                to += suffix.len;
            }
            PyEval_RestoreThread(state);
            found = Py_BuildValue("(nNn)", count, rows, all.count);
        }
    } else if (!PyErr_Occurred()) {
        found = Py_NewRef(Py_None);
    }
    PyMem_RawFree(spans);
    PyBuffer_Release(&view);
    PyBuffer_Release(&value);
    PyBuffer_Release(&prefix);
    PyBuffer_Release(&suffix);
    PyBuffer_Release(&inner_suffix);
    Py_XDECREF(codec);
    return found;
}

/* ------------------------------------------------------------------------------------------------
   Writing */

enum { FIRST_ROOM = 1024, SHARED_ARRAYS = 8 };

typedef struct {
    uint8_t *data;
    Py_ssize_t size, room;
    PyObject *heap;  /* the bytes object that holds data, once data has outgrown `first` */
    PyObject *parts; /* the list of parts before data; NULL if all must be one part */
    int in_tag;      /* the depth of tagged fields: their bytes may still move, so they stay in data */
    /* The ranges of bytes of written arrays of structs: those of a list that occurs again are copied.
       Answers share lists (the configs of a thousand topics); no code changes a list during a write. */
    struct {
        PyObject *list;
        const Field *field;
        Py_ssize_t begin, end;
    } shared[SHARED_ARRAYS];
    uint8_t first[FIRST_ROOM];
} Writer;

static void start_writing(Writer *w, PyObject *parts)
{
    w->data = w->first;
    w->size = 0;
    w->room = FIRST_ROOM;
    w->heap = NULL;
    w->parts = parts;
    w->in_tag = 0;
    memset(w->shared, 0, sizeof w->shared);
}

static int grow(Writer *w, Py_ssize_t count)
{
    if (count > PY_SSIZE_T_MAX / 4 - w->size) {
        PyErr_NoMemory();
        return -1;
    }
    Py_ssize_t room = 2 * w->size + count;
    if (w->heap) {
        if (_PyBytes_Resize(&w->heap, room) < 0)
            return -1; /* heap is NULL now and data dangles: all callers return without reading it */
    } else {
        if (!(w->heap = PyBytes_FromStringAndSize(NULL, room)))
            return -1;
        memcpy(PyBytes_AS_STRING(w->heap), w->data, (size_t)w->size);
    }
    w->data = (uint8_t *)PyBytes_AS_STRING(w->heap);
    w->room = room;
    return 0;
}

/* Return the place of the next bytes, and count them as written. */
static inline uint8_t *put(Writer *w, Py_ssize_t count)
{
    if (UNLIKELY(count > w->room - w->size) && grow(w, count) < 0)
        return NULL;
    uint8_t *p = w->data + w->size;
    w->size += count;
    return p;
}

static inline int put_bytes(Writer *w, const void *bytes, Py_ssize_t count)
{
    uint8_t *p = put(w, count);
    if (!p)
        return -1;
    memcpy(p, bytes, (size_t)count);
    return 0;
}

/* Return the written bytes, and empty the writer. */
static PyObject *take_bytes(Writer *w)
{
    PyObject *bytes = w->heap;
    if (!bytes)
        bytes = PyBytes_FromStringAndSize((const char *)w->data, w->size);
    else if (w->size != PyBytes_GET_SIZE(bytes))
        _PyBytes_Resize(&bytes, w->size);
    start_writing(w, w->parts);
    return bytes;
}

static int put_uvarint(Writer *w, uint32_t n)
{
    uint8_t bytes[5];
    int count = 0;
    for (; n > 127; n >>= 7)
        bytes[count++] = (uint8_t)(n | 128);
    bytes[count++] = (uint8_t)n;
    return put_bytes(w, bytes, count);
}

/* Write a length or a count, -1 for null.  Return -1 without an exception if it is too large. */
static inline int put_length(Writer *w, int compact, int head, Py_ssize_t length)
{
    if (compact) {
        if (length > 0x7FFFFFFE)
            return -1;
        return put_uvarint(w, (uint32_t)(length + 1));
    }
    if (length > (head == 2 ? INT16_MAX : INT32_MAX))
        return -1;
    uint8_t *p = put(w, head);
    if (!p)
        return -1;
    if (head == 2)
        store16(p, (uint16_t)length);
    else
        store32(p, (uint32_t)length);
    return 0;
}

/* Each function from here on returns -1 without an exception for a value that cannot be written.
   explain.py then finds the value and the reason.  It may be slow: this process made the message. */

static int put_number(Writer *w, enum kind kind, PyObject *value)
{
    int64_t n = PyLong_AsLongLong(value);
    if (n == -1 && PyErr_Occurred())
        return -1;
    int fits = kind == INT8     ? n == (int8_t)n
               : kind == INT16  ? n == (int16_t)n
               : kind == UINT16 ? n == (uint16_t)n
               : kind == INT32  ? n == (int32_t)n
               : kind == UINT32 ? n == (uint32_t)n
                                : 1;
    uint8_t *p = fits ? put(w, KINDS[kind].width) : NULL;
    if (!p)
        return -1;
    switch (KINDS[kind].width) {
    case 1:
        *p = (uint8_t)n;
        return 0;
    case 2:
        store16(p, (uint16_t)n);
        return 0;
    case 4:
        store32(p, (uint32_t)n);
        return 0;
    default:
        store64(p, (uint64_t)n);
        return 0;
    }
}

static inline int put_fixed(Writer *w, enum kind kind, PyObject *value)
{
    if (kind == UUID) {
        if (LIKELY(PyBytes_Check(value)))
            return PyBytes_GET_SIZE(value) == 16 ? put_bytes(w, PyBytes_AS_STRING(value), 16) : -1;
        if (!PyByteArray_Check(value) || PyByteArray_GET_SIZE(value) != 16)
            return -1;
        return put_bytes(w, PyByteArray_AS_STRING(value), 16);
    }
    if (kind == BOOL) {
        int truth = PyObject_IsTrue(value);
        uint8_t *p = truth < 0 ? NULL : put(w, 1);
        if (!p)
            return -1;
        *p = (uint8_t)truth;
        return 0;
    }
    if (kind == FLOAT64) {
        double number = PyFloat_AsDouble(value);
        if (number == -1 && PyErr_Occurred())
            return -1;
        uint64_t bits;
        memcpy(&bits, &number, 8);
        uint8_t *p = put(w, 8);
        if (!p)
            return -1;
        store64(p, bits);
        return 0;
    }
    return put_number(w, kind, value);
}

/* Append the written bytes to the parts, and then a value as a part of its own. */
static int put_part(Writer *w, PyObject *value)
{
    if (w->size) {
        PyObject *bytes = take_bytes(w);
        int failed = bytes ? PyList_Append(w->parts, bytes) : -1;
        Py_XDECREF(bytes);
        if (failed)
            return -1;
    }
    return PyList_Append(w->parts, value);
}

/* Write a string, bytes or records that are not null. */
static inline int put_variable(Writer *w, const Field *field, PyObject *value)
{
    if (field->kind == STRING) {
        Py_ssize_t size;
        const char *text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, &size) : NULL;
        if (!text || size > MAX_STRING_BYTES || put_length(w, field->compact, 2, size) < 0)
            return -1;
        return put_bytes(w, text, size);
    }
    Py_buffer buffer;
    if (PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE) < 0)
        return -1;
    int failed = put_length(w, field->compact, 4, buffer.len);
    if (!failed) {
        if (field->kind == RECORDS && w->parts && buffer.len >= OWN_PART_BYTES && !w->in_tag)
            failed = put_part(w, value);
        else
            failed = put_bytes(w, buffer.buf, buffer.len);
    }
    PyBuffer_Release(&buffer);
    return failed;
}

static int put_struct(Writer *w, const Plan *plan, PyObject *value);

/* Write the elements of a list or tuple; -1 also if its length changes meanwhile. */
static int put_elements(Writer *w, const Field *field, PyObject *items, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if (UNLIKELY(i >= PySequence_Fast_GET_SIZE(items)))
            return -1;
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(items, i));
        int failed = field->kind <= UUID     ? put_fixed(w, field->kind, item)
                     : field->kind == STRUCT ? put_struct(w, field->nested, item)
                                             : put_variable(w, field, item);
        Py_DECREF(item);
        if (failed)
            return -1;
    }
    return PySequence_Fast_GET_SIZE(items) == count ? 0 : -1;
}

static int put_array(Writer *w, const Field *field, PyObject *value)
{
    int sequence = PyList_Check(value) || PyTuple_Check(value);
    if (UNLIKELY(!sequence) && PyObject_Size(value) < 0)
        return -1;
    int may_share = field->kind == STRUCT && PyList_CheckExact(value) && PyList_GET_SIZE(value) && !w->in_tag;
    unsigned entry = (unsigned)((uintptr_t)value >> 5) % SHARED_ARRAYS;
    if (may_share && w->shared[entry].list == value && w->shared[entry].field == field) {
        Py_ssize_t begin = w->shared[entry].begin, size = w->shared[entry].end - begin;
        uint8_t *p = put(w, size);
        if (p)
            memcpy(p, w->data + begin, (size_t)size);
        return p ? 0 : -1;
    }
    Py_ssize_t begin = w->size;
    PyObject *items = sequence ? Py_NewRef(value) : PySequence_Fast(value, "an array is wanted");
    if (!items)
        return -1;
    Py_ssize_t n_parts = w->parts ? PyList_GET_SIZE(w->parts) : 0, count = PySequence_Fast_GET_SIZE(items);
    int failed = put_length(w, field->compact, 4, count);
    if (!failed)
        failed = put_elements(w, field, items, count);
    Py_DECREF(items);
    if (!failed && may_share && (!w->parts || PyList_GET_SIZE(w->parts) == n_parts)) {
        w->shared[entry].list = value;
        w->shared[entry].field = field;
        w->shared[entry].begin = begin;
        w->shared[entry].end = w->size;
    }
    return failed;
}

static inline int put_field(Writer *w, const Field *field, PyObject *value)
{
    if (!field->array && field->kind <= UUID)
        return put_fixed(w, field->kind, value);
    if (value == Py_None) {
        if (!field->nullable)
            return -1;
        if (field->kind == STRUCT && !field->array)
            return put_bytes(w, field->tagged ? "" : "\377", 1);
        return put_length(w, field->compact, field->kind == STRING && !field->array ? 2 : 4, -1);
    }
    if (field->array)
        return put_array(w, field, value);
    if (field->kind != STRUCT)
        return put_variable(w, field, value);
    if (field->nullable && put_bytes(w, "\1", 1) < 0)
        return -1;
    return put_struct(w, field->nested, value);
}

/* A new reference to the value of a field; AttributeError if it is not set. */
static inline PyObject *value_of(PyObject *holder, const Field *field)
{
    PyObject *value = SLOT(holder, field->slot);
    if (UNLIKELY(!value)) {
        PyErr_SetObject(PyExc_AttributeError, field->attribute);
        return NULL;
    }
    return Py_NewRef(value);
}

/* Return whether a field differs from its default; -1 with an exception. */
static inline int differs(PyObject *holder, const Field *field)
{
    PyObject *value = value_of(holder, field);
    if (!value)
        return -1;
    int different = value != field->standard;
    if (different && field->standard != Py_None)
        different = PyObject_RichCompareBool(value, field->standard, Py_NE);
    Py_DECREF(value);
    return different;
}

/* Write a tagged field: its tag, the size of its value, its value.  The size is known only afterwards.
   One byte is kept for it; if it needs more, the value moves. */
static int put_tag(Writer *w, const Field *field, PyObject *holder)
{
    PyObject *value = value_of(holder, field);
    if (!value)
        return -1;
    int failed = put_uvarint(w, field->tag);
    Py_ssize_t head = w->size;
    if (!failed && !put(w, 1))
        failed = -1;
    w->in_tag++;
    if (!failed)
        failed = put_field(w, field, value);
    w->in_tag--;
    Py_DECREF(value);
    if (failed)
        return -1;
    Py_ssize_t size = w->size - head - 1;
    if (LIKELY(size < 128)) {
        w->data[head] = (uint8_t)size;
        return 0;
    }
    if (size > INT32_MAX)
        return -1;
    int more = size < 1 << 14 ? 1 : size < 1 << 21 ? 2 : size < 1 << 28 ? 3 : 4;
    if (!put(w, more))
        return -1;
    memmove(w->data + head + 1 + more, w->data + head + 1, (size_t)size);
    w->size = head;
    if (put_uvarint(w, (uint32_t)size) < 0)
        return -1;
    w->size += size;
    return 0;
}

typedef struct {
    uint32_t tag;
    PyObject *body; /* owned */
} Unknown;

static int put_unknown(Writer *w, const Unknown *field)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(field->body, &buffer, PyBUF_SIMPLE) < 0)
        return -1;
    int failed = buffer.len > INT32_MAX || put_uvarint(w, field->tag) < 0 || put_uvarint(w, (uint32_t)buffer.len) < 0
                 || put_bytes(w, buffer.buf, buffer.len) < 0;
    PyBuffer_Release(&buffer);
    return failed ? -1 : 0;
}

static int compare_unknown(const void *a, const void *b)
{
    uint32_t first = ((const Unknown *)a)->tag, second = ((const Unknown *)b)->tag;
    return (first > second) - (first < second);
}

/* Sort unknown tagged fields by tag; -1 if one is invalid, repeated or a known tag.  The caller frees
   *list and releases its *count bodies. */
static int sort_unknown(const Plan *plan, PyObject *items, Unknown **list, Py_ssize_t *count)
{
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
    if (!(*list = PyMem_Calloc((size_t)n + 1, sizeof(Unknown)))) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *pair = PySequence_Fast_GET_ITEM(items, i);
        if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2 || !PyLong_Check(PyTuple_GET_ITEM(pair, 0)))
            return -1;
        long long tag = PyLong_AsLongLong(PyTuple_GET_ITEM(pair, 0));
        if (tag < 0 || tag >= INT32_MAX)
            return -1;
        for (int known = 0; known < plan->n_tagged; known++)
            if (plan->fields[plan->n_body + known].tag == tag)
                return -1;
        (*list)[(*count)++] = (Unknown){(uint32_t)tag, Py_NewRef(PyTuple_GET_ITEM(pair, 1))};
    }
    qsort(*list, (size_t)n, sizeof(Unknown), compare_unknown);
    for (Py_ssize_t i = 1; i < n; i++)
        if ((*list)[i - 1].tag == (*list)[i].tag)
            return -1;
    return 0;
}

/* Write a struct's tag section, by tag: unknown fields, and tagged fields that differ from their default. */
static int put_tags(Writer *w, const Plan *plan, PyObject *holder)
{
    const Field *tagged = plan->fields + plan->n_body;
    uint64_t chosen = 0;
    Py_ssize_t n_known = 0, n_unknown = 0, next = 0;
    for (int i = 0; i < plan->n_tagged; i++) {
        int different = differs(holder, tagged + i);
        if (different < 0)
            return -1;
        chosen |= (uint64_t)different << i;
        n_known += different;
    }
    Unknown *unknown = NULL;
    int failed = 0;
    PyObject *given = Py_XNewRef(SLOT(holder, plan->unknown_slot));
    if (given != empty_tuple && given && PyObject_IsTrue(given)) {
        PyObject *items = PySequence_Fast(given, "unknown_tags are pairs of tag and bytes");
        failed = items ? sort_unknown(plan, items, &unknown, &n_unknown) : -1;
        Py_XDECREF(items);
    }
    Py_XDECREF(given);
    if (!failed)
        failed = put_uvarint(w, (uint32_t)(n_known + n_unknown));
    for (int i = 0; !failed && i < plan->n_tagged; i++) {
        if (!(chosen >> i & 1))
            continue;
        for (; !failed && next < n_unknown && unknown[next].tag < tagged[i].tag; next++)
            failed = put_unknown(w, unknown + next);
        if (!failed)
            failed = put_tag(w, tagged + i, holder);
    }
    for (; !failed && next < n_unknown; next++)
        failed = put_unknown(w, unknown + next);
    for (Py_ssize_t i = 0; i < n_unknown; i++)
        Py_DECREF(unknown[i].body);
    PyMem_Free(unknown);
    return failed;
}

static int put_struct(Writer *w, const Plan *plan, PyObject *holder)
{
    if (UNLIKELY(!Py_IS_TYPE(holder, plan->cls)))
        return -1;
    const Field *field = plan->fields, *end = field + plan->n_body;
    for (; field < end; field++) {
        PyObject *value = value_of(holder, field);
        if (!value)
            return -1;
        int failed = put_field(w, field, value);
        Py_DECREF(value);
        if (failed)
            return -1;
    }
    for (field += plan->n_tagged, end = plan->fields + plan->n_fields; field < end; field++)
        if (field->guarded && differs(holder, field) != 0)
            return -1;
    if (plan->flexible)
        return put_tags(w, plan, holder);
    if (!plan->unknown_slot || SLOT(holder, plan->unknown_slot) == empty_tuple)
        return 0;
    int unknown = SLOT(holder, plan->unknown_slot) ? PyObject_IsTrue(SLOT(holder, plan->unknown_slot)) : 0;
    return unknown ? -1 : 0;
}

/* Raise the error of a message that could not be written: EncodeError if explain_encode finds a fault.
   An exception that no message causes, such as MemoryError or KeyboardInterrupt, stays as it is. */
static void raise_unwritable(PyObject *message, long version)
{
    PyObject *type, *cause, *traceback;
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_TypeError)
        && !PyErr_ExceptionMatches(PyExc_AttributeError) && !PyErr_ExceptionMatches(PyExc_OverflowError))
        return;
    PyErr_Fetch(&type, &cause, &traceback);
    PyErr_NormalizeException(&type, &cause, &traceback);
    if (!cause)
        cause = PyObject_CallNoArgs(malformed);
    PyObject *table = cause ? PyObject_CallOneArg(table_of, (PyObject *)Py_TYPE(message)) : NULL;
    PyObject *error = table ? PyObject_CallFunction(explain_encode, "OOlO", table, message, version, cause) : NULL;
    if (error && PyExceptionInstance_Check(error))
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(table);
    Py_XDECREF(error);
    Py_XDECREF(type);
    Py_XDECREF(cause);
    Py_XDECREF(traceback);
}

/* Write a message after the bytes already written; -1 with an exception. */
static int put_message(Writer *w, Codec *codec, PyObject *message, long version)
{
    Py_INCREF(codec);
    Plan *plan = plan_of(codec, version);
    int failed = plan ? put_struct(w, plan, message) : -1;
    Py_DECREF(codec);
    if (failed && plan)
        raise_unwritable(message, version);
    return failed;
}

static int message_args(PyObject *const *args, Py_ssize_t n_args, Codec **codec, long *version)
{
    if (n_args != 2) {
        PyErr_SetString(PyExc_TypeError, "(message, version) are wanted");
        return -1;
    }
    *version = PyLong_AsLong(args[1]);
    if (*version == -1 && PyErr_Occurred())
        return -1;
    return (*codec = codec_of((PyObject *)Py_TYPE(args[0]))) ? 0 : -1;
}

static PyObject *encode_bytes(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n_args)
{
    Codec *codec;
    long version;
    if (message_args(args, n_args, &codec, &version) < 0)
        return NULL;
    Writer w;
    start_writing(&w, NULL);
    PyObject *bytes = put_message(&w, codec, args[0], version) < 0 ? NULL : take_bytes(&w);
    Py_XDECREF(w.heap);
    return bytes;
}

/* The parts of a message behind room for a head of some bytes, which is at the start of the first part. */
static PyObject *parts_of(Codec *codec, PyObject *message, long version, Py_ssize_t head_bytes)
{
    PyObject *parts = PyList_New(0);
    if (!parts)
        return NULL;
    Writer w;
    start_writing(&w, parts);
    put(&w, head_bytes); /* there is room for it at first */
    int failed = put_message(&w, codec, message, version);
    if (!failed && (w.size || PyList_GET_SIZE(parts) == 0)) {
        PyObject *bytes = take_bytes(&w);
        failed = bytes ? PyList_Append(parts, bytes) : -1;
        Py_XDECREF(bytes);
    }
    Py_XDECREF(w.heap);
    if (failed)
        Py_CLEAR(parts);
    return parts;
}

static PyObject *encode(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n_args)
{
    Codec *codec;
    long version;
    return message_args(args, n_args, &codec, &version) < 0 ? NULL : parts_of(codec, args[0], version, 0);
}

/* encode_framed(message, version, correlation_id, header_version) -> its parts, with size and header before them. */
static PyObject *encode_framed(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n_args)
{
    Codec *codec;
    long version;
    if (n_args != 4) {
        PyErr_SetString(PyExc_TypeError, "(message, version, correlation id, header version) are wanted");
        return NULL;
    }
    long correlation_id = PyLong_AsLong(args[2]), header_version = PyLong_AsLong(args[3]);
    if (PyErr_Occurred() || message_args(args, 2, &codec, &version) < 0)
        return NULL;
    Py_ssize_t size = 0, head_bytes = header_version ? 9 : 8;
    PyObject *parts = parts_of(codec, args[0], version, head_bytes);
    if (!parts)
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(parts); i++) {
        Py_ssize_t length = PyObject_Size(PyList_GET_ITEM(parts, i));
        if (length < 0) {
            Py_DECREF(parts);
            return NULL;
        }
        size += length;
    }
    uint8_t *head = (uint8_t *)PyBytes_AS_STRING(PyList_GET_ITEM(parts, 0)); /* nobody else has it yet */
    store32(head, (uint32_t)(size - 4));
    store32(head + 4, (uint32_t)correlation_id);
    if (header_version)
        head[8] = 0; /* no tagged fields */
    return parts;
}

/* ------------------------------------------------------------------------------------------------
   Record batches of a metadata log, format v2

   Readers return None for a batch of any unusual form.  batch.py and record_frame.py then read it again,
   slowly, and report its fault if it has one. */

enum { HEADER_BYTES = 61, LENGTH_END = 12, CRC_AT = 17, CRC_END = 21, DELTA_AT = 23, COUNT_AT = 57 };
enum { MAGIC = 2, FRAME_VERSION = 1, LEAST_RECORD_BYTES = 7, N_RECORD_KEYS = 128 };

/* Fill in the bytes of a record between its length and its value: attributes and timestamp delta 0, the
   offset delta, no key.  Return their number. */
static int record_start(uint8_t bytes[8], uint32_t delta)
{
    int count = 2;
    bytes[0] = bytes[1] = 0;
    uint64_t n = (uint64_t)delta << 1;
    for (; n > 127; n >>= 7)
        bytes[count++] = (uint8_t)(n | 128);
    bytes[count++] = (uint8_t)n;
    bytes[count++] = 1;
    return count;
}

/* Step over a record of a metadata batch; *begin and *end are the bounds of its value.  Return -1 for
   a record of another form, for the slow reader. */
static int next_value(Reader *r, uint32_t delta, Py_ssize_t *begin, Py_ssize_t *end)
{
    uint32_t length, value_length;
    uint8_t start[8];
    int n = record_start(start, delta);
    if (read_uvarint(r, &length) < 0 || length & 1)
        return -1;
    Py_ssize_t record_end = r->at + (length >> 1);
    const uint8_t *p = record_end <= r->size ? take(r, n) : NULL;
    if (!p || memcmp(p, start, (size_t)n) != 0)
        return -1;
    if (read_uvarint(r, &value_length) < 0 || value_length & 1 || value_length == 0)
        return -1;
    *begin = r->at;
    *end = r->at + (value_length >> 1);
    if (*end + 1 != record_end || r->data[*end] != 0) /* no headers */
        return -1;
    r->at = record_end;
    return 0;
}

/* The codec of a metadata record's type, borrowed; NULL if the type is unknown, or with an exception. */
static Codec *codec_of_record(uint8_t key)
{
    static PyObject *known[N_RECORD_KEYS];
    if (key >= N_RECORD_KEYS)
        return NULL;
    if (!known[key]) {
        PyObject *api = PyImport_ImportModule("kraftd.wire.api");
        PyObject *found = api ? PyObject_CallMethod(api, "metadata_record_class", "i", (int)key) : NULL;
        Py_XDECREF(api);
        if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyError))
            PyErr_Clear();
        if (found && !known[key]) /* another thread may have found it meanwhile */
            known[key] = Py_NewRef(found);
        Py_XDECREF(found);
    }
    return known[key] ? codec_of(known[key]) : NULL;
}

/* The message in a metadata record's value; NULL for the slow reader, perhaps with a fault or an exception. */
static PyObject *read_record(Reader *r, Py_ssize_t end)
{
    /* All numbers of the frame (its version, type, version of the type) are below 128: one byte each. */
    if (end - r->at < 3 || r->data[r->at] != FRAME_VERSION)
        return NULL;
    Codec *codec = codec_of_record(r->data[r->at + 1]);
    uint8_t version = r->data[r->at + 2];
    if (!codec || version < codec->first || version > codec->last)
        return NULL;
    Plan *plan = plan_of(codec, version);
    if (!plan)
        return NULL;
    Py_ssize_t size = r->size;
    r->at += 3;
    r->size = end;
    PyObject *message = read_struct(r, plan);
    if (message && r->at != end)
        Py_CLEAR(message);
    r->size = size;
    return message;
}

/* A list of records of a batch: their messages if `decoded`, else views of their values.
   The first is the record of index *number, at byte *at (0: right after the header); there are up to
   `most`.  Afterwards *number and *at are those of the next record.
   Returns None for the slow reader, NULL with an exception. */
static PyObject *read_batch(PyObject *view, int decoded, Py_ssize_t *at, Py_ssize_t *number, Py_ssize_t most)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(view, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    Reader r;
    start_reading(&r, view, &buffer, *at ? *at : HEADER_BYTES, 0);
    PyObject *list = NULL;
    if (r.size < HEADER_BYTES || r.at < HEADER_BYTES || r.at > r.size)
        goto done;
    uint32_t count = load32(r.data + COUNT_AT);
    if (*number < 0 || *number > count || most < 0 || count > (r.size - HEADER_BYTES) / LEAST_RECORD_BYTES || count != (uint64_t)load32(r.data + DELTA_AT) + 1
        || r.data[CRC_END + 1] & 7) /* compressed */
        goto done;
    most = count - *number < most ? count - *number : most;
    if (!(list = PyList_New(most)))
        goto done;
    for (Py_ssize_t i = 0; i < most; i++) {
        Py_ssize_t begin, end;
        PyObject *item = NULL;
        r.n_steps = 0;
        if (next_value(&r, (uint32_t)(*number + i), &begin, &end) == 0) {
            Py_ssize_t behind = r.at;
            r.at = begin;
            item = decoded ? read_record(&r, end) : records_view(&r, begin, end);
            r.at = behind;
        }
        if (!item) {
            Py_CLEAR(list);
            goto done;
        }
        PyList_SET_ITEM(list, i, item);
    }
    *at = r.at;
    *number += most;
    if (*number == count && r.at != r.size)
        Py_CLEAR(list);
done:
    Py_XDECREF(r.reason);
    Py_XDECREF(r.view);
    PyBuffer_Release(&buffer);
    if (!list && !PyErr_Occurred())
        Py_RETURN_NONE;
    return list;
}

static PyObject *batch_values(PyObject *Py_UNUSED(module), PyObject *view)
{
    Py_ssize_t at = 0, number = 0;
    return read_batch(view, 0, &at, &number, PY_SSIZE_T_MAX);
}

/* (view, byte or 0, index of a record, maximum count) -> (messages, byte of the next record) or None. */
static PyObject *batch_messages(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *view;
    Py_ssize_t at, number, most;
    if (!PyArg_ParseTuple(args, "Onnn", &view, &at, &number, &most))
        return NULL;
    PyObject *list = read_batch(view, 1, &at, &number, most);
    return list && list != Py_None ? Py_BuildValue("(Nn)", list, at) : list;
}

/* What is known of a type of records: it may hold secrets, it holds none, or that depends on a config's key. */
enum { SECRETIVE, HARMLESS, CONFIG, LONGEST_KEY = 255, N_SEEN = 16, MOST_SUSPECTS = 10000 };

typedef struct {
    const uint8_t *kinds;       /* what is known of the type at each record's key */
    PyObject *harmless_configs; /* a frozenset of bytes: the type of a resource in one byte, then the key */
    struct {                    /* harmless configs that were found; a log has the same few keys again and again */
        const uint8_t *name;
        uint32_t size;
        uint8_t type;
    } seen[N_SEEN];
} Search;

/* A reader of some bytes; its steps, which are many bytes, are left as they are. */
static inline void begin_reading(Reader *r, const uint8_t *data, Py_ssize_t at, Py_ssize_t size)
{
    r->data = data;
    r->at = at;
    r->size = size;
    r->source = r->view = r->reason = NULL;
    r->n_steps = 0;
}

/* Return 1 if the value of a record may hold a secret, 0 if not, -1 with an exception. */
static int is_suspect(Reader *r, Py_ssize_t begin, Py_ssize_t end, Search *search)
{
    const uint8_t *p = r->data + begin;
    if (end - begin < 3 || p[0] != FRAME_VERSION)
        return 1;
    uint8_t kind = search->kinds[p[1]];
    if (kind != CONFIG || p[2] != 0)
        return kind != HARMLESS;
    /* A config: the resource's type, the length of its name + 1, the name, and likewise the key. */
    Reader fields;
    begin_reading(&fields, r->data, begin + 3, end);
    const uint8_t *type = take(&fields, 1), *name = NULL;
    uint32_t length = 0;
    if (type && read_uvarint(&fields, &length) == 0 && length && take(&fields, (Py_ssize_t)length - 1)
        && read_uvarint(&fields, &length) == 0 && length && length <= LONGEST_KEY)
        name = take(&fields, (Py_ssize_t)length - 1);
    Py_XDECREF(fields.reason);
    if (!name)
        return PyErr_Occurred() ? -1 : 1;
    uint32_t size = length - 1;
    unsigned slot = size ? (size + name[0] + 7 * name[size - 1] + *type) % N_SEEN : 0;
    if (search->seen[slot].name && search->seen[slot].size == size && search->seen[slot].type == *type
        && memcmp(search->seen[slot].name, name, size) == 0)
        return 0;
    PyObject *key = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size + 1);
    if (!key)
        return -1;
    PyBytes_AS_STRING(key)[0] = (char)*type;
    memcpy(PyBytes_AS_STRING(key) + 1, name, size);
    int found = PySet_Contains(search->harmless_configs, key);
    Py_DECREF(key);
    if (found > 0) {
        search->seen[slot].name = name;
        search->seen[slot].size = size;
        search->seen[slot].type = *type;
    }
    return found < 0 ? -1 : !found;
}

/* Add the place of a record to a list, which is made for the first one: six numbers, where it starts, its body, its
   value's length, its value; the end of the value and of the record.  Return -1 with an exception. */
static int add_place(PyObject **list, const Py_ssize_t place[6])
{
    if (!*list && !(*list = PyList_New(0)))
        return -1;
    for (int k = 0; k < 6; k++) {
        PyObject *number = PyLong_FromSsize_t(place[k]);
        int failed = !number || PyList_Append(*list, number) < 0;
        Py_XDECREF(number);
        if (failed)
            return -1;
    }
    return 0;
}

/* List the records of a batch that may hold a secret; *list stays NULL if there are none.  Return 1 for a batch of an
   unusual form, and for one that has very many: the caller then looks at them one by one.  -1 with an exception. */
static int list_suspects(Reader *r, Search *search, PyObject **list)
{
    const uint8_t *header = r->data + r->at;
    uint32_t count = load32(header + COUNT_AT);
    if (count > (r->size - r->at - HEADER_BYTES) / LEAST_RECORD_BYTES
        || count != (uint64_t)load32(header + DELTA_AT) + 1 || header[CRC_END + 1] & 7) /* compressed */
        return 1;
    Py_ssize_t start = r->at;
    r->at += HEADER_BYTES;
    for (uint32_t i = 0; i < count; i++) {
        Py_ssize_t at = r->at, begin, end;
        if (next_value(r, i, &begin, &end) < 0)
            return PyErr_Occurred() ? -1 : 1;
        int suspect = is_suspect(r, begin, end, search);
        if (suspect < 0)
            return -1;
        if (!suspect)
            continue;
        if (*list && PyList_GET_SIZE(*list) == 6 * MOST_SUSPECTS)
            return 1;
        Reader length;
        uint32_t body_bytes = 0;
        uint8_t bytes[8];
        begin_reading(&length, r->data, at, r->size);
        read_uvarint(&length, &body_bytes);
        Py_ssize_t body = length.at - start;
        Py_ssize_t place[6] = {at - start,    body,        body + record_start(bytes, i),
                               begin - start, end - start, r->at - start};
        if (add_place(list, place) < 0)
            return -1;
    }
    return r->at != r->size;
}

/* (whole batches, what is known of each type, harmless configs) -> [(position of a batch, places in it of the
   records that may hold a secret, or None for a batch of an unusual form)], without batches that have none. */
static PyObject *suspect_records(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer data, kinds;
    PyObject *harmless_configs;
    if (!PyArg_ParseTuple(args, "y*y*O!", &data, &kinds, &PyFrozenSet_Type, &harmless_configs))
        return NULL;
    PyObject *found = NULL;
    Search search = {.kinds = kinds.buf, .harmless_configs = harmless_configs};
    if (kinds.len != 256)
        PyErr_SetString(PyExc_ValueError, "256 types of records are wanted");
    else
        found = PyList_New(0);
    for (Py_ssize_t at = 0, end; found && at < data.len; at = end) {
        const uint8_t *p = (const uint8_t *)data.buf + at;
        PyObject *list = NULL;
        int outcome = 1;
        end = data.len;
        if (data.len - at >= HEADER_BYTES && p[16] == MAGIC
            && load32(p + 8) >= HEADER_BYTES - LENGTH_END && load32(p + 8) <= data.len - at - LENGTH_END) {
            end = at + LENGTH_END + (Py_ssize_t)load32(p + 8);
            if (p[CRC_END + 1] & 0x20) /* control records */
                continue;
            Reader r;
            begin_reading(&r, data.buf, at, end);
            outcome = list_suspects(&r, &search, &list);
            Py_XDECREF(r.reason);
        }
        if (outcome > 0)
            Py_XSETREF(list, Py_NewRef(Py_None));
        if (outcome >= 0 && list) {
            PyObject *item = Py_BuildValue("(nO)", at, list);
            if (!item || PyList_Append(found, item) < 0)
                outcome = -1;
            Py_XDECREF(item);
        }
        if (outcome < 0)
            Py_CLEAR(found);
        Py_XDECREF(list);
    }
    PyBuffer_Release(&data);
    PyBuffer_Release(&kinds);
    return found;
}

/* (message, version) of a metadata record -> the value of a log record. */
static PyObject *record_value(PyObject *record)
{
    if (!PyTuple_Check(record) || PyTuple_GET_SIZE(record) != 2) {
        PyErr_SetString(PyExc_TypeError, "a pair of message and version is wanted");
        return NULL;
    }
    Codec *codec;
    long version;
    if (message_args(&PyTuple_GET_ITEM(record, 0), 2, &codec, &version) < 0)
        return NULL;
    if (codec->key < 0) {
        PyErr_Format(PyExc_TypeError, "%s is not a metadata record", codec->cls->tp_name);
        return NULL;
    }
    Writer w;
    start_writing(&w, NULL);
    int failed = put_uvarint(&w, FRAME_VERSION) < 0 || put_uvarint(&w, (uint32_t)codec->key) < 0
                 || put_uvarint(&w, (uint32_t)version) < 0
                 || put_message(&w, codec, PyTuple_GET_ITEM(record, 0), version) < 0;
    PyObject *bytes = failed ? NULL : take_bytes(&w);
    Py_XDECREF(w.heap);
    return bytes;
}

static PyObject *encode_record(PyObject *Py_UNUSED(module), PyObject *record) { return record_value(record); }

static PyObject *encode_records(PyObject *Py_UNUSED(module), PyObject *records)
{
    PyObject *items = PySequence_Fast(records, "a sequence of records is wanted");
    PyObject *values = items ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; values && i < PySequence_Fast_GET_SIZE(items); i++) {
        PyObject *record = Py_NewRef(PySequence_Fast_GET_ITEM(items, i));
        PyObject *value = record_value(record);
        Py_DECREF(record);
        if (!value || PyList_Append(values, value) < 0)
            Py_CLEAR(values);
        Py_XDECREF(value);
    }
    Py_XDECREF(items);
    return values;
}

/* Write one record of a metadata batch. */
static int put_record(Writer *w, uint32_t delta, PyObject *value)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE) < 0)
        return -1;
    uint8_t start[8];
    int n = record_start(start, delta), failed = -1;
    if (buffer.len > INT32_MAX / 4)
        PyErr_SetString(PyExc_ValueError, "a record of a batch is too large");
    else {
        uint32_t size = (uint32_t)buffer.len;
        int size_bytes = size < 1 << 6 ? 1 : size < 1 << 13 ? 2 : size < 1 << 20 ? 3 : size < 1 << 27 ? 4 : 5;
        failed = put_uvarint(w, 2 * ((uint32_t)n + (uint32_t)size_bytes + size + 1)) < 0
                 || put_bytes(w, start, n) < 0 || put_uvarint(w, 2 * size) < 0
                 || put_bytes(w, buffer.buf, buffer.len) < 0 || put_bytes(w, "", 1) < 0; /* "": no headers */
    }
    PyBuffer_Release(&buffer);
    return failed ? -1 : 0;
}

/* (values, base offset, leader epoch, timestamp in ms, crc32c) -> the batch of these values. */
static PyObject *build_batch(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *values, *crc32c, *batch = NULL;
    long long base_offset, timestamp_ms;
    int leader_epoch;
    if (!PyArg_ParseTuple(args, "OLiLO", &values, &base_offset, &leader_epoch, &timestamp_ms, &crc32c))
        return NULL;
    PyObject *items = PySequence_Fast(values, "a sequence of values is wanted");
    if (!items)
        return NULL;
    Writer w;
    start_writing(&w, NULL);
    int failed = put(&w, HEADER_BYTES) ? 0 : -1;
    Py_ssize_t count = 0;
    for (; !failed && count < PySequence_Fast_GET_SIZE(items); count++) {
        PyObject *value = Py_NewRef(PySequence_Fast_GET_ITEM(items, count));
        failed = put_record(&w, (uint32_t)count, value);
        Py_DECREF(value);
    }
    Py_DECREF(items);
    if (!failed && (count == 0 || w.size > INT32_MAX)) {
        PyErr_SetString(PyExc_ValueError, count ? "a batch is too large" : "a batch holds at least one record");
        failed = -1;
    }
    if (!failed) {
        uint8_t *p = w.data;
        memset(p, 0xFF, HEADER_BYTES); /* producer id, producer epoch and base sequence are -1 */
        store64(p, (uint64_t)base_offset);
        store32(p + 8, (uint32_t)(w.size - LENGTH_END));
        store32(p + LENGTH_END, (uint32_t)leader_epoch);
        p[16] = MAGIC;
        store16(p + CRC_END, 0); /* attributes */
        store32(p + DELTA_AT, (uint32_t)(count - 1));
        store64(p + 27, (uint64_t)timestamp_ms);
        store64(p + 35, (uint64_t)timestamp_ms);
        store32(p + COUNT_AT, (uint32_t)count);
        batch = take_bytes(&w);
    }
    Py_XDECREF(w.heap);
    if (!batch)
        return NULL;
    /* No other code has a reference to the bytes yet, so they may still change. */
    uint8_t *p = (uint8_t *)PyBytes_AS_STRING(batch);
    PyObject *covered = PyMemoryView_FromMemory((char *)p + CRC_END, PyBytes_GET_SIZE(batch) - CRC_END, PyBUF_READ);
    PyObject *sum = covered ? PyObject_CallOneArg(crc32c, covered) : NULL;
    unsigned long crc = sum ? PyLong_AsUnsignedLong(sum) : 0;
    Py_XDECREF(covered);
    Py_XDECREF(sum);
    if (PyErr_Occurred())
        Py_CLEAR(batch);
    else
        store32(p + CRC_AT, (uint32_t)crc);
    return batch;
}

/* ------------------------------------------------------------------------------------------------
   The module */

static PyMethodDef methods[] = {
    {"decode", (PyCFunction)(void (*)(void))decode, METH_FASTCALL, "The message that fills a buffer from an offset on."},
    {"decode_prefix", (PyCFunction)(void (*)(void))decode_prefix, METH_FASTCALL,
     "The message that begins at an offset, and the offset after it."},
    {"rows_of_unread", rows_of_unread, METH_VARARGS, "Rows of an answer from elements that are not decoded, or None."},
    {"encode", (PyCFunction)(void (*)(void))encode, METH_FASTCALL, "The bytes of a message as parts."},
    {"encode_framed", (PyCFunction)(void (*)(void))encode_framed, METH_FASTCALL, "A response as parts of a frame."},
    {"encode_bytes", (PyCFunction)(void (*)(void))encode_bytes, METH_FASTCALL, "The bytes of a message."},
    {"encode_record", encode_record, METH_O, "A metadata record and its version as the value of a log record."},
    {"encode_records", encode_records, METH_O, "The same for each of several records, as a list."},
    {"batch_values", batch_values, METH_O, "Views of the values of a metadata batch, or None."},
    {"batch_messages", batch_messages, METH_VARARGS, "Some messages of a metadata batch and the byte after them, or None."},
    {"suspect_records", suspect_records, METH_VARARGS, "The records of whole batches that may hold a secret."},
    {"build_batch", build_batch, METH_VARARGS, "The batch of some values."},
    {"clear_memo", clear_memo, METH_NOARGS, "Forget the values kept for sharing."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "kraftd.wire._engine", .m_doc = "The codec engine in C.", .m_size = -1,
    .m_methods = methods,
};

/* An attribute of a module; NULL with an exception if either is missing. */
static PyObject *imported(const char *module_name, const char *attribute)
{
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *found = module ? PyObject_GetAttrString(module, attribute) : NULL;
    Py_XDECREF(module);
    return found;
}

PyMODINIT_FUNC PyInit__engine(void)
{
    PyObject *module = PyType_Ready(&CodecType) < 0 ? NULL : PyModule_Create(&definition);
    PyTypeObject *base = module ? (PyTypeObject *)imported("kraftd.wire.message", "Message") : NULL;
    if (base && (PyType_IS_GC(base) || base->tp_basicsize != sizeof(PyObject)))
        PyErr_SetString(PyExc_ImportError, "this msgspec lays out its Structs in another way");
    Py_XDECREF(base);
    if (!PyErr_Occurred() && (codecs = PyDict_New()) && (empty_tuple = PyTuple_New(0))
        && (protocol_error = imported("kraftd.wire.errors", "ProtocolError"))
        && (unsupported_version_error = imported("kraftd.wire.errors", "UnsupportedVersionError"))
        && (malformed = imported("kraftd.wire.primitives", "Malformed"))
        && (explain_encode = imported("kraftd.wire.explain", "explain_encode"))
        && (table_of = imported("kraftd.wire.table", "table_of"))
        && PyModule_AddObjectRef(module, "CODECS", codecs) == 0
        && PyModule_AddObjectRef(module, "Codec", (PyObject *)&CodecType) == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
