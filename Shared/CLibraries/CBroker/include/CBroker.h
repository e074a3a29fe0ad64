int fieldpost_bind_port_set(int port);
