import ArgumentParser
import Environments
import Model

extension ImportCommand {
    /// `fieldpost import objects`: lines of JSON, one object each.
    struct Objects: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write objects of any kind into realms, from lines of JSON.",
            discussion: """
                Each line of FILE is {"realm": PATH, "kind": KIND, "id": UUID, "fields": {…}}. The fields are checked as \
                those of a device are. An object that is there with other fields gets these, as by an integration; one \
                that is so already is left alone, so that importing again changes nothing, and goes on where an import \
                was interrupted. What is stored and not in the file stays.

                A Person is let in under its id by {"realm": "/common", "kind": "Person", "id": UUID, "email": ADDRESS, \
                "fields": {…}}; without "email", somebody must have the id.

                What services make is refused: copies of tasks, positions and shared items, Share and Realms objects, \
                and, where Fieldpost has the environment's back end, what comes from that.

                A file is read twice, first for what is in /common: teams and people are there before what names \
                them. Standard input is read once: put the lines of /common first. Compressed files are read so: \
                zcat FILE | fieldpost import objects -

                Bad lines are told by their numbers, with the reason, and the others are written; the exit status is \
                1 then.
                """)
        @Argument(help: "The file, or - for standard input.") var file: String
        @OptionGroup var options: ImportOptions

        func run() throws {
            let source = try ImportSource(file)
            var work = try options.begin(source)
            var lines = ObjectLines(hasBackend: work.hasBackend)
            var lineCount = 0
            // Teams and people are to be there before what names them.
            for common in source.bytesTotal == nil ? [nil] : [true, false] {
                lineCount = try Self.read(source, common: common, &lines, into: &work)
            }
            try options.end(work, lines: lineCount, of: "lines")
        }

        /// - Returns: How many lines there are, empty ones left out.
        private static func read(
            _ source: ImportSource, common: Bool?, _ objects: inout ObjectLines, into work: inout ObjectImport
        ) throws -> Int {
            var reader = try source.lines()
            var progress = ImportProgress(bytesTotal: source.bytesTotal)
            defer { progress.end() }
            var lineCount = 0
            while let line = try reader.next() {
                if let bytes = line.bytes, bytes.allSatisfy({ $0 == 0x20 || $0 == 0x0D || $0 == 0x09 }) { continue }
                lineCount += 1
                if let object = Self.object(line, common, &objects, &work) { try work.add(object, line: line.number) }
                if lineCount.isMultiple(of: 1_000) {
                    progress.show(bytes: reader.bytesRead, lines: lineCount, problems: work.problems.count)
                }
            }
            try work.flush()
            return lineCount
        }

        private static func object(
            _ line: LineReader.Line, _ common: Bool?, _ objects: inout ObjectLines, _ work: inout ObjectImport
        ) -> ImportedObject? {
            do throws(ImportProblem) {
                if let bytes = line.bytes { return try objects.object(bytes, common: common) }
                if common == true { return nil }
                throw ImportProblem("the line has more than \(LineReader.bytesMax) bytes")
            } catch {
                work.refuse(error, line: line.number)
                return nil
            }
        }
    }
}
