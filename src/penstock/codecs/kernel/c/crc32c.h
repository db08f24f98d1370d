/* The checksum of TFRecords: CRC-32C (Castagnoli). Plain C, knows no Python. */
#ifndef PENSTOCK_CRC32C_H
#define PENSTOCK_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Tables, and a look at the CPU; called once before anything else, and harmless when called again. */
void penstock_crc32c_prepare(void);

/* Goes on from `crc`, which is 0 for the first bytes. */
uint32_t penstock_crc32c(uint32_t crc, const uint8_t *data, size_t size);

/* The same with tables alone, whatever the CPU has. */
uint32_t penstock_crc32c_by_tables(uint32_t crc, const uint8_t *data, size_t size);

/* As TFRecords store it: a checksum of bytes that hold their own checksum would be weak, hence the mask. */
uint32_t penstock_masked_crc32c(const uint8_t *data, size_t size);

/* The mask alone, for a checksum that was worked out piece by piece. */
uint32_t penstock_mask(uint32_t crc);

#endif
