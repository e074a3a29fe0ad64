import DeviceClient
import Essentials
import Foundation
import Integration
import Logging
import Model

/// Processes messages of inspections. A message that is repeated has the same effect once:
///
/// - The fields are written only while the inspection has the message's position. A newer version has its own message.
/// - `processed` names the version of the content that has a receipt, or a reason why there is none.
struct ReceiptWriter {
    let gateway: IntegrationClient
    let logger = Logger(label: "inspection-receipts")

    /// The fields that this worker writes.
    private static let result: Set = ["receipt", "problem", "processed"]

    func handle(_ message: TopicMessage) async throws {
        // A tombstone has no fields: the inspection was deleted.
        guard let json = message.fields else { return }
        let fields = try JSONDecoder().decode([String: FieldJSON].self, from: Data(json))
        let content = fields.filter { !Self.result.contains($0.key) }
        let version = try Self.version(of: content, message.subject.id)
        guard content["state"] == .text("sent"), fields["processed"] != .text(version) else { return }
        // All three are written: null removes an earlier receipt or problem.
        var result: [String: String?] = ["receipt": nil, "problem": nil, "processed": version]
        do {
            let inspection = try JSONDecoder().decode(Inspection.self, from: Data(json))
            let pdf = try await receipt(of: inspection)
            // Random: a person could guess another id, and upload their own document under it.
            let id = UUID()
            try await gateway.upload(pdf, as: id)
            result["receipt"] = id.text
        } catch let error as Unprintable {
            result["problem"] = error.reason
        }
        let patch = Mutation(
            operation: .patch, kind: message.subject.kind, id: message.subject.id,
            fields: Array(try JSONEncoder().encode(result)), position: message.position)
        let rejection = try await gateway.send(patch, in: message.subject.realm)
        if let rejection, !rejection.isSuperseded { throw rejection }
        let outcome = rejection?.detail ?? result["problem"].flatMap(\.self) ?? "receipt"
        logger.info("\(message.subject) at \(message.position): \(outcome)")
    }

    private func receipt(of inspection: Inspection) async throws -> [UInt8] {
        var photos: [[UInt8]] = []
        for (index, id) in (inspection.photos ?? []).enumerated() {
            guard let photo = try await gateway.download(id) else {
                throw Unprintable("Photo \(index + 1) was not uploaded.")
            }
            photos.append(photo)
        }
        return try inspection.receipt(photos: photos)
    }

    private static func version(of content: [String: FieldJSON], _ id: UUID) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return UUID(name: String(decoding: try encoder.encode(content), as: UTF8.self), in: id).text
    }
}

/// The inspection's person must change something before it can have a receipt.
struct Unprintable: Error, Equatable {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}

/// The fields of an inspection that its receipt shows.
struct Inspection: Decodable {
    let plannedAt: String
    let answers: [String: String]
    let photos: [UUID]?

    private static let bytesMax = 1 << 20

    /// Returns the PDF.
    ///
    /// - Throws: ``Unprintable``.
    func receipt(photos: [[UInt8]]) throws -> [UInt8] {
        let title = "Inspection of " + plannedAt.prefix(10)
        let document = Document(title: title)
        document.write(title, .bold, size: 18)
        for (question, answer) in answers.sorted(by: { $0.key < $1.key }) {
            document.write(question, .regular)
            document.write(answer, .bold)
        }
        for (index, photo) in photos.enumerated() { try document.draw(photo, number: index + 1) }
        let pdf = try document.bytes()
        guard pdf.count <= Self.bytesMax else {
            throw Unprintable("The receipt is larger than 1 MiB: use fewer or smaller photos.")
        }
        return pdf
    }
}
