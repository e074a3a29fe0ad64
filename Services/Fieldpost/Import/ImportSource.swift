import Foundation

/// The file to import, or standard input.
struct ImportSource {
    /// The given path, or `-`.
    let name: String
    /// The size; `nil` if it is unknown and the source can be read only once.
    let bytesTotal: Int?

    /// - Parameter name: A path, or `-`.
    /// - Throws: `CommandFailure` if the file does not exist or is compressed.
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
            throw CommandFailure("\(name) is compressed: pipe it with zcat \(name) |, and give - as the file")
        }
    }

    func open() throws -> FileHandle {
        if name == "-" { return FileHandle.standardInput }
        guard let handle = FileHandle(forReadingAtPath: name) else { throw CommandFailure("cannot read \(name)") }
        return handle
    }

    func lines() throws -> LineReader { LineReader(try open(), text: name) }
}
