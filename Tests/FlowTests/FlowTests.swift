import TestSupport
import Testing

/// Flows through all executables. Each has a cluster of processes of its own: deploy/test runs few at a time.
@Suite(.ownThreads) struct FlowTests {}
