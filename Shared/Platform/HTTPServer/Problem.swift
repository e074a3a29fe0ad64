import Essentials
package import HTTPTypes
package import Hummingbird
import NIOCore

/// An error response: `application/problem+json` (RFC 9457).
///
/// A route throws it to respond with it. It must not contain confidential content.
package struct Problem: Error, HTTPResponseError, Equatable {
    /// A member in addition to RFC 9457's, such as `expectedSequence`.
    package enum Extension: Sendable, Equatable {
        case integer(Int)
        case text(String)
    }

    package var status: HTTPResponse.Status
    /// A URI of the problem type, for programs. `about:blank`: the status suffices.
    package var type: String
    /// The problem type for people; the status' phrase by default.
    package var title: String
    /// A description of this occurrence, for people.
    package var detail: String?
    /// A URI of this occurrence.
    package var instance: String?
    package var extensions: [String: Extension]
    /// Additional response headers, such as `WWW-Authenticate` or `Retry-After`.
    package var headers: HTTPFields

    /// - Parameter name: The problem type, for example `sequence-gap`, whose URI is
    ///   `urn:fieldpost:problem:sequence-gap`. `nil`: `about:blank`.
    package init(
        _ status: HTTPResponse.Status, name: String? = nil, title: String? = nil, detail: String? = nil,
        instance: String? = nil, extensions: [String: Extension] = [:], headers: HTTPFields = [:]
    ) {
        self.status = status
        self.type = name.map { "urn:fieldpost:problem:" + $0 } ?? "about:blank"
        self.title = title ?? status.reasonPhrase
        self.detail = detail
        self.instance = instance
        self.extensions = extensions
        self.headers = headers
    }

    package static func bodyTooLarge(_ bytesMax: Int) -> Problem {
        Problem(
            .contentTooLarge, name: "body-too-large", detail: "The body is larger than \(bytesMax) bytes.",
            extensions: ["bytesMax": .integer(bytesMax)])
    }

    /// - Parameter url: The base URL of the environment's new installation, if available.
    package static func environmentMoved(to url: String?) -> Problem {
        Problem(
            .misdirectedRequest, name: "environment-moved",
            detail:
                "The organisation has moved to another installation. "
                + "Resume synchronisation there and send all unsent changes there.",
            extensions: url.map { ["baseURL": .text($0)] } ?? [:])
    }

    /// The problem as one JSON object.
    package var json: [UInt8] {
        var json = Array("{\"type\":".utf8)
        JSONText.append(type, to: &json)
        json += ",\"title\":".utf8
        JSONText.append(title, to: &json)
        json += ",\"status\":\(status.code)".utf8
        for (name, text) in [("detail", detail), ("instance", instance)] {
            guard let text else { continue }
            json += ",\"\(name)\":".utf8
            JSONText.append(text, to: &json)
        }
        for (name, value) in extensions.sorted(by: { $0.key < $1.key }) {
            json.append(UInt8(ascii: ","))
            JSONText.append(name, to: &json)
            json.append(UInt8(ascii: ":"))
            value.append(to: &json)
        }
        json.append(UInt8(ascii: "}"))
        return json
    }

    package func response(from request: Request, context: some RequestContext) -> Response {
        var fields = headers
        fields[.contentType] = "application/problem+json"
        return Response(status: status, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(bytes: json)))
    }
}

extension Problem.Extension {
    fileprivate func append(to json: inout [UInt8]) {
        switch self {
        case .integer(let number): json += String(number).utf8
        case .text(let text): JSONText.append(text, to: &json)
        }
    }
}
