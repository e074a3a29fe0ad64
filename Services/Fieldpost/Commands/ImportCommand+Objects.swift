import ArgumentParser
import Foundation
import Model

extension ImportCommand {
    /// `fieldpost import objects`: lines of JSON, one object each.
    struct Objects: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write objects of any kind into realms, from lines of JSON.",
            discussion: """
                Each line of FILE is {"realm": PATH, "kind": KIND, "id": UUID, "fields": {…}}. The fields are checked \
                as those of a device are. An object that is there with other fields gets these, as by an integration; \
                one that is so already is left alone, so that importing again changes nothing, and goes on where an \
                import was interrupted. What is stored and not in the file stays.

                A Person is let in under its id by {"realm": "/common", "kind": "Person", "id": UUID, "email": \
                ADDRESS, "fields": {…}}; without "email", somebody must have the id.

                What services make is refused: copies of tasks, positions and shared items, Share and Realms objects, \
                and, where Fieldpost has the environment's back end, what comes from that.

                A file is read three times: for people and teams, for the other objects of /common, and for the \
                rest. So objects come before those that refer to them. Standard input is read once: put its lines \
                into this order. Compressed files are read so: zcat FILE | fieldpost import objects -

                Memberships, shared items and PersonLookup objects are checked as for devices: the people and teams \
                to which they refer must exist. Two things only \
                an import may do, and each is a warning: to write into the realm of an address that no person has \
                yet, and to let in a person whose address is of none of the environment's domains.

                Bad lines are told by their numbers, with the reason, and the others are written; the exit status is \
                1 then.
                """)
        @Argument(help: "The file, or - for standard input.") var file: String
        @OptionGroup var options: ImportOptions

        func run() async throws {
            let source = try ImportSource(file)
            var work = try options.begin(source)
            var lineCount = 0
            // Objects come before those that refer to them.
            for pass in source.bytesTotal == nil ? [nil] : ObjectLines.Pass.allCases.map(Optional.some) {
                lineCount = try await Self.read(source, pass, into: &work)
            }
            try options.end(work, lines: lineCount, of: "lines")
        }

        /// Lines are checked by as many threads, at most, beside the one that writes.
        private static let threadCountMax = 4

        /// - Returns: How many lines there are, empty ones left out.
        private static func read(
            _ source: ImportSource, _ pass: ObjectLines.Pass?, into work: inout ObjectImport
        ) async throws -> Int {
            var reader = try source.lines()
            var progress = ImportProgress(bytesTotal: source.bytesTotal)
            defer { progress.end() }
            var lines = ObjectLines(hasBackend: work.hasBackend)
            var checking: [Task<ObjectLines.Checked, Never>] = []
            let width = max(1, min(ProcessInfo.processInfo.activeProcessorCount, threadCountMax))
            var lineCount = 0
            while true {
                let page = try ObjectLines.page(of: &reader)
                lineCount += page.count
                if !page.isEmpty { checking.append(Task.detached { [lines] in lines.checked(page, in: pass) }) }
                guard page.isEmpty || checking.count >= width else { continue }
                guard !checking.isEmpty else { break }
                let checked = await checking.removeFirst().value
                lines = checked.lines
                for (line, result) in checked.results {
                    switch result {
                    case .success(let object): try work.add(object, line: line)
                    case .failure(let problem): work.refuse(problem, line: line)
                    }
                }
                progress.show(bytes: reader.bytesRead, lines: lineCount, problems: work.problems.count)
            }
            try work.flush()
            return lineCount
        }
    }
}
