internal import CKafka
import Essentials
internal import Glibc

/// An unused client and its callbacks' context during destruction.
@safe final class ClientDestruction {
    private let pointer: OpaquePointer
    private let context: ClientContext

    init(pointer: OpaquePointer, context: ClientContext) {
        unsafe self.pointer = pointer
        self.context = context
    }

    /// Maximum wait for the client's threads.
    private static let waitMax = Duration.seconds(5)

    /// Destroys the client on a separate thread, and waits for it with a timeout if necessary.
    ///
    /// `rd_kafka_destroy` has no timeout. librdkafka 2.0.2 sometimes blocks in it forever: the thread of a broker that
    /// was killed and recovered empty during a read does not end; other threads end only when a name is resolved.
    ///
    /// - Parameter isConsumer: A consumer was closed, or was in no group: it has committed and left, so nothing depends
    ///   on the remaining steps, and there is no wait. A producer sends no more messages after its threads have ended.
    func run(isConsumer: Bool) {
        let done = try? Wakeup()
        let argument = unsafe Unmanaged.passRetained(Parameters(client: self, done: done)).toOpaque()
        var thread = pthread_t()
        let status = unsafe pthread_create(
            &thread, nil,
            { argument in
                guard let argument = unsafe argument else { return nil }
                unsafe Unmanaged<Parameters>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, argument)
        // If no thread can be started, the client is leaked.
        guard status == 0 else { return }
        pthread_detach(thread)
        if !isConsumer { done?.wait(atMost: Self.waitMax) }
    }

    private final class Parameters {
        let client: ClientDestruction
        let done: Wakeup?

        init(client: ClientDestruction, done: Wakeup?) { (self.client, self.done) = (client, done) }

        func run() {
            unsafe rd_kafka_destroy_flags(client.pointer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE)
            done?.signal()
        }
    }
}
