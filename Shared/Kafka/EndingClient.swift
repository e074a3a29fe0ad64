internal import CKafka
internal import Glibc

/// A client that nobody uses any more, and what its callbacks point to until it is gone.
@safe final class EndingClient {
    private let pointer: OpaquePointer
    private let context: ClientContext

    init(pointer: OpaquePointer, context: ClientContext) {
        unsafe self.pointer = pointer
        self.context = context
    }

    /// Waits for the client's threads.
    func end() { unsafe rd_kafka_destroy_flags(pointer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE) }

    /// Waits on a thread of its own, for a consumer that was closed, or was in no group: it has committed and left, so
    /// nothing depends on the rest.
    ///
    /// librdkafka 2.0.2 sometimes waits there for ever: the thread of a broker does not end that was killed and came
    /// back empty while it was read from.
    func endBeside() {
        let argument = unsafe Unmanaged.passRetained(self).toOpaque()
        var thread = pthread_t()
        let status = unsafe pthread_create(
            &thread, nil,
            { argument in
                guard let argument = unsafe argument else { return nil }
                unsafe Unmanaged<EndingClient>.fromOpaque(argument).takeRetainedValue().end()
                return nil
            }, argument)
        // Without a thread it stays, as it is.
        if status == 0 { pthread_detach(thread) }
    }
}
