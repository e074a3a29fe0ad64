import Essentials

/// A person's own login of HCL Compass, as sent: a login name with its password, or a personal access token.
struct CompassLogin {
    /// Maximum size of the body, in bytes.
    static let bytesMax = 4_096
    private static let userLengthMax = 255
    private static let secretLengthMax = 1_000

    /// `nil` with a token.
    let user: String?
    let secret: String

    private static let names = ["user", "password", "token"]

    /// - Throws: `Problem` 400, which never contains the secret.
    init(_ body: [UInt8]) throws {
        guard let read = try? JSONObject(body), read.members.allSatisfy({ Self.names.contains($0.key) }),
            read.members.allSatisfy({ read.text(of: $0) != nil })
        else {
            throw Problems.malformed(
                "The body must be a JSON object with the strings 'user' and 'password', or 'token'.")
        }
        switch (read.text(of: "user"), read.text(of: "password"), read.text(of: "token")) {
        case (let user?, let password?, nil):
            guard Self.isText(user, lengthMax: Self.userLengthMax) else {
                throw Problems.malformed("'user' must be 1 to \(Self.userLengthMax) characters.")
            }
            guard Self.isText(password, lengthMax: Self.secretLengthMax) else {
                throw Problems.malformed("'password' must be 1 to \(Self.secretLengthMax) characters.")
            }
            (self.user, secret) = (user, password)
        case (nil, nil, let token?):
            // It is sent in a header.
            guard Self.isText(token, lengthMax: Self.secretLengthMax), token.utf8.allSatisfy({ 0x21...0x7E ~= $0 })
            else {
                throw Problems.malformed(
                    "'token' must be 1 to \(Self.secretLengthMax) printable ASCII characters without spaces.")
            }
            (user, secret) = (nil, token)
        default: throw Problems.malformed("Give 'user' and 'password', or 'token'.")
        }
    }

    private static func isText(_ text: String, lengthMax: Int) -> Bool {
        !text.isEmpty && text.unicodeScalars.count <= lengthMax && !text.unicodeScalars.contains("\0")
    }
}
