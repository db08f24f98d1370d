/* Files as mapped memory that outlives their bytes. Plain C, knows no Python.
 *
 * A page that a mapped file no longer has (it was cut short, or its disk fails) ends the process with SIGBUS, in
 * whichever thread or library touches it. Here a handler puts zeros in the place of the whole mapping, notes that it is
 * lost, and lets the thread go on. Nothing is asked before a byte is read, so it costs nothing; whoever hands on what was
 * made of mapped bytes asks afterwards whether a mapping was lost.
 */
#ifndef PENSTOCK_MAPPING_H
#define PENSTOCK_MAPPING_H

#include <stddef.h>

typedef struct penstock_mapping penstock_mapping;

/* Map so many bytes of a file, or NULL, and errno says why: EINVAL where it has another size by now. `path` is copied. */
penstock_mapping *penstock_map(const char *path, size_t size);

const void *penstock_mapped_bytes(const penstock_mapping *mapping);
size_t penstock_mapped_size(const penstock_mapping *mapping);
void penstock_unmap(penstock_mapping *mapping);

/* How many mappings that are still there are lost. */
int penstock_lost_count(void);

/* Call `tell` with the path of each of them. */
void penstock_tell_lost(void (*tell)(const char *path, void *to), void *to);

#endif
