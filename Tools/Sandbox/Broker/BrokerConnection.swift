import NIOCore

/// A client's connection, and the connection to the mock cluster that serves it. It belongs to one event loop.
///
/// The mock cluster responds to a Fetch without records only after the time that the request may wait, even if records
/// arrive. Therefore it is sent a Fetch that may not wait. If its response is empty, it is sent again when a Produce
/// has written to one of its topics. As in Kafka, later requests of the connection wait for the response.
final class BrokerConnection {
    private struct OpenFetch {
        let frame: ByteBuffer
        let request: KafkaRequest
        let deadline: NIODeadline
        /// `BrokerState.produceCount` when it was sent last.
        var produceCount: Int
        var wait: Wait?
    }

    private struct Wait {
        let topics: [String]
        let timer: Scheduled<Void>
    }

    private let client: any Channel
    private let mock: any Channel
    private let state: BrokerState
    /// The requests that the mock cluster has not responded to. It responds late to one that waits for a group.
    private var pending: [KafkaRequest] = []
    /// The last of `pending`, or a request that waits for records.
    private var fetch: OpenFetch?
    /// Requests after `fetch`.
    private var held = CircularBuffer<ByteBuffer>()
    private var isClosed = false

    /// Number of requests after which no more are read.
    private static let heldCountMax = 64

    /// Begins to serve a client.
    init(_ client: any Channel, _ mock: any Channel, _ state: BrokerState) throws {
        (self.client, self.mock, self.state) = (client, mock, state)
        try client.pipeline.syncOperations.addHandler(
            KafkaFrameReader(onFrame: { self.receive(request: $0) }, onEnd: endClient))
        try mock.pipeline.syncOperations.addHandler(
            KafkaFrameReader(onFrame: { self.receive(response: $0) }, onEnd: close))
    }

    private func close() {
        endClient()
        mock.close(promise: nil)
    }

    /// The client has closed. The response to its Produce still wakes others.
    private func endClient() {
        isClosed = true
        fetch?.wait?.timer.cancel()
        fetch = nil
        held.removeAll()
        state.waiting[ObjectIdentifier(self)] = nil
        client.close(promise: nil)
        if !isProducing { mock.close(promise: nil) }
    }

    private var isProducing: Bool { pending.contains { $0.key == KafkaRequest.produce } }

    private func receive(request frame: ByteBuffer) {
        guard !isClosed else { return }
        guard fetch == nil else {
            held.append(frame)
            if held.count == Self.heldCountMax { setReading(false) }
            return
        }
        guard let request = KafkaRequest(frame) else { return close() }
        state.count(request)
        var frame = frame
        if let wait = request.takeFetchWait(from: &frame) {
            fetch = OpenFetch(
                frame: frame, request: request, deadline: .now() + wait, produceCount: state.produceCount)
        }
        send(frame, request)
    }

    private func send(_ frame: ByteBuffer, _ request: KafkaRequest) {
        pending.append(request)
        mock.writeAndFlush(frame, promise: nil)
    }

    private func receive(response frame: ByteBuffer) {
        guard let id = frame.getInteger(at: frame.readerIndex + 4, as: Int32.self),
            let index = pending.firstIndex(where: { $0.correlationID == id })
        else { return close() }
        let request = pending.remove(at: index)
        if request.key == KafkaRequest.produce { state.add(produced: request.producedTopics(in: frame)) }
        guard !isClosed else {
            if !isProducing { mock.close(promise: nil) }
            return
        }
        guard let fetch, request.key == KafkaRequest.fetch else { return respond(frame) }
        guard fetch.deadline > .now(), let topics = request.topicsWithoutRecords(in: frame) else {
            return finishFetch(frame)
        }
        if state.hasProduced(topics, since: fetch.produceCount) { return repeatFetch() }
        let timer = mock.eventLoop.assumeIsolated().scheduleTask(deadline: fetch.deadline) {
            self.state.waiting[ObjectIdentifier(self)] = nil
            self.finishFetch(frame)
        }
        self.fetch?.wait = Wait(topics: topics, timer: timer)
        state.waiting[ObjectIdentifier(self)] = self
    }

    /// Sends the Fetch again if it waits for one of these topics.
    func wake(for topics: [String]) {
        guard let wait = fetch?.wait, topics.contains(where: wait.topics.contains) else { return }
        wait.timer.cancel()
        state.waiting[ObjectIdentifier(self)] = nil
        repeatFetch()
    }

    private func repeatFetch() {
        guard let fetch else { return }
        self.fetch?.wait = nil
        self.fetch?.produceCount = state.produceCount
        send(fetch.frame, fetch.request)
    }

    private func finishFetch(_ response: ByteBuffer) {
        fetch = nil
        respond(response)
        if held.count >= Self.heldCountMax { setReading(true) }
        while fetch == nil, let frame = held.popFirst() { receive(request: frame) }
    }

    private func setReading(_ isReading: Bool) { client.setOption(.autoRead, value: isReading).whenFailure { _ in } }

    private func respond(_ frame: ByteBuffer) {
        guard state.roundTrip > .zero else { return client.writeAndFlush(frame, promise: nil) }
        client.eventLoop.scheduleTask(in: state.roundTrip) { [client] in client.writeAndFlush(frame, promise: nil) }
    }
}
