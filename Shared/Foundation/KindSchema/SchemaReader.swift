import Essentials

/// Reads the members of one object of a schema file, and reports each problem with its location.
struct SchemaReader {
    let path: String
    let members: [SchemaValue.Member]
    private(set) var problems: [SchemaProblem] = []

    /// - Parameter names: The allowed members.
    init(_ value: SchemaValue, _ path: String, names: [String]) {
        self.path = path
        members = value.members ?? []
        guard value.members != nil else {
            problems.append(SchemaProblem(path, "must be an object"))
            return
        }
        for member in members where !names.contains(member.name) {
            let suggestion =
                nearest(to: member.name, among: names).map { "; did you mean '\($0)'?" }
                ?? "; supported are: \(names.joined(separator: ", "))"
            problems.append(SchemaProblem(location(member.name), "is not supported" + suggestion))
        }
    }

    func location(_ name: String) -> String { SchemaProblem.path(path, name) }

    func value(_ name: String) -> SchemaValue? { members.first { $0.name == name }?.value }

    mutating func report(_ name: String?, _ text: String) {
        problems.append(SchemaProblem(name.map(location) ?? path, text))
    }

    mutating func add(_ others: [SchemaProblem]) { problems += others }

    mutating func text(_ name: String) -> String? {
        guard let value = value(name) else { return nil }
        if case .text(let text) = value { return text }
        report(name, "must be a string")
        return nil
    }

    mutating func flag(_ name: String) -> Bool {
        guard let value = value(name) else { return false }
        if case .bool(let flag) = value { return flag }
        report(name, "must be true or false")
        return false
    }

    mutating func count(_ name: String) -> Int64? {
        guard let value = value(name) else { return nil }
        if case .integer(let number) = value, number >= 0 { return number }
        report(name, "must be a whole number from 0")
        return nil
    }

    mutating func number(_ name: String) -> SchemaValue? {
        guard let value = value(name) else { return nil }
        switch value {
        case .integer, .number: return value
        default:
            report(name, "must be a number")
            return nil
        }
    }

    mutating func list(_ name: String) -> [SchemaValue]? {
        guard let value = value(name) else { return nil }
        if case .list(let values) = value { return values }
        report(name, "must be a list")
        return nil
    }

    /// Reads a list of different texts.
    mutating func texts(_ name: String) -> [String]? {
        guard let values = list(name) else { return nil }
        let texts = values.compactMap(\.text)
        if texts.count < values.count { report(name, "must be a list of strings") }
        if Set(texts).count < texts.count { report(name, "has a string twice") }
        return texts
    }

    /// Reads a list of different names of a closed set.
    mutating func choices<Choice: RawRepresentable & CaseIterable>(
        _ name: String, _ type: Choice.Type
    ) -> [Choice]? where Choice.RawValue == String {
        guard let texts = texts(name) else { return nil }
        return texts.compactMap { text in
            if let choice = Choice(rawValue: text) { return choice }
            let list = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            report(name, "has '\(text.excerpt)'; allowed are: \(list)")
            return nil
        }
    }
}
