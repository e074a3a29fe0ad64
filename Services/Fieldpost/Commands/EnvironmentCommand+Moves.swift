import ArgumentParser
import CommandLineSupport
import TenantMigration

extension EnvironmentCommand {
    /// `fieldpost environment moves`: which environments move from or to this installation, and what is to be done.
    struct Moves: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the environments that leave or arrive here, or did, and what is to be done next.",
            discussion: """
                What a command of a move printed is said again when the command is run again: the receipt by export \
                and import, the permission by leave.
                """)
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            var connection = try database.connect()
            let moves = try MoveListing.all(on: &connection)
            var table = Table(
                [("ENVIRONMENT", .left), ("STATE", .left), ("SINCE", .left), ("NEXT", .left)],
                empty: "no environment moves, or has moved")
            for move in moves {
                table.add([move.environment, move.state.rawValue, "\(move.since)", Self.next(move)])
            }
            try output.show(moves, table)
        }

        private static func next(_ move: MoveListing) -> String {
            switch move.state {
            case .copying: "export copies it, or was ended: export again, or take-back"
            case .held: "nobody can write it: leave with import's receipt; or export again, or take-back"
            case .left where move.discardedAt != nil: "it has gone\(to(move)); what stayed was removed, or begun to be"
            case .left: "it has gone\(to(move)): discard, when it works there; leave says its permission again"
            case .arriving:
                "import reads it, or was ended: at the old place export \(move.environment)"
                    + (move.resume.map { " --resume \($0)" } ?? "") + "; or discard"
            case .whole: "leave at the old place, and begin; import says its receipt again; or discard"
            case .begun: "nothing: it works here"
            }
        }

        private static func to(_ move: MoveListing) -> String { move.movedTo.map { " to \($0)" } ?? "" }
    }
}
