/// The reason why bytes are not JSON that PostgreSQL's `jsonb` and the consumers of events accept, with its location.
public struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kind of problem. The raw value is the message for people.
    public enum Reason: String, Sendable, CaseIterable {
        /// The text ends inside a value.
        case endsEarly = "the text ends inside a value"
        /// Bytes follow the value.
        case trailing = "unexpected bytes after the value"
        /// A byte that is neither a value nor a separator where one is required.
        case unexpected = "unexpected byte"
        /// The caller requires an object.
        case notAnObject = "a JSON object is required"
        /// Not UTF-8 as RFC 3629 §4 defines it.
        case malformedUTF8 = "not well-formed UTF-8"
        /// RFC 8259 §7.
        case controlCharacter = "a control character in a string must be escaped"
        /// RFC 8259 §7.
        case malformedEscape = "not an escape sequence of JSON"
        /// PostgreSQL's `text` cannot store it.
        case nullCharacter = "\\u0000 cannot be stored"
        /// A UTF-16 surrogate without its counterpart.
        case loneSurrogate = "half of a surrogate pair"
        /// RFC 8259 §6.
        case malformedNumber = "not a number of JSON"
        /// Beyond ``JSONCheck/numberDigitsMax`` or ``JSONCheck/numberExponentMax``.
        case numberTooLarge = "a number has at most 104 digits, with those of its exponent, from -64 to 64"
        /// Beyond ``JSONCheck/depthMax``.
        case nestedTooDeep = "values are nested at most 32 deep"
        /// A duplicate key in an object: its value would depend on the reader.
        case duplicateKey = "duplicate key"
        /// Beyond ``JSONCheck/memberCountMax``.
        case tooManyMembers = "an object has at most 512 fields"
    }

    /// The kind of problem.
    public let reason: Reason
    /// The offset of the byte at which the problem was detected, from 0.
    public let offset: Int
    /// The path of a duplicate key, such as `trees[0].name`; empty for other problems.
    public private(set) var path = ""

    /// Creates a problem at a byte.
    public init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }

    /// The path, the reason and the byte in one line.
    public var description: String {
        (path.isEmpty ? "" : "'\(path)': ") + "\(reason.rawValue) (byte \(offset))"
    }

    /// Returns the problem with the member's name prepended to its path.
    func inside(_ key: Range<Int>, _ bytes: borrowing Span<UInt8>) -> JSONError {
        guard reason == .duplicateKey else { return self }
        return inside(name: JSONMember.text(key, bytes).excerpt)
    }

    /// Returns the problem with the element's index prepended to its path.
    func inside(_ index: Int) -> JSONError { reason == .duplicateKey ? inside(name: "[\(index)]") : self }

    private func inside(name: String) -> JSONError {
        var problem = self
        problem.path = name + (path.isEmpty || path.first == "[" ? "" : ".") + path
        return problem
    }
}
