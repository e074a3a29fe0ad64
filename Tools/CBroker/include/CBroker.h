#ifndef CBROKER_H
#define CBROKER_H

/// Makes the mock cluster that the calling thread creates next advertise `address` and `port`.
///
/// librdkafka's mock cluster listens on a free port of 127.0.0.1 and advertises the name of that socket, from
/// getsockname(2). A program that links this file has a getsockname(2) that precedes the C library's. It applies to
/// the calling thread, in which librdkafka opens the ports of a new cluster, until `cbroker_end_advertising`.
///
/// @return 0, or -1 if `address` is not an IPv4 address, or 0.0.0.0, to which clients cannot connect.
int cbroker_advertise(const char *address, int port);

/// Gives sockets of the calling thread their own names again.
///
/// @return The port on which the cluster listens; 0 if none was created.
int cbroker_end_advertising(void);

#endif
