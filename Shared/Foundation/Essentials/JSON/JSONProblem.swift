/// Why bytes are not JSON that PostgreSQL's `jsonb` and everybody behind it can take, and where.
public struct JSONProblem: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong. The raw value is for a person to read.
    public enum Reason: String, Sendable, CaseIterable {
        /// The value goes on after the last byte.
        case endsEarly = "the text ends in the middle of a value"
        /// Something follows the value.
        case trailing = "there is more after the value"
        /// Neither a value nor a separator where one is needed.
        case unexpected = "this byte is not JSON here"
        /// The rules wanted an object.
        case notAnObject = "a JSON object is needed"
        /// Not UTF-8 as RFC 3629 §4 defines it.
        case malformedUTF8 = "not well-formed UTF-8"
        /// RFC 8259 §7.
        case controlCharacter = "a control character in a string must be escaped"
        /// RFC 8259 §7.
        case malformedEscape = "not an escape sequence of JSON"
        /// PostgreSQL's text cannot hold it.
        case nullCharacter = "\\u0000 cannot be stored"
        /// Half of a UTF-16 pair is no character.
        case loneSurrogate = "half of a surrogate pair"
        /// RFC 8259 §6.
        case malformedNumber = "not a number of JSON"
        /// Beyond ``JSONCheck/numberDigitsMax`` or ``JSONCheck/numberExponentMax``.
        case numberTooLarge = "a number has at most 104 digits, with those of its exponent, from -64 to 64"
        /// Beyond ``JSONCheck/depthMax``.
        case nestedTooDeep = "values are nested at most 32 deep"
        /// A key twice in one object: which one counts would depend on the reader.
        case duplicateKey = "the key was given before"
        /// Beyond ``JSONCheck/memberCountMax``.
        case tooManyMembers = "an object has at most 512 fields"
    }

    /// What is wrong.
    public let reason: Reason
    /// The offset of the byte at which it was noticed, from 0.
    public let offset: Int
    /// The path of a key that was given before, such as `trees[0].name`; empty for other problems.
    public private(set) var path = ""

    /// A problem at a byte.
    public init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }

    /// The reason, the path and the byte in one line.
    public var description: String {
        (path.isEmpty ? "" : "'\(path)': ") + "\(reason.rawValue) (byte \(offset))"
    }

    /// The problem with the member's name before its path.
    func inside(_ key: Range<Int>, _ bytes: borrowing Span<UInt8>) -> JSONProblem {
        guard reason == .duplicateKey else { return self }
        return inside(name: JSONMember.text(key, bytes).excerpt)
    }

    /// The problem with the element's index before its path.
    func inside(_ index: Int) -> JSONProblem { reason == .duplicateKey ? inside(name: "[\(index)]") : self }

    private func inside(name: String) -> JSONProblem {
        var problem = self
        problem.path = name + (path.isEmpty || path.first == "[" ? "" : ".") + path
        return problem
    }
}
