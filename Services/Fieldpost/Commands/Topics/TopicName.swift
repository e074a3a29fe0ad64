import ArgumentParser
import Model

extension Topic {
    /// Returns the catalogue's topic with this name.
    ///
    /// - Throws: `ValidationError` with the available names.
    static func named(_ name: String) throws -> Topic {
        guard let topic = Topics.all.first(where: { $0.name == name }) else {
            let names = Topics.all.map(\.name).joined(separator: ", ")
            throw ValidationError("no topic \(name); available: \(names)")
        }
        return topic
    }
}
