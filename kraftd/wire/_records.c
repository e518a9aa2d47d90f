/* Record batches of data partitions, format v2, in C: judged and patched, searched, decoded and written again.

   It does what python_records.py does; tests/wire compares both. What a judgement means, with Kafka's error codes
   and texts, is said by kraftd/partition/validation.py.

   Every length and count is compared with the bytes that are there before it is used. A large batch is read with
   the GIL released: the buffer is held meanwhile, and nothing of Python is touched. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

enum { HEADER_BYTES = 61, LENGTH_END = 12, MAGIC_AT = 16, CRC_AT = 17, ATTRIBUTES_AT = 21, DELTA_AT = 23 };
enum { BASE_TIMESTAMP_AT = 27, MAX_TIMESTAMP_AT = 35, PRODUCER_ID_AT = 43, PRODUCER_EPOCH_AT = 51 };
enum { SEQUENCE_AT = 53, COUNT_AT = 57, EPOCH_AT = 12, LEAST_LENGTH = 14, MAGIC = 2, LEAST_RECORD_BYTES = 7 };
enum { CODEC = 7, APPEND_TIME = 8, TRANSACTIONAL = 16, CONTROL = 32, KNOWN_ATTRIBUTES = 0x7F, LAST_CODEC = 4, ZSTD = 4 };
enum { NO_TIMESTAMP = -1, WITHOUT_GIL_BYTES = 32 << 10, MOST_ERRORS = 10000 };

/* The options of a judgement and its outcomes, as kraftd/wire/records.py names them. */
enum { CLIENT = 1, COMPACTED = 2, SET_APPEND_TIME = 4, NO_ZSTD = 8, LENIENT = 16, KEEP = 32 };
enum outcome {
    VALID, NO_BATCH, BAD_LENGTH, BAD_MAGIC, OLD_MAGIC, ZSTD_TOO_EARLY, MORE_BATCHES, BASE_OFFSET, TOO_LARGE, TOO_SHORT,
    BAD_CRC, UNKNOWN_CODEC, NEEDS_BODY, OFFSET_RANGE, RECORD_COUNT, COUNT_DIFFERS, CONTROL_BATCH, SEQUENCE, RECORDS,
    STRUCTURE, OFFSETS_DIFFER
};
enum { NO_KEY = 1, OUT_OF_RANGE, APPEND_TIME_SET };

static inline uint16_t load16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }

static inline uint32_t load32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t load64(const uint8_t *p) { return (uint64_t)load32(p) << 32 | load32(p + 4); }

static inline void store32(uint8_t *p, uint32_t n)
{
    p[0] = (uint8_t)(n >> 24);
    p[1] = (uint8_t)(n >> 16);
    p[2] = (uint8_t)(n >> 8);
    p[3] = (uint8_t)n;
}

static inline void store64(uint8_t *p, uint64_t n)
{
    store32(p, (uint32_t)(n >> 32));
    store32(p + 4, (uint32_t)n);
}

/* ------------------------------------------------------------------------------------------------
   CRC32C */

static uint32_t crc_tables[8][256];

/* Bytes that each of three streams takes: a processor computes three checksums at once. */
enum { LONG_STREAM = 4096, SHORT_STREAM = 256 };
static uint32_t long_zeros[4][256], short_zeros[4][256];

/* The checksum register after `length` zero bytes more, as a table for each byte of the register. */
static void make_zeros(uint32_t zeros[4][256], int length)
{
    uint32_t columns[32];
    for (int bit = 0; bit < 32; bit++) {
        uint32_t crc = 1u << bit;
        for (int i = 0; i < length; i++)
            crc = crc >> 8 ^ crc_tables[0][crc & 255];
        columns[bit] = crc;
    }
    for (int byte = 0; byte < 4; byte++)
        for (int n = 0; n < 256; n++) {
            uint32_t crc = 0;
            for (int bit = 0; bit < 8; bit++)
                if (n >> bit & 1)
                    crc ^= columns[8 * byte + bit];
            zeros[byte][n] = crc;
        }
}

static void make_tables(void)
{
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t crc = n;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
        crc_tables[0][n] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int n = 0; n < 256; n++)
            crc_tables[k][n] = crc_tables[k - 1][n] >> 8 ^ crc_tables[0][crc_tables[k - 1][n] & 255];
    make_zeros(long_zeros, LONG_STREAM);
    make_zeros(short_zeros, SHORT_STREAM);
}

static inline uint64_t little64(const uint8_t *p)
{
    uint64_t n;
    memcpy(&n, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    n = __builtin_bswap64(n);
#endif
    return n;
}

static uint32_t crc_by_tables(uint32_t crc, const uint8_t *p, size_t size)
{
    for (; size >= 8; p += 8, size -= 8) {
        uint64_t n = little64(p) ^ crc;
        crc = crc_tables[7][n & 255] ^ crc_tables[6][n >> 8 & 255] ^ crc_tables[5][n >> 16 & 255]
              ^ crc_tables[4][n >> 24 & 255] ^ crc_tables[3][n >> 32 & 255] ^ crc_tables[2][n >> 40 & 255]
              ^ crc_tables[1][n >> 48 & 255] ^ crc_tables[0][n >> 56];
    }
    for (; size; p++, size--)
        crc = crc >> 8 ^ crc_tables[0][(crc ^ *p) & 255];
    return crc;
}

#if defined(__x86_64__)
#define HARDWARE __attribute__((target("sse4.2")))
#define CRC64(crc, n) _mm_crc32_u64(crc, n)
#define CRC8(crc, n) _mm_crc32_u8((uint32_t)(crc), n)
#elif defined(__ARM_FEATURE_CRC32)
#define HARDWARE
#define CRC64(crc, n) __crc32cd((uint32_t)(crc), n)
#define CRC8(crc, n) __crc32cb((uint32_t)(crc), n)
#endif

#ifdef HARDWARE
static inline uint32_t shifted(const uint32_t zeros[4][256], uint32_t crc)
{
    return zeros[0][crc & 255] ^ zeros[1][crc >> 8 & 255] ^ zeros[2][crc >> 16 & 255] ^ zeros[3][crc >> 24];
}

/* Three streams of `length` bytes each, side by side. */
HARDWARE static inline uint64_t three_streams(uint64_t crc, const uint8_t *p, size_t length, const uint32_t zeros[4][256])
{
    uint64_t second = 0, third = 0;
    for (const uint8_t *end = p + length; p < end; p += 8) {
        crc = CRC64(crc, little64(p));
        second = CRC64(second, little64(p + length));
        third = CRC64(third, little64(p + 2 * length));
    }
    second ^= shifted(zeros, (uint32_t)crc);
    return third ^ shifted(zeros, (uint32_t)second);
}

HARDWARE static uint32_t crc_by_hardware(uint32_t start, const uint8_t *p, size_t size)
{
    uint64_t crc = start;
    for (; size >= 3 * LONG_STREAM; p += 3 * LONG_STREAM, size -= 3 * LONG_STREAM)
        crc = three_streams(crc, p, LONG_STREAM, long_zeros);
    for (; size >= 3 * SHORT_STREAM; p += 3 * SHORT_STREAM, size -= 3 * SHORT_STREAM)
        crc = three_streams(crc, p, SHORT_STREAM, short_zeros);
    for (; size >= 8; p += 8, size -= 8)
        crc = CRC64(crc, little64(p));
    for (; size; p++, size--)
        crc = CRC8(crc, *p);
    return (uint32_t)crc;
}
#endif

static uint32_t (*crc_of)(uint32_t, const uint8_t *, size_t) = crc_by_tables;

static inline uint32_t crc32c(const uint8_t *p, size_t size) { return ~crc_of(0xFFFFFFFFu, p, size); }

static void choose_crc(void)
{
    make_tables();
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        crc_of = crc_by_hardware;
#elif defined(HARDWARE)
    crc_of = crc_by_hardware;
#endif
}

/* ------------------------------------------------------------------------------------------------
   Records */

typedef struct {
    const uint8_t *p, *end;
} Cursor;

/* A zig-zag varint of at most five bytes, or ten; 0, or -1 if it does not end in time. */
static inline int read_varint(Cursor *c, int32_t *value)
{
    uint32_t n = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        if (c->p >= c->end)
            return -1;
        uint32_t byte = *c->p++;
        n |= (byte & 127) << shift;
        if (byte < 128) {
            *value = (int32_t)(n >> 1 ^ -(n & 1));
            return 0;
        }
    }
    return -1;
}

