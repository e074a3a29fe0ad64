/// Alterations that a back end's emulator makes to stored texts. Without them it stores texts unchanged.
struct TextSwitches: Codable, Equatable {
    /// The unit of a length.
    enum Unit: String, Codable { case utf16, scalars, utf8 }

    /// The longest text, the rest is cut off; 0: any length.
    var textLengthMax = 0
    var textUnit = Unit.utf16
    /// CR LF and CR become LF.
    var convertsLineEnds = false
    /// Blanks at both ends go, and of several in a row one stays.
    var trimsTexts = false
    /// Scalars above U+FFFF become `?`, as in a column of UCS-2.
    var replacesAstral = false

    func check() throws {
        guard textLengthMax >= 0 else { throw EmulatorError("a length is 0 or more") }
    }

    /// Returns the text as it is stored.
    func stored(_ text: String) -> String {
        var scalars = Array(text.unicodeScalars)
        if convertsLineEnds {
            scalars = scalars.replacing("\r\n".unicodeScalars, with: ["\n"]).replacing(["\r"], with: ["\n"])
        }
        if trimsTexts {
            scalars = Array(scalars.split(separator: " ").joined(separator: [" "]))
        }
        if replacesAstral { scalars = scalars.map { $0.value > 0xFFFF ? "?" : $0 } }
        return String(String.UnicodeScalarView(cut(scalars)))
    }

    /// A scalar of which only a part has room is cut off whole.
    private func cut(_ scalars: [Unicode.Scalar]) -> ArraySlice<Unicode.Scalar> {
        guard textLengthMax > 0 else { return scalars[...] }
        var length = 0
        return scalars.prefix { scalar in
            switch textUnit {
            case .utf16: length += UTF16.width(scalar)
            case .scalars: length += 1
            case .utf8: length += UTF8.width(scalar)
            }
            return length <= textLengthMax
        }
    }
}
