/// A language for the types of own kinds.
enum TypeLanguage: String {
    case swift, typescript, kotlin

    /// Returns a source file.
    func source(of kinds: [TypedKind]) -> String {
        let text =
            switch self {
            case .swift: SwiftTypes.source(of: kinds)
            case .typescript: TypeScriptTypes.source(of: kinds)
            case .kotlin: KotlinTypes.source(of: kinds)
            }
        return "// Generated: fieldpost schema generate \(rawValue)\n\(text)\n"
    }
}