static inline int read_varlong(Cursor *c, int64_t *value)
{
    uint64_t n = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (c->p >= c->end)
            return -1;
        uint64_t byte = *c->p++;
        n |= (byte & 127) << shift;
        if (byte < 128) {
            *value = (int64_t)(n >> 1 ^ -(n & 1));
            return 0;
        }
    }
    return -1;
}

typedef struct {
    int32_t size, offset_delta, key_bytes, value_bytes, headers;
    int64_t timestamp_delta;
    const uint8_t *key, *value, *header; /* where the bytes of each begin */
} Record;

/* A length and that many bytes; a negative length is null. */
static inline int read_field(Cursor *c, int32_t *size, const uint8_t **bytes)
{
    if (read_varint(c, size) < 0 || *size > c->end - c->p)
        return -1;
    *bytes = c->p;
    if (*size > 0)
        c->p += *size;
    return 0;
}

/* Read a record. If `lenient`, its length is not compared with what it has: Kafka's reader of compressed batches
   that stay as they are does not, either. */
static inline int read_record(Cursor *c, Record *r, int lenient)
{
    if (read_varint(c, &r->size) < 0)
        return -1;
    Cursor body = {c->p, c->end};
    if (!lenient) {
        if (r->size < 0 || r->size > c->end - c->p)
            return -1;
        body.end = c->p + r->size;
    }
    if (body.p >= body.end)
        return -1;
    body.p++; /* attributes */
    if (read_varlong(&body, &r->timestamp_delta) < 0 || read_varint(&body, &r->offset_delta) < 0
        || read_field(&body, &r->key_bytes, &r->key) < 0 || read_field(&body, &r->value_bytes, &r->value) < 0
        || read_varint(&body, &r->headers) < 0 || r->headers < 0 || r->headers > body.end - body.p)
        return -1;
    r->header = body.p;
    for (int32_t i = 0; i < r->headers; i++) {
        int32_t size;
        const uint8_t *bytes;
        if (read_field(&body, &size, &bytes) < 0 || size < 0 || read_field(&body, &size, &bytes) < 0)
            return -1;
    }
    if (!lenient && body.p != body.end)
        return -1;
    c->p = body.p;
    return 0;
}

static inline int64_t plus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t minus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }

/* ------------------------------------------------------------------------------------------------
   A judgement */

typedef struct {
    int32_t index;
    int32_t kind; /* 0: of the last of too many */
    int64_t offset, timestamp;
    int32_t key_bytes, value_bytes;
} Fault;

typedef struct {
    /* asked */
    int64_t now, before, after, base_offset;
    int32_t leader_epoch, most_bytes, target;
    int options;
    /* found */
    int64_t first, second; /* what the outcome's text says */
    int64_t max_timestamp;
    Fault *faults;
    int64_t n_faults;
} Judgement;

/* Look at the next batch of some bytes: its size, 0 if none is there, -1 if it is damaged. */
static int64_t next_size(const uint8_t *p, int64_t left, Judgement *j, enum outcome *outcome)
{
    if (left < LENGTH_END)
        return 0;
    int32_t length = (int32_t)load32(p + 8);
    if (length < LEAST_LENGTH) {
        j->first = length;
        *outcome = BAD_LENGTH;
        return -1;
    }
    if (left <= MAGIC_AT)
        return 0;
    if (p[MAGIC_AT] > MAGIC) {
        j->first = (int8_t)p[MAGIC_AT];
        *outcome = BAD_MAGIC;
        return -1;
    }
    return (int64_t)length + LENGTH_END <= left ? (int64_t)length + LENGTH_END : 0;
}

/* Judge the only batch of some bytes up to its records. */
static enum outcome judge_batch(const uint8_t *p, int64_t size, Judgement *j)
{
    enum outcome outcome = VALID;
    int64_t own = next_size(p, size, j, &outcome);
    if (own <= 0)
        return own ? outcome : NO_BATCH;
    if (p[MAGIC_AT] != MAGIC)
        return j->first = p[MAGIC_AT], OLD_MAGIC;
    int codec = p[ATTRIBUTES_AT + 1] & CODEC;
    if (codec > LAST_CODEC && j->options & NO_ZSTD)
        return j->first = codec, UNKNOWN_CODEC;
    if (codec == ZSTD && j->options & NO_ZSTD)
        return ZSTD_TOO_EARLY;
    int64_t next = next_size(p + own, size - own, j, &outcome);
    if (next)
        return next > 0 ? MORE_BATCHES : outcome;
    int64_t base = (int64_t)load64(p);
    if (j->options & CLIENT && base != 0)
        return j->first = base, BASE_OFFSET;
    if (own > j->most_bytes)
        return j->first = own, TOO_LARGE;
    if (own < HEADER_BYTES)
        return j->first = own, TOO_SHORT;
    uint32_t stored = load32(p + CRC_AT), computed = crc32c(p + ATTRIBUTES_AT, (size_t)(own - ATTRIBUTES_AT));
    if (stored != computed)
        return j->first = stored, j->second = computed, BAD_CRC;
    if (codec > LAST_CODEC)
        return j->first = codec, UNKNOWN_CODEC;
    if (j->options & CLIENT) {
        int32_t delta = (int32_t)load32(p + DELTA_AT), count = (int32_t)load32(p + COUNT_AT);
        if (delta < 0)
            return j->first = delta, OFFSET_RANGE;
        if (count <= 0)
            return j->first = count, RECORD_COUNT;
        if ((int64_t)delta + 1 != count)
            return j->first = delta, j->second = count, COUNT_DIFFERS;
        if (p[ATTRIBUTES_AT + 1] & CONTROL)
            return CONTROL_BATCH;
        int64_t producer_id = (int64_t)load64(p + PRODUCER_ID_AT);
        int32_t sequence = (int32_t)load32(p + SEQUENCE_AT);
        if (producer_id > -1 && sequence < 0)
            return j->first = sequence, j->second = producer_id, SEQUENCE;
    }
    return VALID;
}

/* Note what is wrong with a record; the first many are kept, and all are counted. */
static int add_fault(Judgement *j, Fault fault)
{
    int64_t n = j->n_faults++;
    if (n >= MOST_ERRORS)
        return 0;
    if ((n & (n - 1)) == 0) { /* room for twice as many */
        Fault *more = realloc(j->faults, (size_t)(n ? 2 * n : 1) * sizeof(Fault));
        if (!more)
            return -1;
        j->faults = more;
    }
    j->faults[n] = fault;
    return 0;
}

/* Judge the records of a batch. Return -1 without memory. */
static int judge_records(const uint8_t *header, Cursor body, Judgement *j, enum outcome *outcome)
{
    int append_time = header[ATTRIBUTES_AT + 1] & APPEND_TIME, sets = j->options & SET_APPEND_TIME;
    int lenient = j->options & LENIENT, compressed = header[ATTRIBUTES_AT + 1] & CODEC;
    int checks_offsets = compressed || j->target > 0, differ = 0;
    int64_t base = (int64_t)load64(header), base_timestamp = (int64_t)load64(header + BASE_TIMESTAMP_AT);
    int64_t appended = (int64_t)load64(header + MAX_TIMESTAMP_AT), most = NO_TIMESTAMP;
    int32_t count = (int32_t)load32(header + COUNT_AT);
    j->first = 0;
    *outcome = STRUCTURE;
    if (count < 0)
        return 0;
    for (int32_t i = 0; i < count; i++) {
        Record r;
        j->first = i;
        if (read_record(&body, &r, lenient) < 0)
            return 0;
        int64_t offset = plus(base, r.offset_delta);
        int64_t timestamp = append_time ? appended : plus(base_timestamp, r.timestamp_delta);
        int kind = 0;
        if (j->options & COMPACTED && r.key_bytes < 0)
            kind = NO_KEY;
        else if (!sets && timestamp != NO_TIMESTAMP) {
            int64_t difference = minus(j->now, timestamp);
            if (difference > j->before || minus(0, difference) > j->after)
                kind = OUT_OF_RANGE;
        } else if (append_time)
            kind = APPEND_TIME_SET;
        if (kind) {
            if (add_fault(j, (Fault){i, kind, offset, timestamp, r.key_bytes, r.value_bytes}) < 0)
                return -1;
            continue;
        }
        if (timestamp > most)
            most = timestamp;
        differ |= offset != i;
    }
    if (count && body.p != body.end)
        return 0;
    j->max_timestamp = most;
    *outcome = j->n_faults ? RECORDS : checks_offsets && differ && !(j->options & KEEP) ? OFFSETS_DIFFER : VALID;
    return 0;
}

