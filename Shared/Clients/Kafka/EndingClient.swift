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

    /// Maximum wait for the client's threads.
    private static let waitMax = Duration.seconds(5)

    /// Destroys the client on a thread of its own, and waits for that as long as it is worth it.
    ///
    /// `rd_kafka_destroy` has no limit. librdkafka 2.0.2 sometimes waits there for ever: the thread of a broker does
    /// not end that was killed and recovered empty while it was read from; others end when a name was resolved.
    ///
    /// - Parameter isConsumer: It was closed, or was in no group: it has committed and left, so nothing depends on the
    ///   rest, and nothing is waited for. A producer sends nothing more once its threads have ended.
    func end(isConsumer: Bool) {
        let done = try? Wakeup()
        let argument = unsafe Unmanaged.passRetained(Ending(client: self, done: done)).toOpaque()
        var thread = pthread_t()
        let status = unsafe pthread_create(
            &thread, nil,
            { argument in
                guard let argument = unsafe argument else { return nil }
                unsafe Unmanaged<Ending>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, argument)
        // Without a thread it stays, as it is.
        guard status == 0 else { return }
        pthread_detach(thread)
        if !isConsumer { done?.wait(atMost: Self.waitMax) }
    }

    private final class Ending {
        let client: EndingClient
        let done: Wakeup?

        init(client: EndingClient, done: Wakeup?) { (self.client, self.done) = (client, done) }

        func run() {
            unsafe rd_kafka_destroy_flags(client.pointer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE)
            done?.signal()
        }
    }
}
