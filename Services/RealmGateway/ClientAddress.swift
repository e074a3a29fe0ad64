import HTTPTypes
import NIOCore

/// Says where a request comes from.
struct ClientAddress: Sendable {
    /// Whether the connection is a proxy's, which names its client last in `X-Forwarded-For`. Without a proxy anybody
    /// could write there what they like.
    let isForwarded: Bool

    private static let lengthMax = 64

    func address(of channel: any Channel, _ headers: HTTPFields) -> String {
        let peer = channel.remoteAddress?.ipAddress ?? "unknown"
        guard isForwarded, let name = HTTPField.Name("X-Forwarded-For"), let value = headers[values: name].last,
            let last = value.split(separator: ",").last
        else { return peer }
        let isAddress = { (byte: UInt8) in
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
                || (UInt8(ascii: "A")...UInt8(ascii: "F")).contains(byte) || byte == UInt8(ascii: ".")
                || byte == UInt8(ascii: ":")
        }
        let text = last.utf8.filter { $0 != UInt8(ascii: " ") }
        guard !text.isEmpty, text.count <= Self.lengthMax, text.allSatisfy(isAddress) else { return peer }
        return String(decoding: text, as: UTF8.self)
    }
}