/* Give a batch its offsets, leader epoch and timestamps, and a new checksum if a timestamp changed. */
static void patch(uint8_t *p, int64_t size, const Judgement *j)
{
    int64_t last = j->base_offset + (int32_t)load32(p + COUNT_AT) - 1;
    store64(p, (uint64_t)minus(last, (int32_t)load32(p + DELTA_AT)));
    store32(p + EPOCH_AT, (uint32_t)j->leader_epoch);
    int sets = j->options & SET_APPEND_TIME;
    int64_t most = sets ? j->now : j->max_timestamp;
    if (!(p[ATTRIBUTES_AT + 1] & APPEND_TIME) == !sets && (int64_t)load64(p + MAX_TIMESTAMP_AT) == most)
        return;
    p[ATTRIBUTES_AT] = 0;
    p[ATTRIBUTES_AT + 1] = (uint8_t)((p[ATTRIBUTES_AT + 1] & KNOWN_ATTRIBUTES & ~APPEND_TIME) | (sets ? APPEND_TIME : 0));
    store64(p + MAX_TIMESTAMP_AT, (uint64_t)most);
    store32(p + CRC_AT, crc32c(p + ATTRIBUTES_AT, (size_t)(size - ATTRIBUTES_AT)));
}

/* A tuple of a class, with some numbers. */
static PyObject *numbers(PyTypeObject *cls, int count, const int64_t *values)
{
    PyObject *tuple = cls->tp_alloc(cls, count);
    for (int i = 0; tuple && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(values[i]);
        if (!number)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, number);
    }
    return tuple;
}

static PyTypeObject *header_class; /* BatchHeader of batch.py */

/* The BatchHeader of a batch. */
static PyObject *header_of(const uint8_t *p)
{
    int64_t values[] = {
        (int64_t)load64(p),
        (int32_t)load32(p + 8),
        (int32_t)load32(p + EPOCH_AT),
        (int8_t)p[MAGIC_AT],
        load32(p + CRC_AT),
        (int16_t)load16(p + ATTRIBUTES_AT),
        (int32_t)load32(p + DELTA_AT),
        (int64_t)load64(p + BASE_TIMESTAMP_AT),
        (int64_t)load64(p + MAX_TIMESTAMP_AT),
        (int64_t)load64(p + PRODUCER_ID_AT),
        (int16_t)load16(p + PRODUCER_EPOCH_AT),
        (int32_t)load32(p + SEQUENCE_AT),
        (int32_t)load32(p + COUNT_AT),
    };
    return numbers(header_class, sizeof values / sizeof *values, values);
}

static PyObject *fault_list(const Judgement *j)
{
    int64_t kept = j->n_faults < MOST_ERRORS ? j->n_faults : MOST_ERRORS;
    PyObject *list = PyList_New((Py_ssize_t)kept);
    for (int64_t i = 0; list && i < kept; i++) {
        const Fault *f = j->faults + i;
        int64_t values[] = {f->index, f->kind, f->offset, f->timestamp, f->key_bytes, f->value_bytes};
        PyObject *item = numbers(&PyTuple_Type, 6, values);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    return list;
}

/* An integer argument within bounds. */
static int64_t whole(PyObject *object, int64_t low, int64_t high, int *failed)
{
    long long value = PyLong_AsLongLong(object);
    if (value == -1 && PyErr_Occurred())
        *failed = 1;
    else if (value < low || value > high) {
        PyErr_SetString(PyExc_OverflowError, "an argument is out of its range");
        *failed = 1;
    }
    return value;
}

/* judge(data, body, now_ms, base_offset, leader_epoch, most_bytes, before_ms, after_ms, target codec, options)
   -> (outcome, facts of the outcome). */
static PyObject *judge(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n_args)
{
    if (n_args != 10) {
        PyErr_SetString(PyExc_TypeError, "judge takes 10 arguments");
        return NULL;
    }
    int failed = 0;
    Judgement j = {
        .now = whole(args[2], INT64_MIN, INT64_MAX, &failed),
        .base_offset = whole(args[3], 0, INT64_MAX - INT32_MAX, &failed),
        .leader_epoch = (int32_t)whole(args[4], INT32_MIN, INT32_MAX, &failed),
        .most_bytes = (int32_t)whole(args[5], 0, INT32_MAX, &failed),
        .before = whole(args[6], INT64_MIN, INT64_MAX, &failed),
        .after = whole(args[7], INT64_MIN, INT64_MAX, &failed),
        .target = (int32_t)whole(args[8], -1, LAST_CODEC, &failed),
        .options = (int)whole(args[9], 0, 63, &failed),
        .max_timestamp = NO_TIMESTAMP,
    };
    Py_buffer data, inner = {.buf = NULL};
    if (failed || PyObject_GetBuffer(args[0], &data, j.options & KEEP ? PyBUF_SIMPLE : PyBUF_WRITABLE) < 0)
        return NULL;
    if (args[1] != Py_None && PyObject_GetBuffer(args[1], &inner, PyBUF_SIMPLE) < 0) {
        PyBuffer_Release(&data);
        return NULL;
    }
    uint8_t *p = data.buf;
    int64_t size = 0;
    int no_memory = 0;
    enum outcome outcome = VALID;
    PyThreadState *state = data.len + inner.len >= WITHOUT_GIL_BYTES ? PyEval_SaveThread() : NULL;
    if (inner.buf) { /* judged before, up to its records */
        size = data.len >= HEADER_BYTES ? (int64_t)(int32_t)load32(p + 8) + LENGTH_END : 0;
        if (size < HEADER_BYTES || size > data.len)
            outcome = TOO_SHORT;
    } else {
        outcome = judge_batch(p, data.len, &j);
        if (outcome == VALID) {
            int codec = p[ATTRIBUTES_AT + 1] & CODEC;
            size = (int64_t)(int32_t)load32(p + 8) + LENGTH_END;
            j.first = codec;
            if (codec || (j.target > 0 && !(p[ATTRIBUTES_AT + 1] & CONTROL)))
                outcome = NEEDS_BODY;
        }
    }
    if (outcome == VALID) {
        Cursor body = {p + HEADER_BYTES, p + size};
        if (inner.buf)
            body = (Cursor){inner.buf, (const uint8_t *)inner.buf + inner.len};
        no_memory = judge_records(p, body, &j, &outcome) < 0;
        if (!no_memory && outcome == VALID && !(j.options & KEEP))
            patch(p, size, &j);
    }
    if (state)
        PyEval_RestoreThread(state);
    PyObject *result = NULL;
    if (no_memory)
        PyErr_NoMemory();
    else if (outcome == VALID) {
        PyObject *header = header_of(p);
        result = header ? Py_BuildValue("(iN)", VALID, header) : NULL;
    } else if (outcome == RECORDS) {
        PyObject *list = fault_list(&j);
        result = list ? Py_BuildValue("(iNL)", RECORDS, list, (long long)j.n_faults) : NULL;
    } else
        result = Py_BuildValue("(iLL)", (int)outcome, (long long)j.first, (long long)j.second);
    free(j.faults);
    PyBuffer_Release(&data);
    if (inner.buf)
        PyBuffer_Release(&inner);
    return result;
}

/* ------------------------------------------------------------------------------------------------
   Batches that are in order: searched, decoded, written again */

static PyObject *structure_error;

static void set_error(const char *what, int64_t number)
{
    PyErr_Format(structure_error, "record %lld %s", (long long)number, what);
}

typedef struct {
    Py_buffer buffer;
    const uint8_t *header;
    Cursor body;
    int64_t base, base_timestamp, appended;
    int32_t count;
    int append_time;
} Batch;

/* The records of an uncompressed batch, or of one whose records are beside it. */
static int open_batch(Batch *b, PyObject *data)
{
    if (PyObject_GetBuffer(data, &b->buffer, PyBUF_SIMPLE) < 0)
        return -1;
    const uint8_t *p = b->header = b->buffer.buf;
    int64_t size = b->buffer.len >= HEADER_BYTES ? b->buffer.len : 0;
    b->count = size ? (int32_t)load32(p + COUNT_AT) : 0;
    if (!size || b->count < 0 || b->count > (size - HEADER_BYTES) / LEAST_RECORD_BYTES || p[ATTRIBUTES_AT + 1] & CODEC) {
        PyErr_SetString(structure_error, "not one uncompressed batch");
        PyBuffer_Release(&b->buffer);
        return -1;
    }
    b->body = (Cursor){p + HEADER_BYTES, p + size};
    b->base = (int64_t)load64(p);
    b->base_timestamp = (int64_t)load64(p + BASE_TIMESTAMP_AT);
    b->appended = (int64_t)load64(p + MAX_TIMESTAMP_AT);
    b->append_time = p[ATTRIBUTES_AT + 1] & APPEND_TIME;
    return 0;
}

static inline int64_t timestamp_of(const Batch *b, const Record *r)
{
    return b->append_time ? b->appended : plus(b->base_timestamp, r->timestamp_delta);
}

/* find_timestamp(batch, timestamp_ms, start_offset, exact) -> (offset, timestamp) of the first record of at least
   that timestamp, or of exactly that one, from an offset on; None if there is none. */
static PyObject *find_timestamp(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *data;
    long long target, start;
    int exact;
    Batch b;
    if (!PyArg_ParseTuple(args, "OLLp", &data, &target, &start, &exact) || open_batch(&b, data) < 0)
        return NULL;
    int32_t i = 0, found = 0;
    int broken = 0;
    int64_t offset = 0, timestamp = 0;
    PyThreadState *state = b.buffer.len >= WITHOUT_GIL_BYTES ? PyEval_SaveThread() : NULL;
    for (; i < b.count && !found; i++) {
        Record r;
        if ((broken = read_record(&b.body, &r, 1) < 0))
            break;
        offset = plus(b.base, r.offset_delta);
        timestamp = timestamp_of(&b, &r);
        found = offset >= start && (exact ? timestamp == target : timestamp >= target);
    }
    if (state)
        PyEval_RestoreThread(state);
    PyBuffer_Release(&b.buffer);
    if (broken) {
        set_error("is damaged", i);
        return NULL;
    }
    if (!found)
        Py_RETURN_NONE;
    return Py_BuildValue("(LL)", (long long)offset, (long long)timestamp);
}

static PyObject *bytes_or_none(const uint8_t *bytes, int32_t size)
{
    if (size < 0)
        Py_RETURN_NONE;
    return PyBytes_FromStringAndSize((const char *)bytes, size);
}

/* The headers of a record that has been read: a tuple of (key, value). */
static PyObject *header_pairs(const Record *r, const uint8_t *end)
{
    PyObject *pairs = PyTuple_New(r->headers);
    Cursor c = {r->header, end};
    for (int32_t i = 0; pairs && i < r->headers; i++) {
        int32_t key_bytes, value_bytes;
        const uint8_t *key, *value;
        if (read_field(&c, &key_bytes, &key) < 0 || read_field(&c, &value_bytes, &value) < 0) {
            set_error("is damaged", i); /* cannot be: they have been read before */
            Py_CLEAR(pairs);
            break;
        }
        PyObject *k = bytes_or_none(key, key_bytes), *v = k ? bytes_or_none(value, value_bytes) : NULL;
        PyObject *pair = v ? PyTuple_Pack(2, k, v) : NULL;
        Py_XDECREF(k);
        Py_XDECREF(v);
        if (!pair)
            Py_CLEAR(pairs);
        else
            PyTuple_SET_ITEM(pairs, i, pair);
    }
    return pairs;
}

/* decode_records(batch) -> [(offset, timestamp_ms, key, value, headers)], keys and values as bytes or None. */
static PyObject *decode_records(PyObject *Py_UNUSED(module), PyObject *data)
{
    Batch b;
    if (open_batch(&b, data) < 0)
        return NULL;
    PyObject *list = PyList_New(b.count);
    for (int32_t i = 0; list && i < b.count; i++) {
        Record r;
        PyObject *item = NULL;
        if (read_record(&b.body, &r, 0) < 0)
            set_error("is damaged", i);
        else {
            PyObject *headers = header_pairs(&r, b.body.p);
            PyObject *key = headers ? bytes_or_none(r.key, r.key_bytes) : NULL;
            PyObject *value = key ? bytes_or_none(r.value, r.value_bytes) : NULL;
            if (value)
                item = Py_BuildValue("(LLOOO)", (long long)plus(b.base, r.offset_delta),
                                     (long long)timestamp_of(&b, &r), key, value, headers);
            Py_XDECREF(headers);
            Py_XDECREF(key);
            Py_XDECREF(value);
        }
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, item);
    }
    if (list && b.body.p != b.body.end) {
        set_error("is followed by more bytes", b.count - 1);
        Py_CLEAR(list);
    }
    PyBuffer_Release(&b.buffer);
    return list;
}

