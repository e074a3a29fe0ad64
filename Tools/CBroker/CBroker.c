#define _GNU_SOURCE
#include "CBroker.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of the calling thread: the sockets of other threads keep their names. Without a port, nothing is advertised. */
static _Thread_local struct sockaddr_in advertised;
static _Thread_local int listening_port;

int cbroker_advertise(const char *address, int port) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    if (inet_pton(AF_INET, address, &in.sin_addr) != 1 || in.sin_addr.s_addr == htonl(INADDR_ANY)) return -1;
    advertised = in;
    listening_port = 0;
    return 0;
}

int cbroker_end_advertising(void) {
    memset(&advertised, 0, sizeof advertised);
    return listening_port;
}

int getsockname(int descriptor, struct sockaddr *restrict address, socklen_t *restrict size) {
    int result = (int)syscall(SYS_getsockname, descriptor, address, size);
    if (result != 0 || advertised.sin_port == 0 || *size < sizeof advertised) return result;
    struct sockaddr_in in;
    memcpy(&in, address, sizeof in);
    if (in.sin_family != AF_INET) return result;
    listening_port = ntohs(in.sin_port);
    memcpy(address, &advertised, sizeof advertised);
    return result;
}

/* The mock cluster accepts connections by accept(2), with Nagle's algorithm: a small response waits until the previous
   one is acknowledged. Kafka disables it. */
int accept(int listener, struct sockaddr *restrict address, socklen_t *restrict size) {
    int connection = (int)syscall(SYS_accept, listener, address, size);
    int on = 1;
    if (connection >= 0) setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return connection;
}
