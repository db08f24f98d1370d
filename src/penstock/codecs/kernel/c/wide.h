/* Registers of 256 bits, where the compiler can be told to use them in some functions only and the processor has them. */
#ifndef PENSTOCK_WIDE_H
#define PENSTOCK_WIDE_H

#if defined(__SSE2__) && (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
#include <immintrin.h>

#define PENSTOCK_WIDE __attribute__((target("avx2")))

static inline int penstock_is_wide(void)
{
    return __builtin_cpu_supports("avx2");
}
#endif

#endif