/* Why the bytes at p are no whole batch, or NULL; its size otherwise. */
static const char *look_at_batch(const uint8_t *p, int64_t left, int verify, int64_t *size)
{
    *size = left >= LENGTH_END ? (int64_t)(int32_t)load32(p + 8) + LENGTH_END : 0;
    if (left > MAGIC_AT && p[MAGIC_AT] != MAGIC)
        return "format";
    if (left >= LENGTH_END && *size < HEADER_BYTES)
        return "length";
    if (left < HEADER_BYTES || *size > left)
        return "truncated";
    if ((int64_t)load64(p) < 0 || (int32_t)load32(p + DELTA_AT) < 0 || (int32_t)load32(p + COUNT_AT) < 0)
        return "offsets";
    if (!verify)
        return NULL;
    PyThreadState *state = *size >= WITHOUT_GIL_BYTES ? PyEval_SaveThread() : NULL;
    uint32_t computed = crc32c(p + ATTRIBUTES_AT, (size_t)(*size - ATTRIBUTES_AT));
    if (state)
        PyEval_RestoreThread(state);
    return computed == load32(p + CRC_AT) ? NULL : "checksum";
}

/* batch_headers(data, position, most, verify) -> ([header], position after them, reason or None): whole batches one
   after the other, up to `most`. It stops at the first that is not whole, or damaged, and says why. */
static PyObject *batch_headers(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer data;
    Py_ssize_t at, most;
    int verify;
    if (!PyArg_ParseTuple(args, "y*nnp", &data, &at, &most, &verify))
        return NULL;
    PyObject *list = PyList_New(0);
    const char *reason = NULL;
    if (at < 0 || at > data.len) {
        PyErr_SetString(PyExc_ValueError, "the position is outside of the data");
        Py_CLEAR(list);
    }
    while (list && at < data.len && PyList_GET_SIZE(list) < most) {
        const uint8_t *p = (const uint8_t *)data.buf + at;
        int64_t size;
        reason = look_at_batch(p, data.len - at, verify, &size);
        if (reason)
            break;
        PyObject *header = header_of(p);
        if (!header || PyList_Append(list, header) < 0)
            Py_CLEAR(list);
        Py_XDECREF(header);
        at += (Py_ssize_t)size;
    }
    PyBuffer_Release(&data);
    return list ? Py_BuildValue("(Nnz)", list, at, reason) : NULL;
}

/* The batches of one partition, if they follow each other in one epoch and are data without a transaction: the list of
   their headers. An empty list if they are anything else, or NULL with an exception. */
static PyObject *plain_headers(const uint8_t *p, const uint8_t *end)
{
    PyObject *list = PyList_New(0);
    int64_t next = (int64_t)load64(p), size;
    uint32_t epoch = load32(p + EPOCH_AT);
    for (; list && p < end; p += size) {
        if (look_at_batch(p, end - p, 1, &size) || (int64_t)load64(p) != next || load32(p + EPOCH_AT) != epoch
            || load16(p + ATTRIBUTES_AT) & (TRANSACTIONAL | CONTROL)
            || next > INT64_MAX - 1 - (int32_t)load32(p + DELTA_AT)) {
            if (PyList_SetSlice(list, 0, PyList_GET_SIZE(list), NULL) < 0)
                Py_CLEAR(list);
            return list;
        }
        next += (int64_t)(int32_t)load32(p + DELTA_AT) + 1;
        PyObject *header = header_of(p);
        if (!header || PyList_Append(list, header) < 0)
            Py_CLEAR(list);
        Py_XDECREF(header);
    }
    return list;
}

