import Foundation

/// A file that is imported, or standard input.
struct ImportSource {
    /// As it was given.
    let name: String
    /// `nil`: it can be read once only, and nobody knows how much there is.
    let bytesTotal: Int?

    /// - Parameter name: A path, or `-`.
    /// - Throws: `CommandFailure` when there is no such file, or it is a compressed one.
    init(_ name: String) throws {
        self.name = name
        guard name != "-" else {
            bytesTotal = nil
            return
        }
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: name) else {
            throw CommandFailure("cannot read \(name)")
        }
        let isRegular = attributes[.type] as? FileAttributeType == .typeRegular
        bytesTotal = isRegular ? attributes[.size] as? Int : nil
        guard isRegular else { return }
        // RFC 1952, 2.3.1.
        let start = try? open().read(upToCount: 2)
        guard start.map({ Array($0) }) != [0x1F, 0x8B] else {
            throw CommandFailure("\(name) is compressed: give - as the file, behind zcat \(name) |")
        }
    }

    func open() throws -> FileHandle {
        if name == "-" { return FileHandle.standardInput }
        guard let handle = FileHandle(forReadingAtPath: name) else { throw CommandFailure("cannot read \(name)") }
        return handle
    }

    func lines() throws -> LineReader { LineReader(try open(), text: name) }
}
