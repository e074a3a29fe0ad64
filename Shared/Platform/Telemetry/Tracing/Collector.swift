import Essentials
package import ServiceSettings

/// The receiver of spans, and the sampling rate.
package struct Collector: Sendable {
    /// The URL for `POST` of an `ExportTraceServiceRequest`.
    let url: String
    /// Additional headers, such as an API key.
    let headers: [(name: String, value: String)]
    /// The share of requests without a trace context that start a trace.
    let sample: Double

    /// - Returns: `nil` if no endpoint is configured; then no span is recorded.
    package init?(_ configuration: Configuration) throws(ConfigurationError) {
        guard let endpoint = try configuration.optionalText(.tracingEndpoint) else { return nil }
        guard endpoint.hasPrefix("http://") || endpoint.hasPrefix("https://"), !endpoint.contains("?"),
            endpoint.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else {
            throw ConfigurationError(
                "tracing.endpoint (\(Setting.tracingEndpoint.variable)): expected a URL such as "
                    + "http://collector:4318, got '\(endpoint)'")
        }
        // Source: OpenTelemetry Protocol Exporter, "Endpoint URLs for OTLP/HTTP".
        url = (endpoint.hasSuffix("/") ? String(endpoint.dropLast()) : endpoint) + "/v1/traces"
        guard let sample = Double(try configuration.text(.tracingSample)), (0...1).contains(sample) else {
            throw ConfigurationError(
                "tracing.sample (\(Setting.tracingSample.variable)): expected a number from 0 to 1, such as 0.1")
        }
        self.sample = sample
        var headers: [(name: String, value: String)] = []
        for header in try configuration.list(.tracingHeaders) {
            // The value is a secret and is not included in the error.
            guard let (name, value) = Self.parts(header) else {
                throw ConfigurationError(
                    "tracing.headers (\(Setting.tracingHeaders.variable)): expected name=value, such as "
                        + "authorization=Bearer …, separated by commas")
            }
            headers.append((name, value))
        }
        self.headers = headers
    }

    private static func parts(_ header: String) -> (name: String, value: String)? {
        guard let equals = header.firstIndex(of: "="), equals > header.startIndex else { return nil }
        let name = header[..<equals]
        let value = header[header.index(after: equals)...]
        guard name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }),
            value.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F })
        else { return nil }
        return (String(name), String(value))
    }
}
