#define _GNU_SOURCE
#include "CTestNames.h"

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char chosen_name[256];
static char chosen_lookups[1024];
static const char *next_lookup;

void ctestnames_resolve(const char *name, const char *lookups) {
    pthread_mutex_lock(&lock);
    snprintf(chosen_name, sizeof chosen_name, "%s", name);
    snprintf(chosen_lookups, sizeof chosen_lookups, "%s", lookups);
    next_lookup = chosen_lookups;
    pthread_mutex_unlock(&lock);
}

/* The addresses of the next lookup; 0 when it is not of the chosen name. */
static int take_lookup(const char *name, char *addresses, size_t size) {
    int is_chosen = 0;
    pthread_mutex_lock(&lock);
    if (name != NULL && next_lookup != NULL && strcmp(name, chosen_name) == 0) {
        is_chosen = 1;
        size_t length = strcspn(next_lookup, ";");
        snprintf(addresses, size, "%.*s", (int)length, next_lookup);
        if (next_lookup[length] == ';') next_lookup += length + 1;
    }
    pthread_mutex_unlock(&lock);
    return is_chosen;
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    if (next == NULL) return EAI_FAIL;
    char addresses[sizeof chosen_lookups];
    if (!take_lookup(node, addresses, sizeof addresses)) return next(node, service, hints, result);

    struct addrinfo **end = result;
    *end = NULL;
    char *rest = addresses;
    for (char *address = strsep(&rest, ","); address != NULL; address = strsep(&rest, ",")) {
        if (next(address, service, hints, end) != 0) *end = NULL;
        while (*end != NULL) end = &(*end)->ai_next;
    }
    return *result == NULL ? EAI_NONAME : 0;
}
