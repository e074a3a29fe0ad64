#ifndef CBROKER_H
#define CBROKER_H

/// Sets the IPv4 address at which brokers with a fixed port listen, and which they advertise. Without it, it is
/// 127.0.0.1. Of the calling thread.
///
/// @return 0, or -1 if `address` is not an IPv4 address, or 0.0.0.0, to which clients cannot connect.
int cbroker_use_address(const char *address);

/// Gives the next `count` calls of bind(2) that ask for any port of 127.0.0.1 the ports `port`, `port + 1`, …
///
/// librdkafka's mock cluster takes a new port at each start; a broker that is killed and started again must come back
/// where its clients look for it. Effective in a program that links this file: its bind(2) stands before the C
/// library's. It applies to the calling thread, in which librdkafka binds the ports of a new cluster. `count` 0 ends it.
///
/// The ports drop connection attempts, which clients repeat, until `cbroker_accept`. If the system does not allow it,
/// they accept them, and a topic that a client creates is refused afterwards.
void cbroker_fix_ports(int port, int count);

/// Lets clients connect to the port that `cbroker_fix_ports` gave last.
///
/// A mock cluster listens before it has its topics, and creates a topic that a client requests with 4 partitions.
///
/// @return 0, or -1 with `errno`.
int cbroker_accept(void);

/// How many of those calls are still to come. 0 after a cluster was made: its brokers have the ports.
int cbroker_ports_left(void);

/// Whether a broker could listen on `port` of the address now.
///
/// Ask before making a cluster: librdkafka 2.0.2 aborts the process when the port is taken.
int cbroker_port_is_free(int port);

#endif
