/* Records of tf.train.Examples that have one large feature, of which nobody makes a copy. Plain C, knows no Python.
 *
 *   record head │ Example ─► Features ─► entries before │ start of the entry │ bytes │ entries behind │ checksum
 */
#ifndef PENSTOCK_EXAMPLE_RECORDS_H
#define PENSTOCK_EXAMPLE_RECORDS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const uint8_t *bytes;
    size_t size;
} penstock_piece;

/* The pieces of a record: entries before, the bytes of the feature, entries behind. */
enum { PENSTOCK_EARLIER, PENSTOCK_CONTENT, PENSTOCK_LATER, PENSTOCK_PIECES };

/* The bytes that stand before the content, and behind it. */
size_t penstock_size_before(const penstock_piece *pieces, penstock_piece name);
size_t penstock_size_behind(const penstock_piece *pieces);

/* Fill what stands before the content, as many bytes as penstock_size_before says. */
void penstock_put_before(const penstock_piece *pieces, penstock_piece name, uint8_t *before);

/* Fill what stands behind; `before` is filled already. */
void penstock_put_behind(const penstock_piece *pieces, const uint8_t *before, size_t before_size, uint8_t *behind);

#endif