/* A length in the compact encoding, with one added; -1 if there is none. */
static int64_t read_length(Cursor *c)
{
    uint64_t n = 0;
    for (int shift = 0; shift < 35 && c->p < c->end; shift += 7) {
        uint64_t byte = *c->p++;
        n |= (byte & 127) << shift;
        if (byte < 128)
            return (int64_t)n;
    }
    return -1;
}

enum { PARTITION_BYTES = 4 + 2 + 3 * 8, UUID_BYTES = 16 };

/* The row of the next partition of an answer: a tuple. NULL without an exception if it is no plain one. */
static PyObject *plain_row(Cursor *c, PyObject *frame, const uint8_t *begin, PyObject *topic_id)
{
    const uint8_t *p = c->p;
    if (c->end - p < PARTITION_BYTES || load16(p + 4))
        return NULL;
    c->p += PARTITION_BYTES;
    int64_t aborted = read_length(c);
    if (aborted < 0 || aborted > 1 || c->end - c->p < 4)
        return NULL;
    c->p += 4; /* the preferred replica */
    int64_t size = read_length(c) - 1;
    if (size < -1 || size >= c->end - c->p || (size > 0 && size < HEADER_BYTES))
        return NULL;
    size = size < 0 ? 0 : size;
    const uint8_t *records = c->p;
    c->p += size;
    if (*c->p++) /* a tagged field */
        return NULL;
    PyObject *headers = Py_None, *view = Py_None;
    if (size) {
        headers = plain_headers(records, records + size);
        if (!headers || !PyList_GET_SIZE(headers)) {
            Py_XDECREF(headers);
            return NULL;
        }
        view = PySequence_GetSlice(frame, records - begin, records - begin + size);
        if (!view) {
            Py_DECREF(headers);
            return NULL;
        }
    } else {
        Py_INCREF(headers);
        Py_INCREF(view);
    }
    return Py_BuildValue("((Oi)LLNN)", topic_id, (int)(int32_t)load32(p), (long long)load64(p + 6),
                         (long long)load64(p + 22), view, headers);
}

static int plain_topic(Cursor *c, PyObject *frame, const uint8_t *begin, PyObject *rows)
{
    if (c->end - c->p < UUID_BYTES)
        return -1;
    PyObject *topic_id = PyBytes_FromStringAndSize((const char *)c->p, UUID_BYTES);
    if (!topic_id)
        return -1;
    c->p += UUID_BYTES;
    int64_t count = read_length(c);
    int result = count < 0 ? -1 : 0;
    while (!result && count-- > 1) {
        PyObject *row = plain_row(c, frame, begin, topic_id);
        result = row ? PyList_Append(rows, row) : -1;
        Py_XDECREF(row);
    }
    Py_DECREF(topic_id);
    return result < 0 || c->p >= c->end || *c->p++ ? -1 : 0;
}

/* plain_answer(frame, session_id) -> [((topic id, index), high watermark, log start, records, headers)] or None: an
   answer to a fetch, v13 or later, of that session, in which nothing is but plain records. */
static PyObject *plain_answer(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "plain_answer takes 2 arguments");
    long session_id = PyLong_AsLong(args[1]);
    Py_buffer data;
    if ((session_id == -1 && PyErr_Occurred()) || PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    const uint8_t *begin = data.buf;
    Cursor c = {begin, begin + data.len};
    PyObject *rows = NULL;
    /* correlation id, tagged fields, throttle time, error, session */
    if (data.len > 15 && !begin[4] && !load16(begin + 9) && (long)(int32_t)load32(begin + 11) == session_id
        && (rows = PyList_New(0))) {
        c.p += 15;
        int64_t topics = read_length(&c);
        int result = topics < 0 ? -1 : 0;
        while (!result && topics-- > 1)
            result = plain_topic(&c, args[0], begin, rows);
        if (result < 0 || c.end - c.p != 1 || *c.p)
            Py_CLEAR(rows);
    }
    PyBuffer_Release(&data);
    if (!rows && !PyErr_Occurred())
        Py_RETURN_NONE;
    return rows;
}

/* verify_batches(data, position, end_offset, leader_epoch) -> (position after them, reason or None): whole batches one
   after the other that begin below an offset, and have the epoch if it is not negative. */
static PyObject *verify_batches(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer data;
    Py_ssize_t at;
    long long end_offset;
    int epoch;
    if (!PyArg_ParseTuple(args, "y*nLi", &data, &at, &end_offset, &epoch))
        return NULL;
    if (at < 0 || at > data.len) {
        PyErr_SetString(PyExc_ValueError, "the position is outside of the data");
        PyBuffer_Release(&data);
        return NULL;
    }
    const char *reason = NULL;
    while (at < data.len) {
        const uint8_t *p = (const uint8_t *)data.buf + at;
        int64_t size;
        if (data.len - at >= 8 && (int64_t)load64(p) >= end_offset)
            break;
        reason = look_at_batch(p, data.len - at, 1, &size);
        if (!reason && epoch >= 0 && (int32_t)load32(p + EPOCH_AT) != epoch)
            reason = "leader epoch";
        if (reason)
            break;
        at += (Py_ssize_t)size;
    }
    PyBuffer_Release(&data);
    return Py_BuildValue("(nz)", at, reason);
}

/* select_batches(data, offset, max_bytes, end_offset, limit_offset) -> (start, stop, missing bytes, offset after
   them): see kraftd/log/data/reading.py. With a stop of -1 the header at `start` cannot follow the one before. */
static PyObject *select_batches(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer data;
    long long offset, max_bytes, end_offset, limit_offset;
    if (!PyArg_ParseTuple(args, "y*LLLL", &data, &offset, &max_bytes, &end_offset, &limit_offset))
        return NULL;
    long long at = 0, first = -1, stop = 0, room = max_bytes < data.len ? max_bytes : data.len, missing = HEADER_BYTES;
    int64_t previous = -1, next_offset = 0;
    while (at + HEADER_BYTES <= data.len) {
        const uint8_t *p = (const uint8_t *)data.buf + at;
        int64_t base = (int64_t)load64(p), last = plus(base, (int32_t)load32(p + DELTA_AT));
        int64_t length = (int32_t)load32(p + 8), after = at + LENGTH_END + length;
        if (length < HEADER_BYTES - LENGTH_END || base <= previous || last < base || last >= limit_offset) {
            if (first < 0) {
                first = at;
                stop = -1;
                missing = 0;
            }
            break;
        }
        previous = last;
        if (first < 0) {
            if (last >= offset) {
                int is_beyond = last >= end_offset;
                first = at;
                stop = is_beyond || after > data.len ? at : after;
                missing = is_beyond || after <= data.len ? 0 : after - at;
                if (stop == at)
                    break;
                next_offset = last + 1;
            }
        } else if (last >= end_offset || after > data.len || after - first > room)
            break;
        else {
            stop = after;
            next_offset = last + 1;
        }
        at = after;
    }
    if (first < 0)
        first = stop = at;
    else if (stop > first)
        missing = 0;
    PyBuffer_Release(&data);
    return Py_BuildValue("(LLLL)", first, stop, missing, (long long)next_offset);
}

/* ------------------------------------------------------------------------------------------------
   Records that are written again */

typedef struct {
    uint8_t *data;
    size_t size, room;
} Output;

static uint8_t *extend(Output *out, size_t more)
{
    if (out->room - out->size < more) {
        size_t room = 2 * out->room + more + 256;
        uint8_t *data = realloc(out->data, room);
        if (!data)
            return NULL;
        out->data = data;
        out->room = room;
    }
    uint8_t *p = out->data + out->size;
    out->size += more;
    return p;
}

