import Essentials
import FoundationEssentials
import ServiceSettings

/// Encodes spans for an OTLP receiver: the JSON encoding of `ExportTraceServiceRequest`.
///
/// Ids are hexadecimal, 64-bit numbers are texts, enumerations are numbers. Sources: OpenTelemetry Protocol 1.5, "JSON
/// Protobuf Encoding"; opentelemetry-proto `trace/v1/trace.proto`. Attribute names follow the semantic conventions 1.30
/// for HTTP and messaging, or begin with `fieldpost.`.
package struct SpanText {
    /// The constant beginning with the resource: `{"resource":…,"scopeSpans":[{"scope":…,"spans":[`
    private let beginning: [UInt8]

    /// Maximum length of a text in bytes; longer ones are truncated.
    private static let textBytesMax = 256
    /// The typical size of a span, for reserving capacity.
    private static let spanBytesUsual = 1_000

    /// - Parameters:
    ///   - service: The executable's name.
    ///   - instance: The identity of the process.
    package init(service: String, instance: String) {
        var json = Array(#"{"resourceSpans":[{"resource":{"attributes":["#.utf8)
        Self.append(to: &json) { attributes in
            attributes.add("service.name", service)
            attributes.add("service.namespace", "fieldpost")
            attributes.add("service.instance.id", instance)
            attributes.add("service.version", fieldpostVersion)
        }
        json += #"]},"scopeSpans":[{"scope":{"name":"fieldpost","version":"\#(fieldpostVersion)"},"spans":["#.utf8
        beginning = json
    }

    func json(_ spans: some Collection<TraceSpan>) -> [UInt8] {
        var json: [UInt8] = []
        json.reserveCapacity(beginning.count + spans.count * Self.spanBytesUsual)
        json += beginning
        var isFirst = true
        for span in spans {
            if !isFirst { json.append(UInt8(ascii: ",")) }
            isFirst = false
            Self.append(span, to: &json)
        }
        json += "]}]}]}".utf8
        return json
    }

    /// Optimized for thousands of spans per request: constant text is appended directly, without intermediate strings.
    private static func append(_ span: TraceSpan, to json: inout [UInt8]) {
        json += #"{"traceId":""#.utf8
        appendHex(span.context.traceHigh, to: &json)
        appendHex(span.context.traceLow, to: &json)
        json += #"","spanId":""#.utf8
        appendHex(span.context.spanID, to: &json)
        if let parent = span.parentID {
            json += #"","parentSpanId":""#.utf8
            appendHex(parent, to: &json)
        }
        json += #"","flags":"#.utf8
        json += String(span.context.flags).utf8
        let summary = Summary(span.work)
        json += #","kind":"#.utf8
        json += String(summary.kind).utf8
        json += #","name":"#.utf8
        JSONText.append(summary.name, to: &json, bytesMax: textBytesMax)
        json += #","startTimeUnixNano":""#.utf8
        json += String(span.start).utf8
        json += #"","endTimeUnixNano":""#.utf8
        json += String(span.end).utf8
        json += #"","attributes":["#.utf8
        append(to: &json) { $0.add(span.work) }
        json.append(UInt8(ascii: "]"))
        if let failure = summary.failure {
            json += #","status":{"code":2,"message":"#.utf8
            JSONText.append(failure, to: &json, bytesMax: textBytesMax)
            json.append(UInt8(ascii: "}"))
        }
        json.append(UInt8(ascii: "}"))
    }

    private static func append(to json: inout [UInt8], _ body: (inout Attributes) -> Void) {
        var attributes = Attributes()
        swap(&json, &attributes.json)
        body(&attributes)
        swap(&json, &attributes.json)
    }

    /// A list of `KeyValue`, appended to existing JSON.
    private struct Attributes {
        var json: [UInt8] = []
        private var isFirst = true

        mutating func add(_ key: String, _ value: String) {
            begin(key)
            json += #"{"stringValue":"#.utf8
            JSONText.append(value, to: &json, bytesMax: SpanText.textBytesMax)
            json += "}}".utf8
        }

        mutating func add(_ key: String, _ value: some BinaryInteger) {
            begin(key)
            json += #"{"intValue":""#.utf8
            json += String(value).utf8
            json += #""}}"#.utf8
        }

        /// - Parameter key: A literal without characters that JSON escapes.
        private mutating func begin(_ key: String) {
            if !isFirst { json.append(UInt8(ascii: ",")) }
            isFirst = false
            json += #"{"key":""#.utf8
            json += key.utf8
            json += #"","value":"#.utf8
        }

        mutating func add(_ work: TraceSpan.Work) {
            switch work {
            case .request(let method, let route, let status):
                add("http.request.method", method)
                if let route { add("http.route", route) }
                add("http.response.status_code", status)
            case .commit(let environment, let count):
                add("fieldpost.environment", environment)
                add("fieldpost.commit.requests", count)
            case .publish(let topic, let environment, let subject):
                add("messaging.system", "kafka")
                add("messaging.operation.type", "send")
                add("messaging.destination.name", topic)
                add(subject, environment)
            case .decide(let group, let environment, let subject, let origin, let outcome):
                add("messaging.system", "kafka")
                add("messaging.operation.type", "process")
                add("messaging.consumer.group.name", group)
                add(subject, environment)
                add("fieldpost.origin", origin)
                add("fieldpost.outcome", outcome)
            case .call(let method, let address, let status, let failure):
                add("http.request.method", method)
                add("server.address", address)
                if let status { add("http.response.status_code", status) }
                if let failure { add("error.type", failure) }
            }
        }

        private mutating func add(_ subject: TraceSpan.Subject, _ environment: Int32) {
            add("fieldpost.environment", environment)
            add("fieldpost.kind", subject.kind)
            add("fieldpost.object", subject.id.text)
            if let position = subject.position { add("fieldpost.position", position) }
        }
    }

    /// A span's kind, name and status in OpenTelemetry's terms.
    private struct Summary {
        /// `SpanKind`.
        let kind: Int
        let name: String
        /// The description of an error; `nil` if the operation succeeded.
        var failure: String?

        private enum Kind {
            static let `internal` = 1
            static let server = 2
            static let client = 3
            static let producer = 4
            static let consumer = 5
        }

        init(_ work: TraceSpan.Work) {
            switch work {
            case .request(let method, let route, let status):
                kind = Kind.server
                name = route.map { "\(method) \($0)" } ?? method
                if status >= 500 { failure = "status \(status)" }
            case .commit:
                kind = Kind.internal
                name = "commit"
            case .publish(let topic, _, _):
                kind = Kind.producer
                name = "send \(topic)"
            case .decide(_, _, let subject, _, let outcome):
                kind = Kind.consumer
                name = "process \(subject.kind)"
                if outcome == "dead-lettered" { failure = "the key is dead-lettered" }
            case .call(let method, _, let status, let failure):
                kind = Kind.client
                name = method
                self.failure = failure ?? status.flatMap { $0 >= 400 ? "status \($0)" : nil }
            }
        }
    }
}
