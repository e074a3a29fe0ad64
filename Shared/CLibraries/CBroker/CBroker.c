#include "CBroker.h"
static int fixed; int fieldpost_bind_port_set(int port) { fixed = port; return fixed; }