static int varlong(uint8_t bytes[10], int64_t value)
{
    uint64_t n = (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
    int count = 0;
    for (; n > 127; n >>= 7)
        bytes[count++] = (uint8_t)(n | 128);
    bytes[count++] = (uint8_t)n;
    return count;
}

static int put(Output *out, const void *bytes, size_t size)
{
    uint8_t *p = extend(out, size);
    if (!p)
        return -1;
    if (size)
        memcpy(p, bytes, size);
    return 0;
}

static int put_number(Output *out, int64_t value)
{
    uint8_t bytes[10];
    return put(out, bytes, (size_t)varlong(bytes, value));
}

static int put_field(Output *out, const uint8_t *bytes, int32_t size)
{
    if (put_number(out, size < 0 ? -1 : size) < 0)
        return -1;
    return size > 0 ? put(out, bytes, (size_t)size) : 0;
}

/* Write a record's body: attributes 0, timestamp and offset deltas, key, value, headers. */
static int put_record(Output *out, const Record *r, int64_t timestamp_delta, int32_t offset_delta, const uint8_t *end)
{
    Cursor c = {r->header, end};
    if (put(out, "", 1) < 0 || put_number(out, timestamp_delta) < 0 || put_number(out, offset_delta) < 0
        || put_field(out, r->key, r->key_bytes) < 0 || put_field(out, r->value, r->value_bytes) < 0
        || put_number(out, r->headers) < 0)
        return -1;
    for (int32_t i = 0; i < 2 * r->headers; i++) {
        int32_t size;
        const uint8_t *bytes;
        if (read_field(&c, &size, &bytes) < 0 || put_field(out, bytes, size) < 0)
            return -1;
    }
    return 0;
}

/* Write the records that `kept` marks (all without it), each with its offset delta or the number of those before it. */
static PyObject *written_anew(PyObject *data, const uint8_t *kept, Py_ssize_t n_kept, int64_t base, int renumbers)
{
    Batch b;
    if (open_batch(&b, data) < 0)
        return NULL;
    if (kept && n_kept != b.count) {
        PyBuffer_Release(&b.buffer);
        PyErr_SetString(PyExc_ValueError, "a mark for each record is needed");
        return NULL;
    }
    Output out = {0}, body = {0};
    int broken = 0, no_memory = 0, negative = 0;
    int64_t first = base, most = NO_TIMESTAMP;
    int32_t i = 0, count = 0;
    PyThreadState *state = b.buffer.len >= WITHOUT_GIL_BYTES ? PyEval_SaveThread() : NULL;
    for (; i < b.count && !broken && !no_memory && !negative; i++) {
        Record r;
        if ((broken = read_record(&b.body, &r, 0) < 0))
            break;
        if (kept && !kept[i])
            continue;
        int64_t timestamp = timestamp_of(&b, &r);
        negative = timestamp < NO_TIMESTAMP;
        if (!count && first == NO_TIMESTAMP)
            first = timestamp;
        if (timestamp > most)
            most = timestamp;
        body.size = 0;
        int32_t delta = renumbers ? count : r.offset_delta;
        no_memory = put_record(&body, &r, minus(timestamp, first), delta, b.body.p) < 0
                    || put_number(&out, (int64_t)body.size) < 0 || put(&out, body.data, body.size) < 0;
        count++;
    }
    if (state)
        PyEval_RestoreThread(state);
    PyBuffer_Release(&b.buffer);
    PyObject *result = NULL;
    if (broken)
        set_error("is damaged", i);
    else if (no_memory)
        PyErr_NoMemory();
    else if (negative)
        result = Py_NewRef(Py_None);
    else
        result = Py_BuildValue("(y#LL)", out.data ? (const char *)out.data : "", (Py_ssize_t)out.size, (long long)first,
                               (long long)most);
    free(out.data);
    free(body.data);
    return result;
}

/* Put a value that is bytes or None; -1 with an exception otherwise. */
static int put_bytes(Output *out, PyObject *value)
{
    if (value == Py_None)
        return put_field(out, NULL, -1);
    if (!PyBytes_Check(value) || PyBytes_GET_SIZE(value) > INT32_MAX) {
        PyErr_SetString(PyExc_TypeError, "bytes of at most 2 GiB, or None");
        return -1;
    }
    return put_field(out, (const uint8_t *)PyBytes_AS_STRING(value), (int32_t)PyBytes_GET_SIZE(value));
}

/* Put the body of a record that is (timestamp, key, value, headers), all of them sequences as below. */
static int put_fields(Output *body, PyObject *key, PyObject *value, PyObject *headers, int64_t delta, Py_ssize_t index)
{
    PyObject *pairs = PySequence_Fast(headers, "headers are a sequence");
    if (!pairs)
        return -1;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(pairs);
    int failed = put(body, "", 1) < 0 || put_number(body, delta) < 0 || put_number(body, index) < 0
                 || put_bytes(body, key) < 0 || put_bytes(body, value) < 0 || put_number(body, count) < 0;
    for (Py_ssize_t i = 0; i < count && !failed; i++) {
        PyObject *pair = PySequence_Fast_GET_ITEM(pairs, i);
        if ((failed = !PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2))
            PyErr_SetString(PyExc_TypeError, "a header is a pair");
        else
            failed = put_bytes(body, PyTuple_GET_ITEM(pair, 0)) < 0 || put_bytes(body, PyTuple_GET_ITEM(pair, 1)) < 0;
    }
    Py_DECREF(pairs);
    return failed ? -1 : 0;
}

/* write_records([(timestamp, key, value, headers)]) -> (records, first timestamp, maximum timestamp). */
static PyObject *write_records(PyObject *Py_UNUSED(module), PyObject *records)
{
    PyObject *rows = PySequence_Fast(records, "records are a sequence");
    if (!rows)
        return NULL;
    Output out = {0}, body = {0};
    int64_t first = 0, most = 0;
    int failed = 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(rows) && !failed; i++) {
        PyObject *row = PySequence_Fast_GET_ITEM(rows, i);
        if ((failed = !PyTuple_Check(row) || PyTuple_GET_SIZE(row) != 4)) {
            PyErr_SetString(PyExc_TypeError, "a record is (timestamp, key, value, headers)");
            break;
        }
        int64_t timestamp = PyLong_AsLongLong(PyTuple_GET_ITEM(row, 0));
        if ((failed = timestamp == -1 && PyErr_Occurred()))
            break;
        if (!i)
            first = most = timestamp;
        if (timestamp > most)
            most = timestamp;
        body.size = 0;
        failed = put_fields(&body, PyTuple_GET_ITEM(row, 1), PyTuple_GET_ITEM(row, 2), PyTuple_GET_ITEM(row, 3),
                            minus(timestamp, first), i) < 0
                 || put_number(&out, (int64_t)body.size) < 0 || put(&out, body.data, body.size) < 0;
    }
    Py_DECREF(rows);
    PyObject *result = NULL;
    if (!failed)
        result = Py_BuildValue("(y#LL)", out.data ? (const char *)out.data : "", (Py_ssize_t)out.size, (long long)first,
                               (long long)most);
    else if (!PyErr_Occurred())
        PyErr_NoMemory();
    free(out.data);
    free(body.data);
    return result;
}

/* rewrite(batch) -> (records, base timestamp, maximum timestamp): the records of an uncompressed batch with offsets
   0, 1, 2 and the first one's timestamp as base, as Kafka's builder writes them. None for a negative timestamp. */
static PyObject *rewrite(PyObject *Py_UNUSED(module), PyObject *data)
{
    return written_anew(data, NULL, 0, NO_TIMESTAMP, 1);
}

/* keep_records(batch, kept, base_timestamp) -> as rewrite, of the records with a mark, at their offsets. A base
   timestamp of -1 is that of the first one kept. */
static PyObject *keep_records(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *data;
    const char *kept;
    Py_ssize_t n_kept;
    long long base;
    if (!PyArg_ParseTuple(args, "Oy#L", &data, &kept, &n_kept, &base))
        return NULL;
    return written_anew(data, (const uint8_t *)kept, n_kept, base, 0);
}

/* ------------------------------------------------------------------------------------------------
   The newest offset of each key: a table of slots with the hash of a key and an offset plus one, 0 where it is free */

enum { HASH_BYTES = 16, SLOT_BYTES = 24 };

typedef struct {
    Py_buffer slots;
    int64_t n_slots;
    uint64_t secret[2];
} KeyTable;

