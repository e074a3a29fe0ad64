import Essentials
import Glibc
package import Logging

/// Writes each log event as one line with one `write(2)`: a JSON object, or text for terminals.
///
/// Lines have a maximum length, and values are escaped, so that they cannot end their line or string. Logging never
/// fails the caller: a line that cannot be written is lost.
package struct LineLogHandler: LogHandler {
    package enum Format: String, Sendable {
        case json, text
    }

    /// Maximum length of a message or metadata value in bytes of UTF-8; longer ones are truncated and the line has
    /// `"truncated":true`.
    package static let valueBytesMax = 4096
    /// Maximum length of a line in bytes, except for its last members. Further metadata is omitted.
    package static let lineBytesMax = 32_768

    package var metadata: Logger.Metadata = [:]
    package var logLevel: Logger.Level
    package var metadataProvider: Logger.MetadataProvider?
    private let label: String
    private let service: String
    private let format: Format
    private let descriptor: Int32
    private let environmentNames: EnvironmentNames

    /// - Parameters:
    ///   - descriptor: The file descriptor for lines; standard error by default.
    ///   - environmentNames: The names that are added to the environments' numbers.
    package init(
        label: String, service: String, level: Logger.Level, format: Format, descriptor: Int32 = STDERR_FILENO,
        environmentNames: EnvironmentNames = .process
    ) {
        self.label = label
        self.service = service
        self.logLevel = level
        self.format = format
        self.descriptor = descriptor
        self.environmentNames = environmentNames
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        var all = metadata
        if let provided = metadataProvider?.get() { all.merge(provided) { _, new in new } }
        if let given = event.metadata { all.merge(given) { _, new in new } }
        if label != service { all["logger"] = .string(label) }
        if let error = event.error { all["error"] = .string("\(error)") }
        if let number = all["environment"], let name = environmentNames.name(of: "\(number)") {
            all["environmentName"] = .string(name)
        }
        let time = Timestamp.now().description
        let fields = Self.flatten(all)
        let message = event.message.description
        let line =
            switch format {
            case .json: json(time, event.level, message, fields)
            case .text: Self.text(time, event.level, message, fields)
            }
        write(line, to: descriptor)
    }

    private func json(
        _ time: String, _ level: Logger.Level, _ message: String, _ fields: [(key: String, value: String)]
    ) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(256)
        line += "{\"time\":\"\(time)\",\"level\":\"\(level.rawValue)\",\"service\":".utf8
        JSONText.append(service, to: &line)
        line += ",\"message\":".utf8
        var isComplete = JSONText.append(message, to: &line, bytesMax: Self.valueBytesMax)
        for (key, value) in fields {
            guard line.count + key.utf8.count + value.utf8.count < Self.lineBytesMax else {
                isComplete = false
                continue
            }
            let isTaken = ["time", "level", "service", "message", "truncated"].contains(key)
            line.append(UInt8(ascii: ","))
            isComplete = JSONText.append(isTaken ? "metadata." + key : key, to: &line, bytesMax: 256) && isComplete
            line.append(UInt8(ascii: ":"))
            isComplete = JSONText.append(value, to: &line, bytesMax: Self.valueBytesMax) && isComplete
        }
        line += (isComplete ? "}\n" : ",\"truncated\":true}\n").utf8
        return line
    }

    private static func text(
        _ time: String, _ level: Logger.Level, _ message: String, _ fields: [(key: String, value: String)]
    ) -> [UInt8] {
        let shownTime = time.dropFirst(11).dropLast()
        let name = level.rawValue + String(repeating: " ", count: max(0, 8 - level.rawValue.count))
        var line = Array("\(shownTime) \(name) ".utf8)
        line += plain(message).utf8
        for (key, value) in fields where line.count < lineBytesMax {
            line += "  \(plain(key))=\(plain(value))".utf8
        }
        line.append(UInt8(ascii: "\n"))
        return line
    }

    /// Replaces control characters, which terminals would interpret.
    private static func plain(_ text: String) -> String {
        var plain = ""
        for scalar in text.unicodeScalars {
            guard plain.utf8.count < valueBytesMax else { return plain + "…" }
            let isControl = scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
            plain.unicodeScalars.append(isControl ? "\u{FFFD}" : scalar)
        }
        return plain
    }

    /// Flattens nested metadata to dotted keys, in the order of keys.
    private static func flatten(_ metadata: Logger.Metadata, under prefix: String = "") -> [(
        key: String, value: String
    )] {
        metadata.sorted { $0.key < $1.key }.flatMap { key, value -> [(key: String, value: String)] in
            switch value {
            case .dictionary(let nested): flatten(nested, under: "\(prefix)\(key).")
            case .string(let text): [(prefix + key, text)]
            case .stringConvertible(let convertible): [(prefix + key, "\(convertible)")]
            case .array(let items): [(prefix + key, items.map { "\($0)" }.joined(separator: ", "))]
            }
        }
    }
}

/// Writes all of `bytes`, normally with one call.
package func write(_ bytes: [UInt8], to descriptor: Int32) {
    var rest = bytes[...]
    while !rest.isEmpty {
        let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
        if count > 0 {
            rest = rest.dropFirst(count)
        } else if errno != EINTR {
            return
        }
    }
}
