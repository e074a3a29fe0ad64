#define _GNU_SOURCE
#include "CBroker.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of the calling thread: what other threads bind is not affected. */
static _Thread_local int next_port;
static _Thread_local int ports_left;
/* Of brokers with a fixed port, in network order; 0: 127.0.0.1. */
static _Thread_local in_addr_t broker_address;
/* The socket that has the last fixed port, and drops connection attempts. */
static _Thread_local int fixed = -1;

int cbroker_use_address(const char *address) {
    struct in_addr in;
    if (inet_pton(AF_INET, address, &in) != 1 || in.s_addr == htonl(INADDR_ANY)) return -1;
    broker_address = in.s_addr;
    return 0;
}

static in_addr_t listen_address(void) { return broker_address != 0 ? broker_address : htonl(INADDR_LOOPBACK); }

void cbroker_fix_ports(int port, int count) {
    next_port = port;
    ports_left = count;
}

int cbroker_ports_left(void) { return ports_left; }

/* The port for a call that asks for any port of 127.0.0.1; 0 when it may have any. */
static int take_port(const struct sockaddr *address, socklen_t size) {
    if (address == NULL || address->sa_family != AF_INET || size < sizeof(struct sockaddr_in)) return 0;
    struct sockaddr_in in;
    memcpy(&in, address, sizeof in);
    if (in.sin_port != 0 || in.sin_addr.s_addr != htonl(INADDR_LOOPBACK)) return 0;

    if (ports_left == 0) return 0;
    ports_left--;
    return next_port++;
}

int bind(int descriptor, const struct sockaddr *address, socklen_t size) {
    int (*next)(int, const struct sockaddr *, socklen_t);
    *(void **)&next = dlsym(RTLD_NEXT, "bind");
    if (next == NULL) {
        errno = ENOSYS;
        return -1;
    }
    /* A program that this process starts, as Swift's runtime does at a crash, must not keep the port. */
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    int port = take_port(address, size);
    if (port == 0) return next(descriptor, address, size);

    /* The port is taken again although connections of the broker before it linger in TIME_WAIT. */
    int on = 1;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in in;
    memcpy(&in, address, sizeof in);
    in.sin_port = htons((unsigned short)port);
    in.sin_addr.s_addr = listen_address();

    /* A socket filter that drops all packets (packet(7)): a listening socket does not see connection attempts. */
    struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog program = {.len = 1, .filter = &drop};
    int filtered = setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
    /* Some systems reserve filters for administrators, which a process in a container is not. */
    if (!filtered && errno != EPERM) return -1;
    fixed = filtered ? descriptor : -1;
    return next(descriptor, (const struct sockaddr *)&in, sizeof in);
}

int cbroker_accept(void) {
    int ignored = 0;
    if (fixed < 0) return 0;
    return setsockopt(fixed, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof ignored);
}

int cbroker_port_is_free(int port) {
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return 0;
    int on = 1;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    in.sin_addr.s_addr = listen_address();
    int is_free = bind(descriptor, (struct sockaddr *)&in, sizeof in) == 0;
    close(descriptor);
    return is_free;
}