static inline uint64_t rotated(uint64_t n, int by) { return n << by | n >> (64 - by); }

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotated(v[1], 13) ^ v[0];
    v[3] = rotated(v[3], 16) ^ v[2];
    v[0] = rotated(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotated(v[1], 17) ^ v[2];
    v[3] = rotated(v[3], 21) ^ v[0];
    v[2] = rotated(v[2], 32);
}

/* SipHash-2-4 of 128 bits: whoever does not know the secret cannot choose keys of equal hash. */
static void hash_key(const KeyTable *table, const uint8_t *key, int32_t size, uint64_t hash[2])
{
    uint64_t v[4] = {0x736f6d6570736575u ^ table->secret[0], 0x646f72616e646f6du ^ table->secret[1] ^ 0xee,
                     0x6c7967656e657261u ^ table->secret[0], 0x7465646279746573u ^ table->secret[1]};
    int32_t at = 0;
    for (; at + 8 <= size; at += 8) {
        uint64_t word;
        memcpy(&word, key + at, 8);
        v[3] ^= word;
        sip_round(v);
        sip_round(v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)(size & 0xff) << 56;
    for (int i = 0; at + i < size; i++)
        last |= (uint64_t)key[at + i] << (8 * i);
    v[3] ^= last;
    sip_round(v);
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xee;
    for (int half = 0; half < 2; half++) {
        for (int i = 0; i < 4; i++)
            sip_round(v);
        hash[half] = v[0] ^ v[1] ^ v[2] ^ v[3];
        v[1] ^= 0xdd;
    }
}

/* A table and a batch whose keys are looked up in it. */
static int open_both(KeyTable *table, PyObject *slots, const char *secret, Py_ssize_t n_secret, Batch *b, PyObject *data)
{
    if (n_secret != HASH_BYTES) {
        PyErr_SetString(PyExc_ValueError, "a secret of 16 bytes is needed");
        return -1;
    }
    if (PyObject_GetBuffer(slots, &table->slots, PyBUF_WRITABLE) < 0)
        return -1;
    if (open_batch(b, data) < 0) {
        PyBuffer_Release(&table->slots);
        return -1;
    }
    table->n_slots = table->slots.len / SLOT_BYTES;
    memcpy(table->secret, secret, HASH_BYTES);
    return 0;
}

/* The slot of a key: its own, or the free one where it belongs; NULL if every slot has another key. */
static uint8_t *slot_of(const KeyTable *table, const Record *r, uint64_t hash[2])
{
    hash_key(table, r->key, r->key_bytes, hash);
    int64_t at = table->n_slots ? (int64_t)(hash[0] % (uint64_t)table->n_slots) : 0;
    for (int64_t i = 0; i < table->n_slots; i++) {
        uint8_t *slot = (uint8_t *)table->slots.buf + at * SLOT_BYTES;
        uint64_t offset;
        memcpy(&offset, slot + HASH_BYTES, 8);
        if (!offset || !memcmp(slot, hash, HASH_BYTES))
            return slot;
        at = at + 1 == table->n_slots ? 0 : at + 1;
    }
    return NULL;
}

/* note_keys(slots, secret, batch, start_offset, room) -> (how many keys are new, the last offset noted or -1, whether
   all fitted): notes the offset of each record with a key from start_offset on, until `room` new keys are there. */
static PyObject *note_keys(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *slots, *data;
    const char *secret;
    Py_ssize_t n_secret;
    long long start, room;
    KeyTable table;
    Batch b;
    if (!PyArg_ParseTuple(args, "Oy#OLL", &slots, &secret, &n_secret, &data, &start, &room)
        || open_both(&table, slots, secret, n_secret, &b, data) < 0)
        return NULL;
    int32_t i = 0;
    int64_t added = 0, last = -1;
    int broken = 0, fits = 1;
    for (; i < b.count && fits; i++) {
        Record r;
        if ((broken = read_record(&b.body, &r, 0) < 0))
            break;
        int64_t offset = plus(b.base, r.offset_delta);
        if ((broken = offset < 0))
            break;
        if (r.key_bytes < 0 || offset < start)
            continue;
        uint64_t hash[2], noted, mark = (uint64_t)offset + 1;
        uint8_t *slot = added < room ? slot_of(&table, &r, hash) : NULL;
        if (!(fits = slot != NULL))
            break;
        memcpy(&noted, slot + HASH_BYTES, 8);
        added += !noted;
        memcpy(slot, hash, HASH_BYTES);
        memcpy(slot + HASH_BYTES, &mark, 8);
        last = offset;
    }
    PyBuffer_Release(&b.buffer);
    PyBuffer_Release(&table.slots);
    if (broken) {
        set_error("is damaged", i);
        return NULL;
    }
    return Py_BuildValue("(LLN)", (long long)added, (long long)last, PyBool_FromLong(fits));
}

/* newest_records(slots, secret, batch, latest_offset, drops_tombstones) -> (a mark for each record, how many stay,
   whether a tombstone does): records past latest_offset stay, and of the others those that are the newest of a key. */
static PyObject *newest_records(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *slots, *data;
    const char *secret;
    Py_ssize_t n_secret;
    long long latest;
    int drops;
    KeyTable table;
    Batch b;
    if (!PyArg_ParseTuple(args, "Oy#OLp", &slots, &secret, &n_secret, &data, &latest, &drops)
        || open_both(&table, slots, secret, n_secret, &b, data) < 0)
        return NULL;
    PyObject *marks = PyBytes_FromStringAndSize(NULL, b.count);
    uint8_t *mark = marks ? (uint8_t *)PyBytes_AS_STRING(marks) : NULL;
    int32_t i = 0, count = 0;
    int broken = 0, tombstones = 0;
    for (; mark && i < b.count; i++) {
        Record r;
        if ((broken = read_record(&b.body, &r, 0) < 0))
            break;
        int64_t offset = plus(b.base, r.offset_delta);
        if ((broken = offset < 0))
            break;
        int stays = offset > latest;
        if (!stays && r.key_bytes >= 0) {
            uint64_t hash[2], noted = 0;
            const uint8_t *slot = slot_of(&table, &r, hash);
            if (slot)
                memcpy(&noted, slot + HASH_BYTES, 8);
            stays = (uint64_t)offset + 1 >= noted && (r.value_bytes >= 0 || !drops);
        }
        mark[i] = (uint8_t)stays;
        count += stays;
        tombstones |= stays && r.value_bytes < 0;
    }
    PyBuffer_Release(&b.buffer);
    PyBuffer_Release(&table.slots);
    if (broken) {
        Py_XDECREF(marks);
        set_error("is damaged", i);
        return NULL;
    }
    return marks ? Py_BuildValue("(NiN)", marks, (int)count, PyBool_FromLong(tombstones)) : NULL;
}

static PyObject *checksum(PyObject *Py_UNUSED(module), PyObject *data)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    PyThreadState *state = buffer.len >= WITHOUT_GIL_BYTES ? PyEval_SaveThread() : NULL;
    uint32_t crc = crc32c(buffer.buf, (size_t)buffer.len);
    if (state)
        PyEval_RestoreThread(state);
    PyBuffer_Release(&buffer);
    return PyLong_FromUnsignedLong(crc);
}

/* As checksum, by tables: what processors without the instruction do. */
static PyObject *checksum_by_tables(PyObject *Py_UNUSED(module), PyObject *data)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    uint32_t crc = ~crc_by_tables(0xFFFFFFFFu, buffer.buf, (size_t)buffer.len);
    PyBuffer_Release(&buffer);
    return PyLong_FromUnsignedLong(crc);
}

/* ------------------------------------------------------------------------------------------------
   XXH3: the long part of kraftd/groups/consumer/xxh3.py */

enum { STRIPE_BYTES = 64, BLOCK_STRIPES = 16, BLOCK_BYTES = STRIPE_BYTES * BLOCK_STRIPES, LANES = 8 };
enum { SCRAMBLE_AT = 128 };

static const uint8_t xxh3_secret[192] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};

/* Add stripes to the lanes; each one uses the secret from 8 bytes further on. */
static void add_stripes(uint64_t *lanes, const uint8_t *p, size_t stripes, const uint8_t *secret)
{
    for (; stripes; stripes--, p += STRIPE_BYTES, secret += 8)
        for (int i = 0; i < LANES; i++) {
            uint64_t word = little64(p + 8 * i), key = word ^ little64(secret + 8 * i);
            lanes[i ^ 1] += word;
            lanes[i] += (key & 0xFFFFFFFFu) * (key >> 32);
        }
}

