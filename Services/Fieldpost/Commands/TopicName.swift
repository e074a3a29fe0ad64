import ArgumentParser
import Model

extension Topic {
    /// The catalogue's topic of this name.
    ///
    /// - Throws: `ValidationError` with the names that there are.
    static func named(_ name: String) throws -> Topic {
        guard let topic = Topics.all.first(where: { $0.name == name }) else {
            let names = Topics.all.map(\.name).joined(separator: ", ")
            throw ValidationError("there is no topic \(name); there are \(names)")
        }
        return topic
    }
}
