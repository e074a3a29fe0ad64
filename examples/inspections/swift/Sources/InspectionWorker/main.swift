// A worker that writes a PDF receipt for each inspection that was sent.
//
//     FIELDPOST_KAFKA_BROKERS=127.0.0.1:9092 GATEWAY_URL=http://127.0.0.1:8080 FIELDPOST_KEY=fpk_… \
//         .build/debug/InspectionWorker ENVIRONMENT
//
// It is the worker of `worker.py`, in Swift. Start as many workers as there are partitions, all in the same language.

import Foundation
import Integration

func fail(_ text: String, status: Int32 = 1) -> Never {
    FileHandle.standardError.write(Data((text + "\n").utf8))
    exit(status)
}

func setting(_ name: String) -> String {
    guard let value = ProcessInfo.processInfo.environment[name] else { fail("\(name) is not set") }
    return value
}

guard CommandLine.arguments.count == 2 else { fail("usage: InspectionWorker ENVIRONMENT", status: 2) }
do {
    let gateway = try IntegrationClient(url: setting("GATEWAY_URL"), key: setting("FIELDPOST_KEY"))
    let writer = ReceiptWriter(gateway: gateway)
    let worker = TopicWorker(
        group: "inspection-receipts", topics: ["own.\(CommandLine.arguments[1]).inspections"],
        settings: try KafkaSettings(), handler: writer.handle)
    try await worker.runUntilSignal()
} catch {
    fail("\(error)")
}