static void add_blocks(uint64_t *lanes, const uint8_t *p, size_t blocks)
{
    for (; blocks; blocks--, p += BLOCK_BYTES) {
        add_stripes(lanes, p, BLOCK_STRIPES, xxh3_secret);
        for (int i = 0; i < LANES; i++)
            lanes[i] = (lanes[i] ^ lanes[i] >> 47 ^ little64(xxh3_secret + SCRAMBLE_AT + 8 * i)) * 0x9E3779B1u;
    }
}

/* (lanes, whole blocks) -> lanes: see xxh3.add_blocks. */
static PyObject *xxh3_blocks(PyObject *Py_UNUSED(module), PyObject *args)
{
    uint64_t lanes[LANES];
    PyObject *before;
    Py_buffer buffer;
    if (!PyArg_ParseTuple(args, "O!y*", &PyList_Type, &before, &buffer))
        return NULL;
    if (PyList_GET_SIZE(before) != LANES || buffer.len % BLOCK_BYTES) {
        PyBuffer_Release(&buffer);
        PyErr_SetString(PyExc_ValueError, "not eight lanes and whole blocks");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < LANES; i++)
        lanes[i] = PyLong_AsUnsignedLongLong(PyList_GET_ITEM(before, i));
    if (PyErr_Occurred()) {
        PyBuffer_Release(&buffer);
        return NULL;
    }
    PyThreadState *state = buffer.len >= WITHOUT_GIL_BYTES ? PyEval_SaveThread() : NULL;
    add_blocks(lanes, buffer.buf, (size_t)buffer.len / BLOCK_BYTES);
    if (state)
        PyEval_RestoreThread(state);
    PyBuffer_Release(&buffer);
    PyObject *found = PyList_New(LANES);
    for (Py_ssize_t i = 0; found && i < LANES; i++) {
        PyObject *lane = PyLong_FromUnsignedLongLong(lanes[i]);
        if (!lane)
            Py_CLEAR(found);
        else
            PyList_SET_ITEM(found, i, lane);
    }
    return found;
}

/* ------------------------------------------------------------------------------------------------
   Racks of partitions: the part of kraftd/groups/consumer/metadata_hash.py that looks at each replica */

/* Note the ranks of the racks of some replicas, in order, behind their number; return the end, NULL with an error. */
static Py_ssize_t *note_ranks(PyObject *ids, PyObject *rank_of, PyObject *texts, Py_ssize_t *to, Py_ssize_t *size)
{
    Py_ssize_t *first = to + 1, *at = first;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(ids); i++) {
        PyObject *found = PyDict_GetItemWithError(rank_of, PyTuple_GET_ITEM(ids, i));
        if (!found && PyErr_Occurred())
            return NULL;
        if (!found)
            continue;
        Py_ssize_t rank = PyLong_AsSsize_t(found), *place = at++;
        if (rank < 0 || rank >= PyTuple_GET_SIZE(texts)) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "no rack has this rank");
            return NULL;
        }
        for (; place > first && place[-1] > rank; place--)
            *place = place[-1];
        *place = rank;
        *size += PyBytes_GET_SIZE(PyTuple_GET_ITEM(texts, rank));
    }
    *to = at - first;
    return at;
}

/* (first, replicas, rank_of, texts) -> bytes: see metadata_hash.partition_bytes. */
static PyObject *partition_bytes(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *replicas, *rank_of, *texts, *found = NULL;
    unsigned int first;
    if (!PyArg_ParseTuple(args, "IO!O!O!", &first, &PyTuple_Type, &replicas, &PyDict_Type, &rank_of, &PyTuple_Type, &texts))
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(replicas), room = count, size = 4 * count;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(texts); i++)
        if (!PyBytes_Check(PyTuple_GET_ITEM(texts, i)))
            return PyErr_Format(PyExc_TypeError, "texts are bytes");
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!PyTuple_Check(PyTuple_GET_ITEM(replicas, i)))
            return PyErr_Format(PyExc_TypeError, "replicas are tuples");
        room += PyTuple_GET_SIZE(PyTuple_GET_ITEM(replicas, i));
    }
    Py_ssize_t *ranks = PyMem_New(Py_ssize_t, room), *at = ranks;
    if (!ranks)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; at && i < count; i++)
        at = note_ranks(PyTuple_GET_ITEM(replicas, i), rank_of, texts, at, &size);
    if (at && (found = PyBytes_FromStringAndSize(NULL, size))) {
        uint8_t *to = (uint8_t *)PyBytes_AS_STRING(found);
        at = ranks;
        for (Py_ssize_t i = 0; i < count; i++) {
            for (int byte = 0; byte < 4; byte++)
                *to++ = (uint8_t)((first + (size_t)i) >> 8 * byte);
            for (Py_ssize_t left = *at++; left > 0; left--) {
                PyObject *text = PyTuple_GET_ITEM(texts, *at++);
                memcpy(to, PyBytes_AS_STRING(text), (size_t)PyBytes_GET_SIZE(text));
                to += PyBytes_GET_SIZE(text);
            }
        }
    }
    PyMem_Free(ranks);
    return found;
}

/* A buffer of that size, of which nothing is written yet. */
static PyObject *room(PyObject *module, PyObject *size)
{
    (void)module;
    Py_ssize_t size_bytes = PyLong_AsSsize_t(size);
    if (size_bytes < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "negative size");
        return NULL;
    }
    return PyByteArray_FromStringAndSize(NULL, size_bytes);
}

/* ------------------------------------------------------------------------------------------------
   The module */

static PyMethodDef methods[] = {
    {"judge", (PyCFunction)(void (*)(void))judge, METH_FASTCALL, "Judge the only batch of a partition, and patch it."},
    {"find_timestamp", find_timestamp, METH_VARARGS, "The first record of a timestamp, or None."},
    {"decode_records", decode_records, METH_O, "The records of an uncompressed batch."},
    {"batch_headers", batch_headers, METH_VARARGS, "The headers of whole batches, and where they end."},
    {"plain_answer", (PyCFunction)(void (*)(void))plain_answer, METH_FASTCALL, "The partitions of a fetch's answer."},
    {"verify_batches", verify_batches, METH_VARARGS, "How far whole batches of a leader epoch are sound."},
    {"select_batches", select_batches, METH_VARARGS, "The batches that an answer may have."},
    {"write_records", write_records, METH_O, "Records as a batch holds them."},
    {"rewrite", rewrite, METH_O, "The records of an uncompressed batch, written anew."},
    {"keep_records", keep_records, METH_VARARGS, "Those records of an uncompressed batch that have a mark, written anew."},
    {"note_keys", note_keys, METH_VARARGS, "Note the newest offset of each key of a batch."},
    {"newest_records", newest_records, METH_VARARGS, "Which records of a batch are the newest of their keys."},
    {"room", room, METH_O, "A buffer to be filled."},
    {"crc32c", checksum, METH_O, "The CRC32C of some bytes."},
    {"crc32c_by_tables", checksum_by_tables, METH_O, "The CRC32C of some bytes, without a processor's instruction."},
    {"partition_bytes", partition_bytes, METH_VARARGS, "The partitions of a topic with their racks, as they are hashed."},
    {"xxh3_blocks", xxh3_blocks, METH_VARARGS, "The lanes of an XXH3 after more blocks, as a list."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "kraftd.wire._records", .m_doc = "Record batches of data partitions in C.",
    .m_size = -1, .m_methods = methods,
};

/* An attribute of a module; NULL with an exception if either is missing. */
static PyObject *imported(const char *module_name, const char *attribute)
{
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *found = module ? PyObject_GetAttrString(module, attribute) : NULL;
    Py_XDECREF(module);
    return found;
}

PyMODINIT_FUNC PyInit__records(void)
{
    choose_crc();
    structure_error = imported("kraftd.wire.errors", "DamagedRecords");
    header_class = structure_error ? (PyTypeObject *)imported("kraftd.wire.batch", "BatchHeader") : NULL;
    return header_class ? PyModule_Create(&definition) : NULL;
}
