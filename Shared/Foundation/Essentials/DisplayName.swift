/// Comparison of the names of teams, people, templates and similar objects.
package enum DisplayName {
    /// Returns the form in which two names are equal if they look the same to people.
    ///
    /// Letters are folded as Unicode folds them fully (`STRASSE` and `Straße`, `ΟΔΟΣ` and `οδος`). Controls and
    /// characters that are not displayed (Unicode's Default_Ignorable_Code_Point) are removed, and so are blanks
    /// around; a run of blanks inside is one. As `String`s compare, canonically equivalent names are equal.
    ///
    /// - Returns: An empty text if nothing is left.
    package static func key(_ name: String) -> String {
        var key = String.UnicodeScalarView()
        var isBlankBefore = false
        for scalar in name.unicodeScalars {
            if isBlank(scalar) {
                isBlankBefore = !key.isEmpty
            } else if !isIgnored(scalar) {
                if isBlankBefore { key.append(" ") }
                isBlankBefore = false
                key.append(contentsOf: folded(scalar).unicodeScalars)
            }
        }
        return String(key)
    }

    /// Maps to upper case through lower case: `ẞ` has only a lower-case mapping; `ß` and `ς` differ only in upper case.
    private static func folded(_ scalar: Unicode.Scalar) -> String {
        if scalar.isASCII { return scalar.properties.lowercaseMapping }
        let upper = scalar.properties.lowercaseMapping.unicodeScalars.map(\.properties.uppercaseMapping).joined()
        return upper.unicodeScalars.map(\.properties.lowercaseMapping).joined()
    }

    /// Whether the name has a visible character: not a blank, a control or an ignorable character, nor one that only
    /// modifies the character before it.
    package static func isVisible(_ name: String) -> Bool {
        name.unicodeScalars.contains { scalar in
            guard !isBlank(scalar), !isIgnored(scalar) else { return false }
            switch scalar.properties.generalCategory {
            case .nonspacingMark, .enclosingMark: return false
            default: return true
            }
        }
    }

    /// Describes why a name that must be visible is invalid; `nil` if it is valid.
    package static func objection(to name: String, of field: String) -> String? {
        isVisible(name) ? nil : "'\(field)' must have a visible character"
    }

    /// White space, and the blank Braille pattern, which Unicode classifies as a symbol.
    private static func isBlank(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isWhitespace || scalar == "\u{2800}"
    }

    private static func isIgnored(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.properties.isDefaultIgnorableCodePoint { return true }
        switch scalar.properties.generalCategory {
        case .control, .format: return true
        default: return false
        }
    }
}
