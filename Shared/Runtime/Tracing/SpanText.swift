import Essentials
import FoundationEssentials

/// Spans as an OTLP receiver takes them: the JSON encoding of `ExportTraceServiceRequest`.
///
/// Ids are hexadecimal, 64-bit numbers are texts, enumerations are numbers. Sources: OpenTelemetry Protocol 1.5,
/// "JSON Protobuf Encoding"; opentelemetry-proto `trace/v1/trace.proto`. Names of attributes are those of the semantic
/// conventions 1.30 for HTTP and messaging, or begin with `fieldpost.`.
struct SpanText {
    /// Who sends: `{"resource":…,"scopeSpans":[{"scope":…,"spans":[`
    private let beginning: [UInt8]

    /// What a text is cut at, in bytes.
    private static let textBytesMax = 256

    /// - Parameters:
    ///   - service: The executable's name.
    ///   - instance: Which of its processes.
    init(service: String, instance: String) {
        var json = Array(#"{"resourceSpans":[{"resource":{"attributes":["#.utf8)
        var attributes = Attributes()
        attributes.add("service.name", service)
        attributes.add("service.namespace", "fieldpost")
        attributes.add("service.instance.id", instance)
        attributes.add("service.version", fieldpostVersion)
        json += attributes.json
        json += #"]},"scopeSpans":[{"scope":{"name":"fieldpost","version":"\#(fieldpostVersion)"},"spans":["#.utf8
        beginning = json
    }

    func json(_ spans: some Sequence<TraceSpan>) -> [UInt8] {
        var json = beginning
        var isFirst = true
        for span in spans {
            if !isFirst { json.append(UInt8(ascii: ",")) }
            isFirst = false
            Self.append(span, to: &json)
        }
        json += "]}]}]}".utf8
        return json
    }

    private static func append(_ span: TraceSpan, to json: inout [UInt8]) {
        let told = Told(span.work)
        json += #"{"traceId":"\#(span.context.traceID)","spanId":"\#(hex(span.context.spanID))","#.utf8
        if let parent = span.parentID { json += #""parentSpanId":"\#(hex(parent))","#.utf8 }
        json += #""flags":\#(span.context.flags),"kind":\#(told.kind),"name":"#.utf8
        JSONText.append(told.name, to: &json, bytesMax: textBytesMax)
        json += #","startTimeUnixNano":"\#(span.start)","endTimeUnixNano":"\#(span.end)","attributes":["#.utf8
        json += told.attributes.json
        json.append(UInt8(ascii: "]"))
        if let failure = told.failure {
            json += #","status":{"code":2,"message":"#.utf8
            JSONText.append(failure, to: &json, bytesMax: textBytesMax)
            json.append(UInt8(ascii: "}"))
        }
        json.append(UInt8(ascii: "}"))
    }

    /// A list of `KeyValue`.
    private struct Attributes {
        private(set) var json: [UInt8] = []

        mutating func add(_ key: StaticString, _ value: String) {
            begin(key)
            json += #"{"stringValue":"#.utf8
            JSONText.append(value, to: &json, bytesMax: SpanText.textBytesMax)
            json += "}}".utf8
        }

        mutating func add(_ key: StaticString, _ value: some BinaryInteger) {
            begin(key)
            json += "{\"intValue\":\"\(value)\"}}".utf8
        }

        private mutating func begin(_ key: StaticString) {
            if !json.isEmpty { json.append(UInt8(ascii: ",")) }
            json += "{\"key\":\"\(key)\",\"value\":".utf8
        }
    }

    /// A span's work in OpenTelemetry's words.
    private struct Told {
        /// `SpanKind`.
        let kind: Int
        let name: String
        var attributes = Attributes()
        /// `nil`: nothing was wrong.
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
                attributes.add("http.request.method", method)
                if let route { attributes.add("http.route", route) }
                attributes.add("http.response.status_code", status)
                if status >= 500 { failure = "answered \(status)" }
            case .commit(let environment, let count):
                kind = Kind.internal
                name = "commit"
                attributes.add("fieldpost.environment", environment)
                attributes.add("fieldpost.commit.requests", count)
            case .publish(let topic, let environment, let subject):
                kind = Kind.producer
                name = "send \(topic)"
                attributes.add("messaging.system", "kafka")
                attributes.add("messaging.operation.type", "send")
                attributes.add("messaging.destination.name", topic)
                add(subject, environment)
            case .decide(let group, let environment, let subject, let origin, let outcome):
                kind = Kind.consumer
                name = "process \(subject.kind)"
                attributes.add("messaging.system", "kafka")
                attributes.add("messaging.operation.type", "process")
                attributes.add("messaging.consumer.group.name", group)
                add(subject, environment)
                attributes.add("fieldpost.origin", origin)
                attributes.add("fieldpost.outcome", outcome)
                if outcome == "dead" { failure = "it waits for a person" }
            case .call(let method, let address, let status, let failure):
                kind = Kind.client
                name = method
                attributes.add("http.request.method", method)
                attributes.add("server.address", address)
                if let status { attributes.add("http.response.status_code", status) }
                if let failure { attributes.add("error.type", failure) }
                self.failure = failure ?? status.flatMap { $0 >= 400 ? "answered \($0)" : nil }
            }
        }

        private mutating func add(_ subject: TraceSpan.Subject, _ environment: Int32) {
            attributes.add("fieldpost.environment", environment)
            attributes.add("fieldpost.kind", subject.kind)
            attributes.add("fieldpost.object", subject.id.text)
            if let position = subject.position { attributes.add("fieldpost.position", position) }
        }
    }
}
