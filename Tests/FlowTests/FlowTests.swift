import Testing

/// Flows through all executables. Each has a suite of processes of its own: deploy/test runs few at a time.
@Suite struct FlowTests {}
