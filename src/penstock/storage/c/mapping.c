#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#include "mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif

/* Mappings stand in a list that only grows: the handler may walk it at any moment, in any thread, without a lock. A place
 * whose size is 0 is free. */
struct penstock_mapping {
    uintptr_t start;
    size_t size;
    int lost;
    char *path;
    penstock_mapping *next;
};

static penstock_mapping *first;
static int lost_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before;

static penstock_mapping *find(uintptr_t address)
{
    for (penstock_mapping *each = __atomic_load_n(&first, __ATOMIC_ACQUIRE); each != NULL; each = each->next) {
        size_t size = __atomic_load_n(&each->size, __ATOMIC_ACQUIRE);
        if (size != 0 && address >= each->start && address - each->start < size)
            return each;
    }
    return NULL;
}

/* Whoever holds a view of the file, and asks nobody, is told at least this. Nothing here but write() is allowed. */
static void warn(const char *path)
{
    static const char begin[] = "penstock: ", end[] = " was cut short, or its disk failed, while it was in use\n";
    ssize_t written = write(STDERR_FILENO, begin, sizeof begin - 1);
    if (written >= 0)
        written = write(STDERR_FILENO, path, strlen(path));
    if (written >= 0)
        written = write(STDERR_FILENO, end, sizeof end - 1);
    (void)written;
}

/* Zeros in the place of a mapping. It is noted as lost first, so that no thread sees zeros of a mapping that is not. */
static int cover(penstock_mapping *mapping)
{
    if (!__atomic_exchange_n(&mapping->lost, 1, __ATOMIC_SEQ_CST)) {
        __atomic_add_fetch(&lost_count, 1, __ATOMIC_SEQ_CST);
        warn(mapping->path);
    }
    void *place = (void *)mapping->start;
    return mmap(place, mapping->size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == place;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    int kept = errno;
    if (info->si_code > 0) {
        penstock_mapping *mapping = find((uintptr_t)info->si_addr);
        if (mapping != NULL && cover(mapping)) {
            errno = kept;
            return;
        }
    }
#ifdef SI_TKILL
    /* A handler that was installed later and hands signals on, as that of Python's faulthandler does, by raise(): the page
     * is touched again after it, and then the signal comes with its address. */
    if (info->si_code == SI_TKILL && info->si_pid == getpid())
        return;
#endif
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else {
        sigaction(number, &before, NULL); /* and the instruction is tried once more, which ends the process */
        if (info->si_code <= 0)
            raise(number);
    }
    errno = kept;
}

/* Whoever took the signal in the meantime is asked after us. */
static void install(void)
{
    struct sigaction present;
    if (sigaction(SIGBUS, NULL, &present) != 0 ||
        ((present.sa_flags & SA_SIGINFO) && present.sa_sigaction == on_bus_error))
        return;
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_bus_error;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    before = present;
    sigaction(SIGBUS, &ours, NULL);
}

/* A place in the list for bytes that are mapped; NULL without memory. */
static penstock_mapping *enter(void *bytes, size_t size, const char *path)
{
    char *copy = strdup(path);
    if (copy == NULL)
        return NULL;
    pthread_mutex_lock(&lock);
    penstock_mapping *place = first;
    while (place != NULL && place->size != 0)
        place = place->next;
    int is_new = place == NULL;
    if (is_new)
        place = calloc(1, sizeof *place);
    if (place != NULL) {
        place->start = (uintptr_t)bytes;
        place->lost = 0;
        place->path = copy;
        __atomic_store_n(&place->size, size, __ATOMIC_RELEASE);
        if (is_new) {
            place->next = first;
            __atomic_store_n(&first, place, __ATOMIC_RELEASE);
        }
        install();
    } else {
        free(copy);
    }
    pthread_mutex_unlock(&lock);
    return place;
}

penstock_mapping *penstock_map(const char *path, size_t size)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return NULL;
    struct stat state;
    void *bytes = MAP_FAILED;
    if (fstat(descriptor, &state) == 0) {
        if (size == 0 || state.st_size < 0 || (uintmax_t)state.st_size != size)
            errno = EINVAL;
        else
            bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, descriptor, 0);
    }
    int reason = errno;
    close(descriptor); /* a dataset may have more files than a process may hold open */
    errno = reason;
    if (bytes == MAP_FAILED)
        return NULL;
    penstock_mapping *mapping = enter(bytes, size, path);
    if (mapping == NULL) {
        munmap(bytes, size);
        errno = ENOMEM;
    }
    return mapping;
}

const void *penstock_mapped_bytes(const penstock_mapping *mapping)
{
    return (const void *)mapping->start;
}

size_t penstock_mapped_size(const penstock_mapping *mapping)
{
    return mapping->size;
}

void penstock_unmap(penstock_mapping *mapping)
{
    pthread_mutex_lock(&lock);
    void *bytes = (void *)mapping->start;
    size_t size = mapping->size;
    if (mapping->lost)
        __atomic_sub_fetch(&lost_count, 1, __ATOMIC_SEQ_CST);
    free(mapping->path);
    mapping->path = NULL;
    __atomic_store_n(&mapping->size, 0, __ATOMIC_RELEASE);
    munmap(bytes, size);
    pthread_mutex_unlock(&lock);
}

int penstock_lost_count(void)
{
    return __atomic_load_n(&lost_count, __ATOMIC_SEQ_CST);
}

void penstock_tell_lost(void (*tell)(const char *path, void *to), void *to)
{
    pthread_mutex_lock(&lock);
    for (penstock_mapping *each = first; each != NULL; each = each->next)
        if (each->size != 0 && each->lost)
            tell(each->path, to);
    pthread_mutex_unlock(&lock);
}
