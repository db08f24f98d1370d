#define _DEFAULT_SOURCE

#include "crc32c.h"

#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* Castagnoli, lowest bit first */
#define SLICES 8

static uint32_t tables[SLICES][256];

static void make_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        tables[0][byte] = crc;
    }
    for (int slice = 1; slice < SLICES; slice++)
        for (int byte = 0; byte < 256; byte++)
            tables[slice][byte] = tables[slice - 1][byte] >> 8 ^ tables[0][tables[slice - 1][byte] & 0xff];
}

static uint32_t one_byte(uint32_t crc, uint8_t byte)
{
    return crc >> 8 ^ tables[0][(crc ^ byte) & 0xff];
}

/* Eight bytes at a time; written so that the order of bytes in a word does not matter. */
static uint32_t sliced(uint32_t crc, const uint8_t *data, size_t size)
{
    for (; size >= 8; data += 8, size -= 8)
        crc = tables[7][(crc ^ data[0]) & 0xff] ^ tables[6][(crc >> 8 ^ data[1]) & 0xff] ^
              tables[5][(crc >> 16 ^ data[2]) & 0xff] ^ tables[4][(crc >> 24 ^ data[3]) & 0xff] ^ tables[3][data[4]] ^
              tables[2][data[5]] ^ tables[1][data[6]] ^ tables[0][data[7]];
    for (; size > 0; data++, size--)
        crc = one_byte(crc, *data);
    return crc;
}

/* The CPU's own instruction, where the compiler can be told to use it in one function only. */
#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)

#include <nmmintrin.h>

static int has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}

__attribute__((target("sse4.2"))) static uint64_t eight_bytes(uint64_t crc, uint64_t word)
{
    return _mm_crc32_u64(crc, word);
}
#define WITH_INSTRUCTION __attribute__((target("sse4.2")))

#elif (defined(__GNUC__) || defined(__clang__)) && defined(__aarch64__) && (defined(__linux__) || defined(__APPLE__))

#ifdef __linux__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#ifdef __clang__
#define WITH_INSTRUCTION __attribute__((target("crc")))
#else
#define WITH_INSTRUCTION __attribute__((target("+crc")))
#endif

static int has_instruction(void)
{
#ifdef __linux__
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#else
    return 1; /* every Apple CPU of 64 bits that runs a Mac */
#endif
}

WITH_INSTRUCTION static uint64_t eight_bytes(uint64_t crc, uint64_t word)
{
    uint32_t next = (uint32_t)crc;
    __asm__("crc32cx %w0, %w0, %x1" : "+r"(next) : "r"(word));
    return next;
}

#endif

#ifdef WITH_INSTRUCTION

static int uses_instruction;

/* The instruction takes three cycles and one may begin in each, so three stretches are run side by side. Joining them
 * needs the checksum of a stretch moved past `STRETCH` zero bytes, which is linear: four lookups. */
#define STRETCH 1024
static uint32_t moving[4][256];

static void make_moving(void)
{
    static const uint8_t zeros[STRETCH];
    for (int part = 0; part < 4; part++)
        for (uint32_t byte = 0; byte < 256; byte++)
            moving[part][byte] = sliced(byte << 8 * part, zeros, STRETCH);
}

static uint64_t moved(uint64_t crc)
{
    return moving[0][crc & 0xff] ^ moving[1][crc >> 8 & 0xff] ^ moving[2][crc >> 16 & 0xff] ^ moving[3][crc >> 24 & 0xff];
}

static uint64_t word_at(const uint8_t *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
    return word;
}

WITH_INSTRUCTION static uint64_t three_stretches(uint64_t crc, const uint8_t *data)
{
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < STRETCH; i += 8) {
        crc = eight_bytes(crc, word_at(data + i));
        second = eight_bytes(second, word_at(data + STRETCH + i));
        third = eight_bytes(third, word_at(data + 2 * STRETCH + i));
    }
    return moved(moved(crc) ^ second) ^ third;
}

WITH_INSTRUCTION static uint32_t instructed(uint32_t start, const uint8_t *data, size_t size)
{
    uint64_t crc = start;
    for (; size >= 3 * STRETCH; data += 3 * STRETCH, size -= 3 * STRETCH)
        crc = three_stretches(crc, data);
    for (; size >= 8; data += 8, size -= 8)
        crc = eight_bytes(crc, word_at(data));
    return sliced((uint32_t)crc, data, size);
}

#endif

void penstock_crc32c_prepare(void)
{
    make_tables();
#ifdef WITH_INSTRUCTION
    make_moving();
    uses_instruction = has_instruction();
#endif
}

uint32_t penstock_crc32c_by_tables(uint32_t crc, const uint8_t *data, size_t size)
{
    return ~sliced(~crc, data, size);
}

uint32_t penstock_crc32c(uint32_t crc, const uint8_t *data, size_t size)
{
#ifdef WITH_INSTRUCTION
    if (uses_instruction)
        return ~instructed(~crc, data, size);
#endif
    return penstock_crc32c_by_tables(crc, data, size);
}

uint32_t penstock_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

uint32_t penstock_masked_crc32c(const uint8_t *data, size_t size)
{
    return penstock_mask(penstock_crc32c(0, data, size));
}
