import Testing

/// Flows through all executables. One at a time: each has a suite of processes of its own.
@Testing.Suite(.serialized) struct FlowTests {}
