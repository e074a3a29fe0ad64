import Testing

@Suite struct SizeTests {
    static let lineCountMax = 350
    static let lineLengthMax = 120

    @Test func fileLengthIsLimited() {
        for file in SourceFile.all {
            let count = file.lines.count - 1
            #expect(count <= Self.lineCountMax, "\(file.path) has \(count) lines")
        }
    }

    @Test func lineLengthIsLimited() {
        for file in SourceFile.all {
            for (index, line) in file.lines.enumerated() where line.count > Self.lineLengthMax {
                // Neither a raw literal nor a row of a table can be broken.
                if line.contains("#\"") || line.drop(while: { $0 == " " }).hasPrefix("/// |") { continue }
                Issue.record("\(file.path):\(index + 1) has \(line.count) characters")
            }
        }
    }

    @Test func codeHasNoOpenTasks() {
        for file in SourceFile.all {
            for (index, line) in file.lines.enumerated()
            where line.containsBytes(of: "TODO") || line.containsBytes(of: "FIXME") {
                Issue.record("\(file.path):\(index + 1): do it, or write an issue")
            }
        }
    }
}
