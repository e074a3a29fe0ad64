import DeviceClient
import Essentials
import FoundationEssentials
import KindSchema
import Model

extension FieldworkPlay {
    /// Percentage of actions on objects of own kinds.
    static let ownKindPercent = 25

    /// Creates, changes or deletes an object of an own kind. Some mutations are not permitted, or invalid.
    mutating func writeOwnKind(_ contents: [RealmPath: RealmContent]) -> Act? {
        // Some apps are updated before the file is applied.
        let version = random.happens(5) ? RandomKinds.versionCount : version
        let isOutside = random.happens(4)
        let realms = isOutside ? [.manager] + contents.keys.sorted() : contents.keys.sorted()
        let targets = realms.flatMap { realm in
            kinds.list.filter { $0.version <= version && (isOutside || $0.rules(in: realm) != nil) }.map { (realm, $0) }
        }
        guard let (realm, kind) = targets.randomElement(using: &random) else { return nil }
        let changed = kind.writable(version).filter { kind.rules(in: realm)?.changeable.contains($0.name) == true }
        let object = any(kind.kind, in: realm, contents)
        let id = kind.hasNaturalIDs ? kinds.naturalIDs.randomElement(using: &random) : nil
        let values = fields(kind.writable(version), of: kind, version)
        let creation = (realm, Mutation.put(kind.kind, id ?? random.id(), values))
        guard let object else { return creation }
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<40: return creation
        case 40..<70: return (realm, .patch(kind.kind, object, fields(changed, of: kind, version)))
        case 70..<85: return (realm, .put(kind.kind, object, fields(changed, of: kind, version)))
        default: return (realm, .delete(kind.kind, object))
        }
    }

    /// Returns random values of some of the fields.
    private mutating func fields(_ permitted: [RandomField], of kind: RandomKind, _ version: Int) -> String {
        var members: [String] = []
        for field in permitted where field.name == RandomKind.required || random.happens(60) {
            let isNull = field.name != RandomKind.required && random.happens(10)
            members.append("\"\(field.name)\":\(isNull ? "null" : field.value(version, &random))")
        }
        if random.happens(8) {
            // A field that is unknown, read-only or not among the permitted ones, or an invalid value.
            let names = permitted.map(\.name)
            let field = kind.fields.filter { !names.contains($0.name) }.randomElement(using: &random)
            let invalid = permitted.last { field in !members.contains { $0.hasPrefix("\"\(field.name)\"") } }
            switch (random.happens(50), field, invalid) {
            case (true, let field?, _): members.append("\"\(field.name)\":\(field.value(version, &random))")
            case (false, _, let field?): members.append("\"\(field.name)\":\(field.invalidValue)")
            default: members.append("\"omega\":1")
            }
        }
        return "{\(members.joined(separator: ","))}"
    }
}
